"""The products of a convolution's tile, as a function that the kernels of all convolutions call.

Sizes of the window, strides and the number of input features are arguments, so that its text is the same in every
program: it is compiled once a process, and kept in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import I32, I64, POINTER, memory_type, splat
from ..loops.memory import Pointer, load
from ..numerics.convert import convert


@dataclass(frozen=True, slots=True)
class Vectors:
    """`width` neighbouring features as few values of LLVM, which makes vectors of the machine of them when all else is
    done: that is a fraction of the code for the passes before. It does so well for powers of two only.

    source: their dtype in memory; dtype: of the sums.
    """

    source: DType
    dtype: DType
    width: int

    @property
    def lanes(self) -> int:
        """Features of a value."""
        return self.width & -self.width

    @property
    def type(self) -> ir.VectorType:
        return ir.VectorType(memory_type(self.dtype), self.lanes)

    def load(self, code: Code, first: ir.Value) -> list[ir.Value]:
        """The values from an address on."""
        element, b = memory_type(self.source), code.b
        places = [b.gep(first, [I64(n)], source_etype=element) for n in range(0, self.width, self.lanes)]
        raw = ir.VectorType(element, self.lanes)
        return [self.widened(b, b.load(place, typ=raw, align=self.source.bytes)) for place in places]

    def widened(self, b: ir.IRBuilder, raw: ir.Value) -> ir.Value:
        """A value in the dtype of the sums."""
        if self.source is self.dtype:
            return raw
        if self.source is not DType.BF16:
            return b.fpext(raw, self.type) if self.source.bytes < self.dtype.bytes else b.fptrunc(raw, self.type)
        bits = ir.VectorType(I32, self.lanes)
        wide = b.shl(b.zext(raw, bits), ir.Constant(bits, [16] * self.lanes))
        single = b.bitcast(wide, ir.VectorType(ir.FloatType(), self.lanes))
        return single if self.dtype is DType.F32 else b.fpext(single, self.type)

    def half(self, code: Code, place: ir.Value, upper: bool) -> ir.Value:
        """One of two neighbours of bf16 in each lane, as f32. LLVM broadcasts the word of both as it reads it."""
        b, one, words = code.b, ir.VectorType(I32, 1), ir.VectorType(I32, self.lanes)
        word = b.load(place, typ=one, align=2)
        both = b.shuffle_vector(word, ir.Constant(one, None), ir.Constant(words, None))
        operation, number = (b.and_, -1 << 16) if upper else (b.shl, 16)
        return b.bitcast(operation(both, ir.Constant(words, [number] * self.lanes)), self.type)

    def splat(self, code: Code, value: ir.Value) -> ir.Value:
        """A scalar in each lane."""
        return splat(code.b, value, self.lanes)


@dataclass(frozen=True, slots=True)
class Dimension:
    """A loop of products: how many, and the strides of the input and of the weights, in elements."""

    count: IndexValue
    input: int
    weights: int

    def continues(self, outer: Dimension) -> bool:
        """Whether the loop outside it goes on where this one ends, so that both are one loop."""
        count = self.count
        return isinstance(count, int) and (outer.input, outer.weights) == (count * self.input, count * self.weights)


@dataclass(frozen=True, slots=True)
class Micro:
    """Sums of features at each of `positions` places. loops: the loops over the window, inside which is one over the
    input features. adjacent: whether these are in memory. adds: whether the sums are added to what their memory holds.
    rest: whether a call may also ask for one place only. pairs: two neighbours of the input, bf16, are read at once,
    and the number of features is even.
    """

    source: DType
    weights: Vectors
    positions: int
    loops: int
    adjacent: bool
    adds: bool
    rest: bool
    pairs: bool

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.weights.dtype, self.source, self.weights.source))
        marks = f"{'a' * self.adds}{'f' * self.adjacent}{'r' * self.rest}{'p' * self.pairs}"
        return f"legacy.window.{dtypes}.{self.positions}x{self.weights.width}.{self.loops}{marks}"

    def call(
        self,
        code: Code,
        input_: ir.Value,
        apart: int,
        weights: ir.Value,
        sums: ir.Value,
        dimensions: Sequence[Dimension],
        count: IndexValue,
    ) -> None:
        """Emit a call. input_, weights: addresses of the first factors; apart: of neighbouring positions, in elements
        of the input; dimensions: `loops` of the window, then the input features; count: of places.
        """
        numbers = [
            *([count] if self.rest else []),
            *(apart * p for p in range(1, self.positions)),
            *(n for d in dimensions for n in (d.count, d.input, d.weights)),
        ]
        call(code.b, self, [input_, weights, sums, *map(code.value, numbers)])

    def declare(self, module: ir.Module) -> ir.Function:
        numbers = self.rest + self.positions - 1 + 3 * (self.loops + 1)
        return declared(module, self.name, [POINTER] * 3 + [I64] * numbers, (True, True, False))

    def define(self, module: ir.Module) -> None:
        code = Code(module, self.declare(module))
        define_places(code, _Body(self, code, self.positions).emit, _Body(self, code, 1).emit if self.rest else None)


def define_places(code: Code, several: Callable[[], None], one: Callable[[], None] | None) -> None:
    """The body of a function of several places; if the first number of a call is 1, that of one."""
    if one is None:
        several()
    else:
        many = code.branch(code.b.icmp_unsigned("!=", code.function.args[3], I64(1)))
        several()
        many.otherwise()
        one()
        many.join((), ())
    code.b.ret_void()


ZERO = I64(0)

Products: TypeAlias = Callable[[ir.Value, ir.Value, Sequence[ir.Value]], list[ir.Value]]
"""(The places of the first factors, sums) → the sums plus products."""


def nested(
    code: Code,
    numbers: Sequence[ir.Value],
    inner: Products,
    before: Sequence[ir.Value],
    place: ir.Value = ZERO,
    row: ir.Value = ZERO,
) -> list[ir.Value]:
    """`before` plus what `inner` adds in loops. numbers: of each loop the count, the strides of input and weights."""
    if not numbers:
        return inner(place, row, before)
    count, step, below = numbers[:3]
    loop = code.range(0, count, carried=before, unroll=Unroll.NEVER)
    index, b = code.value(loop.index), code.b
    at = b.add(place, b.mul(index, step)), b.add(row, b.mul(index, below))
    return [*loop.close(nested(code, numbers[3:], inner, loop.carried, *at))]


class _Body:
    """Computes the sums at the first places."""

    def __init__(self, micro: Micro, code: Code, positions: int):
        self.micro, self.code, self.positions, self.vectors = micro, code, positions, micro.weights
        self.input, self.weights, self.target = code.function.args[:3]
        given = code.function.args[3 + micro.rest :]
        self.others, self.numbers = given[: positions - 1], given[micro.positions - 1 :]
        self.element = memory_type(micro.source)

    def emit(self) -> None:
        code, micro, vectors = self.code, self.micro, self.vectors
        places = (code.b.gep(self.input, [other], source_etype=self.element) for other in self.others)
        self.starts = [Pointer(self.input), *map(Pointer, places)]
        many = self.positions * vectors.width // vectors.lanes
        halves = many == 1 and not micro.pairs  # one sum would wait for itself
        inner = self._pairs if micro.pairs else self._halves if halves else self._features
        sums = nested(code, self.numbers[:-3], inner, [ir.Constant(vectors.type, None)] * (many + halves))
        for n, total in enumerate([code.b.fadd(*sums)] if halves else sums):
            place = code.b.gep(self.target, [I64(n * vectors.lanes)], source_etype=memory_type(vectors.dtype))
            align = vectors.dtype.bytes
            value = code.b.fadd(code.b.load(place, typ=vectors.type, align=align), total) if micro.adds else total
            code.b.store(value, place, align=align)

    def _features(self, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        loop = self.code.range(0, self.numbers[-3], carried=before, unroll=Unroll.NEVER)
        return [*loop.close(self._feature(self.code.value(loop.index), place, row, loop.carried))]

    def _feature(self, index: ir.Value, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """The products of one feature."""
        code, micro, vectors, b = self.code, self.micro, self.vectors, self.code.b
        _, step, below = self.numbers[-3:]
        at = b.add(place, index if micro.adjacent else b.mul(index, step))
        line = b.add(row, b.mul(index, below))
        weights = vectors.load(code, b.gep(self.weights, [line], source_etype=memory_type(vectors.source)))
        factors = (convert(code, micro.source, vectors.dtype, load(code, s, micro.source, at)) for s in self.starts)
        return self._added(before, (vectors.splat(code, factor) for factor in factors), weights)

    def _added(
        self, before: Sequence[ir.Value], values: Iterable[ir.Value], weights: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """`before` plus the products of a value of each place with the weights."""
        b, found = self.code.b, list[ir.Value]()
        for value in values:
            for weight in weights:
                found.append(b.fadd(before[len(found)], b.fmul(value, weight)))
        return found

    def _halves(self, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """The products of both halves of the features side by side, for the two sums of `before`, then of the last one
        of an odd number.
        """
        code, count = self.code, self.numbers[-3]
        half = code.b.lshr(count, I64(1))
        loop = code.range(0, half, carried=before, unroll=Unroll.NEVER)
        index, (low, high) = code.value(loop.index), loop.carried
        ends = self._feature(index, place, row, [low]), self._feature(code.b.add(index, half), place, row, [high])
        low, high = loop.close([sum_ for (sum_,) in ends])
        rest = code.range(code.b.shl(half, I64(1)), count, carried=[low], unroll=Unroll.NEVER)
        return [*rest.close(self._feature(code.value(rest.index), place, row, rest.carried)), high]

    def _pairs(self, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """The products of features with even numbers, then those of the others: each factor is a half of a word, which
        is broadcast from memory. At one place both are in one loop, so that more sums are under way.
        """
        code, count = self.code, len(before)
        if self.positions == 1:
            zeros = [ir.Constant(self.vectors.type, None)] * count
            loop = code.range(0, self.numbers[-3], 2, carried=[*before, *zeros], unroll=Unroll.NEVER)
            index, low, high = code.value(loop.index), loop.carried[:count], loop.carried[count:]
            both = [*self._half(0, index, place, row, low), *self._half(1, index, place, row, high)]
            ends = loop.close(both)
            return [code.b.fadd(x, y) for x, y in zip(ends[:count], ends[count:], strict=True)]
        for odd in (0, 1):
            loop = code.range(0, self.numbers[-3], 2, carried=before, unroll=Unroll.NEVER)
            before = loop.close(self._half(odd, code.value(loop.index), place, row, loop.carried))
        return [*before]

    def _half(
        self, odd: int, index: ir.Value, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """`before` plus the products of one of two neighbours."""
        code, b, vectors = self.code, self.code.b, self.vectors
        down = b.mul(b.add(index, I64(1)) if odd else index, self.numbers[-1])
        weights = vectors.load(code, b.gep(self.weights, [b.add(row, down)], source_etype=memory_type(vectors.source)))
        places = (b.gep(s.value, [b.add(place, index)], source_etype=self.element) for s in self.starts)
        return self._added(before, (vectors.half(code, at, bool(odd)) for at in places), weights)
