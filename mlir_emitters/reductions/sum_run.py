"""Sums of neighbours in memory, or of what is made of them, as functions that kernels share: long sums, and rows of a
softmax or a norm, have one each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Buffer, Node
from ..loops.fetch import DISTANCE_BYTES
from ..loops.helper import call_helper, memory_types
from .long_sums import BLOCK_ELEMENTS, LANES, SHORT_CHAIN_ADDITIONS, PartialSums

MINIMUM_RUN_ELEMENTS, MINIMUM_SINGLE_ELEMENTS = 256, 64
"""Minimum elements for which a function is called: of each row, and of the only one."""


class Form(Enum):
    """What is added up: x, x², x·y, x²·y, (x − n)²; n is a number, the others arrays."""

    PLAIN = "x"
    SQUARED = "xx"
    PRODUCT = "xy"
    WEIGHTED = "xxy"
    SPREAD = "spread"

    @property
    def arrays(self) -> int:
        return 2 if self in (Form.PRODUCT, Form.WEIGHTED) else 1

    @property
    def numbers(self) -> int:
        return int(self is Form.SPREAD)


def _spread(b: Builder, x: Value, n: Value) -> Value:
    difference = b.subf(x, n)
    return b.mulf(difference, difference)


_ADDENDS: dict[Form, Callable[..., Value]] = {
    Form.PLAIN: lambda b, x: x,
    Form.SQUARED: lambda b, x: b.mulf(x, x),
    Form.PRODUCT: lambda b, x, y: b.mulf(x, y),
    Form.WEIGHTED: lambda b, x, y: b.mulf(b.mulf(x, x), y),
    Form.SPREAD: _spread,
}


@dataclass(frozen=True, slots=True)
class SumRun:
    """fetches: what is ahead, too. width: the columns, a power of two: addend k belongs to column k mod width."""

    form: Form
    dtype: DType
    fetches: bool = False
    width: int = 1

    @property
    def name(self) -> str:
        return f"mlir.sum.{self.form.value}.{self.dtype.value}.{self.width}{'.a' * self.fetches}"

    @property
    def fma(self) -> bool:
        return False

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of the arrays and the sum, offsets of arrays, the count, numbers."""
        t, element, arrays = b.types, raw_type(b.types, self.dtype), self.form.arrays
        memory = memory_types(b, [element] * (arrays + 1))
        return [*memory, *[t.i64] * (arrays + 1), *[element] * self.form.numbers]

    def call(self, b: Builder, arrays: Sequence[Pointer], count: int, numbers: Sequence[Value] = ()) -> Value:
        """The sum of `count` addends."""
        return b.load(self.call_into(b, arrays, count, numbers), raw_type(b.types, self.dtype), self.dtype.bytes)

    def call_into(self, b: Builder, arrays: Sequence[Pointer], count: int, numbers: Sequence[Value] = ()) -> Value:
        """The memory of the sums."""
        result = b.alloca(raw_type(b.types, self.dtype), self.width, 64 if self.width > 1 else self.dtype.bytes)
        call_helper(b, self, [*arrays, result], [count, *numbers], len(arrays))
        return result

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body: blocks of partial sums, as in long_sums.py; the rest of the last line comes first."""
        arrays = self.form.arrays
        sources, result = parameters[:arrays], parameters[arrays]
        starts, (count, *numbers) = parameters[arrays + 1 : 2 * arrays + 1], parameters[2 * arrays + 1 :]
        element, bytes_ = raw_type(b.types, self.dtype), self.dtype.bytes
        sums = PartialSums(b, [1], [element])
        columns = None if self.width == 1 else _Columns(b, sums, self.width)
        block_size = SHORT_CHAIN_ADDITIONS * LANES if self.width > 1 else BLOCK_ELEMENTS

        def add(at: Index, lane: Index) -> None:
            place = b.add(at, lane)
            read = [b.pointer(x, b.add(start, place), element) for x, start in zip(sources, starts, strict=True)]
            made = _ADDENDS[self.form](b, *(b.load(p, element, bytes_) for p in read), *numbers)
            slot = b.pointer(sums.partial[0], lane, element)
            b.store(b.addf(b.load(slot, element, bytes_), made), slot, bytes_)

        whole = b.binary("andi", count, -LANES)
        sums.open()
        if columns is not None:
            columns.open()
        with b.loop(0, b.sub(count, whole)) as rest:
            add(whole, rest.index)
        with b.loop(0, whole, block_size, unroll=Unroll.NONE) as block:
            end = b.least(b.add(block.index, block_size), whole)
            with b.loop(block.index, end, LANES, unroll=Unroll.NONE) as line:
                for x, start in zip(sources, starts, strict=True) if self.fetches else ():
                    ahead = b.row(x, b.add(b.add(start, line.index), DISTANCE_BYTES // bytes_), element, LANES)
                    for k in range(0, LANES, b.processor.line_bytes // bytes_):
                        b.prefetch(b.pointer(ahead, k, element))
                with b.loop(0, LANES, unroll=Unroll.VECTORIZED) as lane:
                    add(line.index, lane.index)
            sums.spill_before(end, whole, sums.spill if columns is None else columns.spill)
        if columns is not None:
            columns.give(result)
            return
        (total,) = sums.results([b.constant(-0.0, element)])
        b.store(total, b.pointer(result, 0, element), bytes_)


class _Columns:
    """The totals, in f64, of every `count`-th of some partial sums."""

    def __init__(self, b: Builder, sums: PartialSums, count: int):
        self.b, self.sums, self.count = b, sums, count
        self.space = b.alloca(b.types.f64, count, 64)

    def open(self) -> None:
        b = self.b
        with b.loop(0, self.count) as loop:
            b.store(b.f64(-0.0), b.pointer(self.space, loop.index, b.types.f64), 8)

    def spill(self) -> None:
        """Add the partial sums to the totals, and start them again."""
        for at, total in self._totals():
            self.b.store(total, self.b.pointer(self.space, at, self.b.types.f64), 8)
        self.sums.clear()

    def give(self, result: Value) -> None:
        """Store the sums of columns."""
        b, (element,) = self.b, self.sums.types
        for at, total in self._totals():
            narrow = ir.VectorType.get(total.type.shape, element)
            value = total if element == b.types.f64 else b.op("arith.truncf", total, type=narrow)
            b.store(value, b.pointer(result, at, element), 8 if element == b.types.f64 else 4)

    def _totals(self) -> Iterator[tuple[int, Value]]:
        """(The first column, totals of neighbours with what was added up since they were written)."""
        b, at = self.b, 0
        for part in self.sums.tree(0, self.count):
            wide = ir.VectorType.get(part.type.shape, b.types.f64)
            value = part if part.type == wide else b.op("arith.extf", part, type=wide)
            before = b.load(b.pointer(self.space, at, b.types.f64), wide, 8)
            yield at, b.op("arith.addf", before, value)
            at += wide.shape[0]


@dataclass(frozen=True, slots=True)
class Addends:
    """How the operand of a sum is made of arrays in memory and of numbers."""

    form: Form
    arrays: Sequence[Buffer]
    numbers: Sequence[Buffer] = ()


def is_run(facts: Facts, count: int, single: bool = False) -> bool:
    """Whether a function adds up rows of this length. single: there is one."""
    return count >= (MINIMUM_SINGLE_ELEMENTS if single else MINIMUM_RUN_ELEMENTS) and not (
        facts.strict or facts.by_element
    )


def addends_of(operand: Buffer, in_row: bool = False) -> Addends | None:
    """How a function makes the addends. in_row: numbers of a row may be among them."""
    if operand.dtype not in (DType.F32, DType.F64):
        return None
    stored = stored_of(operand)
    if stored is not None:
        return Addends(Form.PLAIN, [stored])
    node = _origin(operand).writer
    if node is None:
        return None
    if node.opcode is Op.MULTIPLY:
        return _product(node, in_row)
    return None


def _product(node: Node, in_row: bool) -> Addends | None:
    left, right = node.inputs
    found = first, second = stored_of(left), stored_of(right)
    if first is not None and second is not None:
        return Addends(Form.SQUARED, [first]) if first is second else Addends(Form.PRODUCT, [first, second])
    difference = left.writer
    if left is right and in_row and difference is not None and difference.opcode is Op.SUBTRACT:
        stored = stored_of(difference.inputs[0])
        return None if stored is None else Addends(Form.SPREAD, [stored], [difference.inputs[1]])
    for square, other in ((_origin(left).writer, found[1]), (_origin(right).writer, found[0])):
        if other is None or square is None or square.opcode is not Op.MULTIPLY:
            continue
        if square.inputs[0] is square.inputs[1] and (stored := stored_of(square.inputs[0])) is not None:
            return Addends(Form.WEIGHTED, [stored, other])
    return None


def scaled_of(operand: Buffer) -> tuple[Buffer, Buffer | None] | None:
    """(the array, the broadcast number) whose product is an operand; without a product no number."""
    stored = stored_of(operand)
    if stored is not None:
        return stored, None
    node = _origin(operand).writer
    if node is None or node.opcode is not Op.MULTIPLY:
        return None
    for side, other in (node.inputs, list(node.inputs)[::-1]):
        stored = stored_of(side)
        if stored is not None and other.writer is not None and other.writer.opcode is Op.BROADCAST:
            return stored, other
    return None


def stored_of(buffer: Buffer) -> Buffer | None:
    """What is in memory and has the elements of a buffer at the same offsets."""
    source = _origin(buffer)
    return source if source.writer is None and source.argument >= 0 else None


def _origin(buffer: Buffer) -> Buffer:
    """What a buffer is behind reshapes that move nothing."""
    while buffer.writer is not None and buffer.writer.opcode in (Op.RESHAPE, Op.BITCAST):
        (before,) = buffer.writer.inputs
        if not (buffer.shape.is_row_major and before.shape.is_row_major) or before.dtype is not buffer.dtype:
            break
        buffer = before
    return buffer
