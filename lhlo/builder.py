"""LhloBuilder: writes an LHLO program from Python: memory, kernels as functions of values, copies, loops, branches.

What a kernel computes is a Python function on XlaBuilder's values; LHLO says where its operands and results lie.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import FrameType, MappingProxyType
from typing import Any

import numpy as np

from ..formats.builder import ops
from ..formats.builder.builder import XlaBuilder
from ..formats.builder.literals import literal_of
from ..formats.builder.shapes import ShapeLike, shape_of
from ..hlo.errors import InputError, Location
from ..hlo.ir import Instruction, Literal, rewrite
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape, array
from ..planning.allocation import POOL_ALIGNMENT
from ..planning.scratch import scratch_bytes
from .attributes import text_of_string
from .from_hlo import Memref, Writer, exact_operands, write_op
from .from_plan import in_memory_order
from .literals import components, elements_text
from .memrefs import canonical, memref
from .module import LhloModule
from .parse import parse_text

Steps = Callable[[], None]
"""A function that adds steps to the builder it was written with."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory of a program: bytes that hold an array of `shape`. allocation, offset: where it lies, in bytes."""

    builder: LhloBuilder
    memref: Memref
    shape: Shape
    allocation: int
    offset: int = 0

    def __repr__(self) -> str:
        return f"<Buffer {self.memref.name}: {self.shape} at {self.allocation}[{self.offset}]>"

    def view(self, shape: ShapeLike, offset: int = 0) -> Buffer:
        """The bytes from `offset` on as an array of another shape. Raises InputError if they are not all inside."""
        wanted = shape_of(shape)
        if offset < 0 or offset + wanted.bytes > self.shape.bytes:
            raise InputError(
                f"{wanted} at {offset} does not lie inside the {self.shape.bytes} bytes of {self}",
                location=_caller(),
                remedy="view fewer bytes, or make the buffer larger",
            )
        made = self.builder._views.view(self.memref, memref(wanted), offset)
        return Buffer(self.builder, made, wanted, self.allocation, self.offset + offset)


class LhloBuilder:
    """Builds one program; `build` gives the verified LhloModule, which `testbed.compile` takes.

    b = LhloBuilder("axpy")
    x, y, out = b.parameter("f32[8]"), b.parameter("f32[8]"), b.result("f32[8]")
    b.kernel(lambda x, y: 2.0 * x + y, [x, y], [out])
    executable = testbed.compile(b.build(), "mlir")
    """

    def __init__(self, name: str = "main"):
        self.name = name
        self._arguments: list[str] = []
        self._globals: list[str] = []
        self._views, self._writer = Writer(), Writer()
        self._writer.count = 1_000_000  # SSA names of steps and of views stay apart
        self._allocations = 0
        self._numbers = {"parameter": 0, "result": 0}
        self._names: dict[str, int] = {}

    # -- memory --------------------------------------------------------------------------------------------------------
    def parameter(self, shape: ShapeLike) -> Buffer:
        """The next parameter, an array of the caller that nothing writes."""
        return self._argument(shape, "parameter", 16)

    def result(self, shape: ShapeLike) -> Buffer:
        """The next result."""
        return self._argument(shape, "result", POOL_ALIGNMENT)

    def parameter_and_result(self, shape: ShapeLike) -> Buffer:
        """The next parameter, whose memory becomes the next result."""
        number = self._numbers["result"]
        self._numbers["result"] += 1
        return self._argument(shape, "parameter", 16, f", lhlo.result = {number} : i64")

    def temporary(self, shape: ShapeLike) -> Buffer:
        """Memory during a run. It holds any bytes at first."""
        return self._argument(shape, "temporary", POOL_ALIGNMENT)

    def constant(self, value: Any, shape: ShapeLike | None = None) -> Buffer:
        """Memory that holds an array. shape: where value's own type is not meant, such as 'bf16[]' for a float."""
        wanted = None if shape is None else shape_of(shape)
        given = literal_of(value, None if wanted is None else wanted.dtype)
        if wanted is None:
            wanted = given.shape
        if given.shape.dims not in ((), wanted.dims):
            raise InputError(
                f"a constant of shape {wanted}, given {given.shape}", location=_caller(), remedy="reshape it"
            )
        literal = in_memory_order(Literal(wanted, np.broadcast_to(given.array, wanted.dims)))
        dtype, elements = components(literal.shape.dtype, literal.array)
        type_, symbol = memref(array(dtype, *elements.shape)), f"@constant_{self._allocations}"
        text = elements_text(literal).partition(" : tensor")[0]
        self._globals.append(
            f'memref.global "private" constant {symbol} : {type_} = {text} {{alignment = {POOL_ALIGNMENT} : i64}}'
        )
        whole = self._views.fresh(type_)
        self._views.lines.append(f"{whole.name} = memref.get_global {symbol} : {type_}")
        made = whole if type_ == memref(wanted) else self._views.view(whole, memref(wanted))
        self._allocations += 1
        return Buffer(self, made, wanted, self._allocations - 1)

    def _argument(self, shape: ShapeLike, kind: str, alignment: int, more: str = "") -> Buffer:
        wanted = shape_of(shape)
        if not wanted.is_array:
            raise InputError(f"memory of shape {wanted}", location=_caller(), remedy="give an array, one a leaf")
        name, type_ = f"%arg{len(self._arguments)}", memref(wanted)
        more += f", lhlo.number = {self._numbers[kind]} : i64" if kind in self._numbers else ""
        self._arguments.append(
            f'{name}: {type_} {{lhlo.allocation = {self._allocations} : i64, lhlo.kind = "{kind}", '
            f"lhlo.alignment = {alignment} : i64{more}}}"
        )
        if kind in self._numbers:
            self._numbers[kind] += 1
        self._allocations += 1
        return Buffer(self, Memref(name, type_), wanted, self._allocations - 1)

    # -- steps ---------------------------------------------------------------------------------------------------------
    def kernel(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        name: str | None = None,
    ) -> None:
        """One kernel: outputs = function(*inputs). A function of one op makes that op, of several a fusion.

        function: takes and returns XlaOps (testbed.ops), one or a tuple. An output may be an input's memory where the
        kernel reads each element before it writes there. Raises InputError and VerificationError at the caller's line.
        """
        label = self._fresh(name or getattr(function, "__name__", "kernel").replace("<lambda>", "kernel"))
        instruction, sources = _traced(function, [b.shape for b in inputs], label)
        leaves = [shape for _, shape in instruction.shape.leaves()]
        if [(s.dtype, s.dims) for s in leaves] != [(b.shape.dtype, b.shape.dims) for b in outputs]:
            given, wanted = ", ".join(map(str, leaves)), ", ".join(str(b.shape) for b in outputs)
            raise InputError(
                f"kernel {label} gives {given} for outputs {wanted}",
                location=_caller(),
                remedy="give one buffer of the same type for each result",
            )
        instruction = _with_layouts(instruction, [b.shape for b in outputs])
        extra = []
        if needed := scratch_bytes(instruction):
            scratch = self.temporary(("s8", (needed,)))
            extra.append(f"scratch = array<i64: {scratch.allocation}, 0, {needed}>")
        values = [inputs[n].memref for n in sources]
        results = tuple(b.memref for b in outputs)
        write_op(self._writer, instruction, values, results, extra, exact_operands(instruction))

    def copy(self, source: Buffer, target: Buffer) -> None:
        """Copy the bytes of a buffer to another of the same type."""
        if source.memref.type != target.memref.type:
            raise InputError(f"a copy of {source.shape} to {target.shape}", location=_caller(), remedy="use a view")
        types = f"{source.memref.type} to {target.memref.type}"
        self._writer.lines.append(f"memref.copy {source.memref.name}, {target.memref.name} : {types}")

    def while_(self, predicate: Buffer, condition: Steps, body: Steps, trip_count: int | None = None) -> None:
        """Run `condition`; while the pred in `predicate` is true, run `body` and then `condition` again."""
        lines = self._writer.lines
        lines.append(f'"lhlo.while"({predicate.memref.name}) ({{')
        condition()
        lines.append("vector.yield\n}, {")
        body()
        count = f", trip_count = {trip_count} : i64" if trip_count is not None else ""
        name = text_of_string(self._fresh("while"))
        lines.append(f"vector.yield\n}}) {{name = {name}{count}}} : ({predicate.memref.type}) -> ()")

    def case(self, selector: Buffer, branches: Iterable[Steps]) -> None:
        """Run one branch. A pred selects the first if true, else the second; an s32 out of range selects the last."""
        lines = self._writer.lines
        lines.append(f'"lhlo.case"({selector.memref.name}) ({{')
        for branch in branches:
            lines.append('"lhlo.branch"() ({')
            branch()
            lines.append("vector.yield\n}) : () -> ()")
        name = text_of_string(self._fresh("case"))
        lines.append(f"vector.yield\n}}) {{name = {name}}} : ({selector.memref.type}) -> ()")

    def build(self) -> LhloModule:
        """The program. Raises VerificationError if a step breaks a rule of LHLO (docs/lhlo.md)."""
        body = "\n".join([*self._views.lines, *self._writer.lines])
        arguments, name = ", ".join(self._arguments), text_of_string(self.name)
        head = f"func.func @main({arguments}) attributes {{lhlo.program = {name}}}"
        return parse_text("\n".join(self._globals) + f"\n{head} {{\n{body}\nreturn\n}}", self.name)

    def _fresh(self, stem: str) -> str:
        number = self._names[stem] = self._names.get(stem, -1) + 1
        return f"{stem}.{number}" if number else stem


def _traced(function: Callable[..., Any], shapes: Sequence[Shape], name: str) -> tuple[Instruction, list[int]]:
    """The instruction that computes a function, and for each of its operands the number of the input."""
    b = XlaBuilder(name)
    result = function(*[ops.parameter(b, n, shape) for n, shape in enumerate(shapes)])
    if isinstance(result, (tuple, list)):
        result = ops.tuple(b, result)
    body = rewrite(b.build(result).entry, lambda i: i.replace(shape=canonical(i.shape)))
    own = [i for i in body.instructions if i.opcode is not Op.PARAMETER]
    if len(own) == 1 and own[0] is body.root and own[0].opcode is not Op.TUPLE:
        op = own[0]
        return op.replace(name=name), [o.parameter_number for o in op.operands]
    if not own:
        raise InputError(f"kernel {name} returns its input", location=_caller(), remedy="use copy")
    attributes = MappingProxyType({"kind": "kLoop", "calls": body})
    operands = tuple(body.parameters)
    return Instruction(Op.FUSION, name, body.root.shape, operands, attributes), list(range(len(shapes)))


def _with_layouts(instruction: Instruction, outputs: Sequence[Shape]) -> Instruction:
    """The instruction with the layouts of its outputs, where they are not row-major."""
    if all(shape.is_row_major for shape in outputs) or instruction.shape.is_tuple:
        return instruction
    return instruction.replace(shape=outputs[0])


def _caller() -> Location | None:
    """The line of the first caller outside of this file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return None if frame is None else Location(frame.f_lineno, 1, frame.f_code.co_filename)
