"""LHLO → Plan: a program keeps its buffers, its kernels and its order, so it gives the thunks that it was written from.

The passes, the schedule and the buffer assignment do not run. What the text leaves out (alignments, kernels' names) is
what the planner would have chosen.
"""

from __future__ import annotations

from mlir import ir

from ..hlo.dtypes import DType
from ..hlo.errors import VerificationError
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape, array, tuple_shape
from ..planning.inplace import reuses
from ..planning.kernels import KernelTable
from ..planning.kernels import Places as Slices
from ..planning.plan import (
    Allocation,
    BufferAssignment,
    BufferSlice,
    ConditionalStep,
    CopyStep,
    KernelRequest,
    KernelStep,
    Plan,
    ProfileStep,
    Step,
    WhileStep,
)
from .attributes import value_of
from .entry import Entry, entry_of, entry_of_function
from .memrefs import shape_of_memref
from .module import LhloModule
from .program import programs
from .read import kernels, location_of, operands, output_count
from .table import OPCODE
from .to_hlo import Reader
from .to_module import to_module

NOTHING = tuple_shape()
"""The shape of a step that yields no value."""


def to_plan(lhlo: LhloModule, file: str = "<lhlo>") -> Plan:
    """The plan of a module's program, or of its only kernel. The module must be verified.

    Its `module` is the program as HLO on values (to_module.py). Raises VerificationError or UnsupportedError, located.
    """
    with lhlo.context:
        entry = entry_of(lhlo, file)
        steps = _Steps(entry)
        made = steps.block(entry.function.regions[0].blocks[0])
        module = to_module(entry)
        kernels = tuple(steps.kernels.requests.values())
    index = [path for path, shape in module.result_shape.leaves() if shape.is_array]
    slices = {(module.entry.root, index[n]): place for n, place in entry.elsewhere.items()}
    return Plan(module, BufferAssignment(entry.allocations, slices), made, kernels)


def to_kernels(lhlo: LhloModule, file: str = "<lhlo>") -> list[KernelRequest]:
    """The kernels of a module: of its kernel functions, then of each program in order of first use.

    Missing names, slices and alignments get defaults. Raises VerificationError.
    """
    reader = Reader(file)
    found = [reader.kernel(kernel) for kernel in kernels(lhlo)]
    for function in programs(lhlo):
        steps = _Steps(entry_of_function(function, file))
        steps.block(function.regions[0].blocks[0])
        found += steps.kernels.requests.values()
    return found


class _Steps:
    def __init__(self, entry: Entry):
        self.places, self.kernels = entry.places, KernelTable(entry.allocations)
        self.file = entry.file
        self.sizes = {a.index: a for a in entry.allocations}

    def block(self, block: ir.Block) -> tuple[Step, ...]:
        found: list[Step] = []
        for view in block.operations:
            op = view.operation
            if op.name == "memref.copy":
                found.append(self.copy(op))
            elif op.name == "lhlo.while":
                found.append(self.loop(op))
            elif op.name == "lhlo.case":
                found.append(self.case(op))
            elif op.name in ("lhlo.profile_start", "lhlo.profile_end"):
                found.append(self.profile(op))
            elif op.name in OPCODE:
                found.append(self.kernel(op))
        return tuple(found)

    def kernel(self, op: ir.Operation) -> KernelStep:
        values, count = operands(op), output_count(op)
        instruction = Reader(self.file).step(op)
        slices = tuple(self.slice_of(op, v) for v in values)
        first = len(values) - count
        scratch = None
        if "scratch" in op.attributes:
            scratch = self.inside(op, BufferSlice(*value_of(op.attributes["scratch"])))
        elif "lhlo.kernel" in op.parent.attributes:
            scratch = self.scratch_argument(op)
        places = Slices(slices[:first], slices[first:], scratch)
        self.check_written(op, instruction, places)
        return self.kernels.step(instruction, places, self.symbol(op))

    def symbol(self, op: ir.Operation) -> str | None:
        if "lhlo.kernel" in op.parent.attributes:
            return op.parent.attributes["sym_name"].value
        return op.attributes["kernel"].value if "kernel" in op.attributes else None

    def scratch_argument(self, op: ir.Operation) -> BufferSlice | None:
        for argument, given in zip(self.places.arguments, self.places.given, strict=True):
            if "lhlo.scratch" in given:
                return self.places.slice_of(argument, shape_of_memref(str(argument.type)).bytes)
        return None

    def slice_of(self, op: ir.Operation, value: ir.Value) -> BufferSlice:
        return self.inside(op, self.places.slice_of(value, shape_of_memref(str(value.type)).bytes))

    def inside(self, op: ir.Operation, place: BufferSlice) -> BufferSlice:
        """PLAN1: a slice lies inside its allocation."""
        allocation = self.sizes.get(place.allocation)
        if allocation is None or place.offset + place.size > allocation.size:
            size = "is no argument" if allocation is None else f"has {allocation.size} bytes"
            raise _broken(op, "PLAN1", f"bytes {place.offset} to {place.offset + place.size} of allocation "
                          f"{place.allocation}, which {size}")  # fmt: skip
        return place

    def check_written(self, op: ir.Operation, instruction: Instruction, places: Slices) -> None:
        """PLAN2: nothing writes a constant, or a parameter that does not become a result. PLAN3: the slices of one op
        are equal or disjoint, and results are disjoint, as kernels take their pointers for noalias.
        """
        written = [s for s in (*places.results, places.scratch) if s is not None]
        for place in written:
            self.check_writable(op, place)
        seen: list[BufferSlice] = []
        for number, place in enumerate(written):
            if any(place.overlaps(other) for other in seen):
                raise _broken(op, "PLAN3", f"result {number} overlaps another result or the scratch memory")
            seen.append(place)
        for number, source in enumerate(places.operands):
            if source is not None and any(source != t and source.overlaps(t) for t in written):
                raise _broken(
                    op, "PLAN3", f"operand {number} overlaps a result in part", "view the same bytes, or others"
                )
        self.check_in_place(op, instruction, places)

    def check_in_place(self, op: ir.Operation, instruction: Instruction, places: Slices) -> None:
        """PLAN5: a result takes an operand's place only where the kernel reads each element before it writes there."""
        allowed = set(reuses(instruction))
        for n, source in enumerate(places.operands):
            if source is None or not source.size or source not in places.results:
                continue
            if (n, places.results.index(source)) not in allowed:
                raise _broken(op, "PLAN5", f"overwrites its operand {n} while it reads it", "write to another memref")

    def check_writable(self, op: ir.Operation, place: BufferSlice) -> None:
        allocation: Allocation = self.sizes[place.allocation]
        if allocation.read_only:
            what = f"the {allocation.kind.value} {max(allocation.number, 0)}"
            raise _broken(op, "PLAN2", f"writes {what}, which is read-only", "give the argument lhlo.result = number")

    def copy(self, op: ir.Operation) -> CopyStep:
        """PLAN4: a copy's source and target are disjoint."""
        source, target = (self.slice_of(op, v) for v in op.operands)
        self.check_writable(op, target)
        if source.overlaps(target):
            raise _broken(op, "PLAN4", "copies between overlapping bytes", "copy to another place first")
        return CopyStep(self.named(op, Op.COPY, array(DType.U8, source.size)), source, target)

    def loop(self, op: ir.Operation) -> WhileStep:
        condition, body = (self.block(region.blocks[0]) for region in op.regions)
        count = op.attributes["trip_count"].value if "trip_count" in op.attributes else None
        return WhileStep(self.named(op, Op.WHILE), condition, body, self.slice_of(op, op.operands[0]), count)

    def case(self, op: ir.Operation) -> ConditionalStep:
        branches = [o.operation for o in op.regions[0].blocks[0].operations if o.operation.name == "lhlo.branch"]
        steps = tuple(self.block(b.regions[0].blocks[0]) for b in branches)
        is_pred = str(op.operands[0].type) == "memref<i1>"
        return ConditionalStep(self.named(op, Op.CONDITIONAL), self.slice_of(op, op.operands[0]), is_pred, steps)

    def profile(self, op: ir.Operation) -> ProfileStep:
        name, number = op.attributes["name"].value, int(op.attributes["id"].value)
        return ProfileStep(name, number, op.name == "lhlo.profile_start")

    def named(self, op: ir.Operation, opcode: Op, shape: Shape = NOTHING) -> Instruction:
        """Stands for a step's HLO instruction: plans print its name."""
        name = op.attributes["name"].value if "name" in op.attributes else opcode.value
        return Instruction(opcode, name, shape, location=location_of(op, self.file))


def _broken(op: ir.Operation, label: str, message: str, remedy: str | None = None) -> VerificationError:
    name = op.attributes.get("name")
    which = f"{op.name} '{name.value}'" if isinstance(name, ir.StringAttr) else op.name
    return VerificationError(f"{which}: {message} [{label}]", location=location_of(op), remedy=remedy)
