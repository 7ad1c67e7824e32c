"""Computes the value of one element: from a buffer to the node that writes it, and from there to the node's operands.

Rules of elementwise ops get the values of their operands. Rules of other ops are generators that yield requests
`(buffer, index, raw)` and receive values. One loop with an explicit stack runs them, so depth needs no recursion. Each
value is created once per scope (loop body, branch).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Value
from ..core.elements import Scalar, decode, encode, flatten, parts, raw_type
from ..core.graph import Body, Buffer, Node
from ..numerics.elementwise import EMIT, emit_elementwise, takes_raw
from .scratch import Scratch

Indices = tuple[Index, ...]


class Linear(tuple):
    """An index that is one offset in memory, for loops in which all full-size arrays have the same layout."""

    __slots__ = ()


class Reshaped(tuple):
    """An index found from `place`, the number of its element in row-major order, where the divisions that find it need
    not be computed to read an array of that order.
    """

    place: Index

    @classmethod
    def of(cls, index: Indices, place: Index) -> Reshaped:
        made = cls(index)
        made.place = place
        return made


Request = tuple[Buffer, Indices, bool]
"""A read of one element: its buffer, its logical index, and whether the raw (True) or working (False) form is needed.
"""

Reads = Generator[Request, Scalar, Scalar]
ElementRule = Callable[["Elemental", Node, int, Indices, bool], Reads]
"""(elemental, node, output number, index, raw) → a generator of reads that returns the element."""


class Elemental:
    """Computes elements of one kernel. pointers: the kernel's arguments; rules: for ops that are not elementwise.

    scratch: the kernel's scratch memory.
    """

    def __init__(self, b: Builder, pointers: Sequence[Value], rules: Mapping[Op, ElementRule], scratch: Scratch):
        self.b, self.pointers, self.rules, self.scratch = b, pointers, rules, scratch

    def value(self, buffer: Buffer, index: Indices, raw: bool = False) -> Scalar:
        """The element of a buffer at an index."""
        return self.run(self._passing((buffer, index, raw)))

    def run(self, start: Reads) -> Scalar:
        """Run a rule and everything that it reads."""
        stack, sent = [start], None
        while True:
            try:
                request = stack[-1].send(sent)
            except StopIteration as stop:
                stack.pop()
                if not stack:
                    return stop.value
                sent = stop.value
                continue
            sent = self.b.recall(request)
            if sent is None:
                stack.append(self._compute(request))

    def _passing(self, request: Request) -> Reads:
        return (yield request)

    def _compute(self, request: Request) -> Reads:
        buffer, index, raw = request
        other = self.b.recall((buffer, index, not raw))
        if other is not None:
            made = (encode if raw else decode)(self.b, buffer.dtype, other)
        elif buffer.writer is None:
            made = yield from self._load(request)
        elif buffer.writer.opcode in EMIT:
            made = yield from self._elementwise(buffer.writer, index, raw)
        else:
            rule = self.rules[buffer.writer.opcode]
            made = yield from rule(self, buffer.writer, buffer.number, index, raw)
        self.b.remember(request, made)
        return made

    def _load(self, request: Request) -> Reads:
        buffer, index, raw = request
        if not raw:
            return decode(self.b, buffer.dtype, (yield buffer, index, True))
        return self.load_raw(buffer, self.offset(buffer, index))

    def _elementwise(self, node: Node, index: Indices, raw: bool) -> Reads:
        if raw:
            # Also memoise the working form for other readers.
            return encode(self.b, node.output.dtype, (yield node.output, index, False))
        operands: list[Scalar] = []
        form = takes_raw(node)
        for operand in node.inputs:
            operands.append((yield operand, () if not operand.dims else index, form))
        return emit_elementwise(self.b, node, operands)

    def offset(self, buffer: Buffer, index: Indices) -> Index:
        """The offset, in elements, from the start of a buffer."""
        if isinstance(index, Linear):
            return index[0]
        if isinstance(index, Reshaped) and buffer.shape.is_row_major:
            return index.place
        return self.b.offset(index, buffer.strides)

    def load_raw(self, buffer: Buffer, offset: Index) -> Scalar:
        return load_element(self.b, self.pointers[buffer.argument], buffer.dtype, offset)

    def store(self, buffer: Buffer, index: Indices, value: Scalar) -> None:
        """Store a raw element to an output."""
        store_element(self.b, self.pointers[buffer.argument], buffer.dtype, self.offset(buffer, index), value)

    def apply(self, body: Body, operands: Sequence[Scalar]) -> list[Scalar]:
        """The results of a computation on scalars, given working values."""
        scope = {(p, (), False): v for p, v in zip(body.parameters, operands, strict=True)}
        self.b.scopes.append(scope)
        results = [self.value(output, ()) for output in body.outputs]
        self.b.scopes.pop()
        return results


def load_element(b: Builder, pointer: Value, dtype: DType, offset: Index) -> Scalar:
    """Load a raw element."""
    type, size = raw_type(b.types, dtype), dtype.bytes // parts(dtype)
    if not dtype.is_complex:
        return b.load(b.pointer(pointer, offset, type), type, size)
    real = b.mul(offset, 2)
    return (
        b.load(b.pointer(pointer, real, type), type, size),
        b.load(b.pointer(pointer, b.add(real, 1), type), type, size),
    )


def store_element(b: Builder, pointer: Value, dtype: DType, offset: Index, value: Scalar) -> None:
    """Store a raw element."""
    type, size = raw_type(b.types, dtype), dtype.bytes // parts(dtype)
    if not dtype.is_complex:
        b.store(flatten(value)[0], b.pointer(pointer, offset, type), size)
        return
    real = b.mul(offset, 2)
    for i, part in enumerate(flatten(value)):
        b.store(part, b.pointer(pointer, b.add(real, i), type), size)
