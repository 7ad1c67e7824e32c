"""Proof that a plan's memory is right: follow the value in each byte range through all steps, loops and branches.

The checker shares no code with buffer assignment, except the definitions of which ops move no bytes and which may work
in place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from ..hlo.analysis.leaves import moves_no_bytes
from ..hlo.errors import VerificationError
from ..hlo.ir import Computation, Instruction
from ..hlo.opclasses import branches, control_computations
from ..hlo.opcodes import Op
from ..hlo.shapes import ShapeIndex
from .allocation import POOL_ALIGNMENT
from .inplace import reuses
from .liveness import is_plain_copy
from .plan import (
    AllocationKind,
    BufferSlice,
    ConditionalStep,
    CopyStep,
    KernelStep,
    Plan,
    ProfileStep,
    Step,
    WhileStep,
)
from .scratch import scratch_bytes

Value = tuple[Instruction, int]
"""(instruction, leaf number): a leaf of the instruction that made it, or of a parameter."""


def check_assignment(plan: Plan) -> None:
    """Raise VerificationError if a step reads bytes that do not hold its operand, or writes where it must not."""
    _Checker(plan).run()


class _Memory:
    """Disjoint byte ranges, and the values that each holds."""

    def __init__(self) -> None:
        self.offsets: dict[int, list[int]] = {}
        self.held: dict[tuple[int, int], tuple[int, frozenset[Value]]] = {}

    def copy(self) -> _Memory:
        other = _Memory()
        other.offsets = {a: list(o) for a, o in self.offsets.items()}
        other.held = dict(self.held)
        return other

    def values(self, piece: BufferSlice) -> frozenset[Value]:
        size, values = self.held.get((piece.allocation, piece.offset), (-1, frozenset()))
        return values if size == piece.size else frozenset()

    def write(self, piece: BufferSlice, values: frozenset[Value]) -> None:
        offsets = self.offsets.setdefault(piece.allocation, [])
        low = max(bisect_left(offsets, piece.offset) - 1, 0)
        high = bisect_right(offsets, piece.offset + piece.size - 1)
        for offset in offsets[low:high]:
            if offset + self.held[piece.allocation, offset][0] > piece.offset:
                del self.held[piece.allocation, offset]
                offsets.remove(offset)
        insort(offsets, piece.offset)
        self.held[piece.allocation, piece.offset] = (piece.size, values)

    def add(self, piece: BufferSlice, value: Value) -> None:
        """Record that the bytes also hold another value from now on."""
        self.held[piece.allocation, piece.offset] = (piece.size, self.values(piece) | {value})

    def meet(self, other: _Memory) -> _Memory:
        """The values that both memories hold."""
        both = _Memory()
        for (allocation, offset), (size, values) in self.held.items():
            other_size, other_values = other.held.get((allocation, offset), (-1, frozenset()))
            if size == other_size and values & other_values:
                both.held[allocation, offset] = (size, values & other_values)
                both.offsets.setdefault(allocation, []).append(offset)
        for offsets in both.offsets.values():
            offsets.sort()
        return both


class _Checker:
    def __init__(self, plan: Plan):
        self.plan = plan
        self.memory = _Memory()
        self.leaves: dict[Instruction, tuple[Value | None, ...]] = {}
        self.current: Instruction | None = None

    def fail(self, message: str) -> NoReturn:
        name = self.current.name if self.current is not None else "end"
        raise VerificationError(f"plan of {self.plan.module.name}, at {name}: {message}")

    def run(self) -> None:
        for a in self.plan.assignment.allocations:
            if a.size < 0 or a.alignment & (a.alignment - 1):
                self.fail(f"allocation {a.index} has size {a.size}, alignment {a.alignment}")
        for computation in control_computations(self.plan.module):
            self.resolve(computation)
        self.fill()
        self.steps(self.plan.steps)
        self.current = None
        root = self.plan.module.entry.root
        allocations = self.plan.assignment.allocations
        results = {a.number: a for a in allocations if a.kind is AllocationKind.RESULT}
        results |= {a.result: a for a in allocations if a.result >= 0}
        leaves = [(v, index) for v, (index, shape) in zip(self.leaves[root], root.shape.leaves()) if shape.is_array]
        for n, (value, index) in enumerate(leaves):
            if n not in results:
                self.fail(f"result {index} has no allocation")
            where = BufferSlice(results[n].index, 0, results[n].size)
            if where.size and value not in self.memory.values(where):
                self.fail(f"result {index} is not in its allocation {results[n].index}")

    def resolve(self, computation: Computation) -> None:
        """Trace each leaf back through ops that move no bytes."""
        for i in computation.instructions:
            if i.opcode is Op.TUPLE:
                self.leaves[i] = tuple(v for o in i.operands for v in self.leaves[o])
            elif i.opcode is Op.GET_TUPLE_ELEMENT:
                elements, n = i.operands[0].shape.elements, i.attributes["index"]
                start = sum(1 for e in elements[:n] for _ in e.leaves())
                self.leaves[i] = self.leaves[i.operands[0]][start : start + sum(1 for _ in elements[n].leaves())]
            elif moves_no_bytes(i) or is_plain_copy(i):
                self.leaves[i] = self.leaves[i.operands[0]] if i.operands and i.opcode is not Op.AFTER_ALL else (None,)
            else:
                self.leaves[i] = tuple(
                    (i, n) if shape.is_array else None for n, (_, shape) in enumerate(i.shape.leaves())
                )

    def fill(self) -> None:
        """Write the values of parameters and constants, which exist from the start."""
        for computation in control_computations(self.plan.module):
            for i in computation.instructions:
                if i.opcode is Op.CONSTANT or (i.opcode is Op.PARAMETER and computation is self.plan.module.entry):
                    kind = AllocationKind(i.opcode.value)
                    for piece, value in self.pieces(i):
                        if self.plan.assignment.allocations[piece.allocation].kind is kind and piece.size:
                            self.memory.write(piece, self.memory.values(piece) | {value})

    def pieces(self, i: Instruction) -> list[tuple[BufferSlice, Value]]:
        """(slice, value) of each array leaf."""
        return [
            (self.place(i, index), value)
            for (index, shape), value in zip(i.shape.leaves(), self.leaves[i])
            if value is not None
        ]

    def place(self, i: Instruction, index: ShapeIndex = ()) -> BufferSlice:
        if (i, index) not in self.plan.assignment.slices:
            self.fail(f"{i.name} has no place for {list(index)}")
        return self.plan.assignment.slice_of(i, index)

    def read(self, piece: BufferSlice, value: Value) -> None:
        if piece.size and value not in self.memory.values(piece):
            self.fail(f"{piece} does not hold {value[0].name} leaf {value[1]}")

    def write(self, piece: BufferSlice, values: frozenset[Value]) -> None:
        allocation = self.plan.assignment.allocations[piece.allocation]
        if piece.offset < 0 or piece.offset + piece.size > allocation.size:
            self.fail(f"{piece} lies outside its allocation of {allocation.size} bytes")
        if piece.size and allocation.read_only:
            self.fail(f"{piece} of a {allocation.kind.value} is written")
        if piece.size:
            self.memory.write(piece, values)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, ProfileStep):
                continue
            self.current = step.instruction
            if isinstance(step, KernelStep):
                self.kernel(step)
            elif isinstance(step, CopyStep):
                values = self.memory.values(step.source)
                if not values or step.source.size != step.destination.size or step.source.overlaps(step.destination):
                    self.fail(f"bad copy of {step.source} to {step.destination}")
                self.write(step.destination, values)
            elif isinstance(step, WhileStep):
                self.loop(step)
            else:
                self.conditional(step)

    def kernel(self, step: KernelStep) -> None:
        i, kernel = step.instruction, step.kernel
        self.arguments(step)
        for operand, number in zip(i.operands, kernel.operands, strict=True):
            for piece, value in self.pieces(operand):
                if step.arguments[number] != piece:
                    self.fail(f"operand {operand.name} lies at {piece}, not at {step.arguments[number]}")
                self.read(piece, value)
        results = self.pieces(i)
        numbers = [n for n in kernel.results if n >= 0]
        if [step.arguments[n] for n in numbers] != [p for p, _ in results]:
            self.fail("results are not where the kernel writes them")
        self.scratch(step)
        allowed = set(reuses(i))
        for position, number in enumerate(kernel.operands):
            if number < 0 or number not in numbers or not step.arguments[number].size:
                continue
            if (position, numbers.index(number)) not in allowed:
                self.fail(f"operand {position} is overwritten while it is read")
        for piece, value in results:
            self.write(piece, frozenset({value}))

    def arguments(self, step: KernelStep) -> None:
        """Check that arguments are pairwise disjoint, and aligned and written as declared."""
        allocations = self.plan.assignment.allocations
        ordered = sorted((p for p in step.arguments if p.size), key=lambda p: (p.allocation, p.offset))
        for a, b in pairwise(ordered):
            if a.overlaps(b):
                self.fail(f"arguments {a} and {b} overlap")
        for n, (piece, declared) in enumerate(zip(step.arguments, step.kernel.arguments, strict=True)):
            if piece.offset % declared.alignment or allocations[piece.allocation].alignment < declared.alignment:
                self.fail(f"argument {n} at {piece} is not {declared.alignment}-byte aligned")
            written = n in step.kernel.results or n == step.kernel.scratch
            if piece.size != declared.slice.size or declared.written != written:
                self.fail(f"argument {n} differs from the shared kernel {step.kernel.name}")

    def scratch(self, step: KernelStep) -> None:
        """Check the last argument's size, if the kernel needs scratch memory, and drop what these bytes held."""
        number, needed = step.kernel.scratch, scratch_bytes(step.instruction)
        if not needed:
            if number >= 0:
                self.fail("scratch memory for a kernel that needs none")
            return
        if number != len(step.arguments) - 1 or step.arguments[number].size < needed:
            self.fail(f"the kernel lacks its {needed} bytes of scratch memory")
        if step.kernel.arguments[number].alignment < POOL_ALIGNMENT:
            self.fail(f"scratch memory is not {POOL_ALIGNMENT}-byte aligned")
        self.write(step.arguments[number], frozenset())

    def enter(self, source: Instruction, parameter: Instruction) -> None:
        """Bind a parameter of a loop or branch to the operand's bytes, where these still hold the operand."""
        for (_, value), (here, name) in zip(self.pieces(source), self.pieces(parameter), strict=True):
            if here.size and value in self.memory.values(here):
                self.memory.add(here, name)

    def leave(self, root: Instruction, target: Instruction, name: Instruction) -> None:
        """Check that `target` holds the root's value; from now on its bytes also count as `name`."""
        for (_, value), (here, _), (_, new) in zip(
            self.pieces(root), self.pieces(target), self.pieces(name), strict=True
        ):
            if here.size:
                self.read(here, value)
                self.memory.add(here, new)

    def loop(self, step: WhileStep) -> None:
        i = step.instruction
        condition, body = i.attributes["condition"], i.attributes["body"]
        self.enter(i.operands[0], body.parameters[0])
        self.enter(i.operands[0], condition.parameters[0])
        before = self.memory.copy()
        self.steps(step.condition)
        self.current = i
        if step.predicate != self.place(condition.root):
            self.fail("the predicate is read elsewhere than the condition leaves it")
        self.read(step.predicate, self.leaves[condition.root][0] or (condition.root, 0))
        self.steps(step.body)
        self.current = i
        self.leave(body.root, body.parameters[0], body.parameters[0])
        self.leave(body.root, condition.parameters[0], condition.parameters[0])
        self.memory = before.meet(self.memory)
        self.steps(step.condition)
        self.current = i
        self.leave(condition.parameters[0], i, i)

    def conditional(self, step: ConditionalStep) -> None:
        i = step.instruction
        self.read(step.selector, self.leaves[i.operands[0]][0] or (i, 0))
        before, after = self.memory, None
        for steps, branch, operand in zip(step.branches, branches(i), i.operands[1:], strict=True):
            self.memory = before.copy()
            self.enter(operand, branch.parameters[0])
            self.steps(steps)
            self.current = i
            self.leave(branch.root, i, i)
            after = self.memory if after is None else after.meet(self.memory)
        self.memory = after if after is not None else before
