"""The products of a convolution's tile, as a function that the kernels of all convolutions call.

Sizes of the window, strides and the number of input features are arguments, so that its text is the same in every
program: it is compiled once a process, and kept in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence

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
        _define(self, module)


def _define(micro: Micro, module: ir.Module) -> None:
    function = micro.declare(module)
    code = Code(module, function)
    if micro.rest:
        many = code.branch(code.b.icmp_unsigned("!=", function.args[3], I64(1)))
        _sums(code, micro, micro.positions)
        many.otherwise()
        _sums(code, micro, 1)
        many.join((), ())
    else:
        _sums(code, micro, micro.positions)
    code.b.ret_void()


def _sums(code: Code, micro: Micro, positions: int) -> None:
    """The sums at the first places."""
    arguments, vectors = code.function.args, micro.weights
    input_, weights, target = arguments[:3]
    given = arguments[3 + micro.rest :]
    numbers = given[micro.positions - 1 :]
    element = memory_type(micro.source)
    others = given[: positions - 1]
    starts = [Pointer(input_), *(Pointer(code.b.gep(input_, [other], source_etype=element)) for other in others)]

    def nest(level: int, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """`before` plus the products in the loops from `level` on. place, row: of the first factors."""
        if level > micro.loops:
            found: list[ir.Value] = []
            weight = vectors.load(code, code.b.gep(weights, [row], source_etype=memory_type(vectors.source)))
            for start in starts:
                factor = convert(code, micro.source, vectors.dtype, load(code, start, micro.source, place))
                assert isinstance(factor, ir.Value)
                value = vectors.splat(code, factor)
                for w in weight:
                    found.append(code.b.fadd(before[len(found)], code.b.fmul(value, w)))
            return found
        count, step, row_step = numbers[3 * level : 3 * level + 3]
        last = level == micro.loops
        if last and micro.pairs:
            return of_pairs(place, row, before)
        if last and halves:
            return of_halves(place, row, before)
        loop = code.range(0, count, carried=before, unroll=Unroll.NEVER)
        index = code.value(loop.index)
        along = index if last and micro.adjacent else code.b.mul(index, step)
        after = nest(level + 1, code.b.add(place, along), code.b.add(row, code.b.mul(index, row_step)), loop.carried)
        return [value for value in loop.close(after) if isinstance(value, ir.Value)]

    def of_halves(place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """The products of both halves of the features side by side, for the two sums of `before`, then of the last one
        of an odd number.
        """
        count, step, row_step = numbers[-3:]
        half = code.b.lshr(count, I64(1))

        def added(index: ir.Value, sum_: ir.Value) -> ir.Value:
            along = index if micro.adjacent else code.b.mul(index, step)
            at, line = code.b.add(place, along), code.b.add(row, code.b.mul(index, row_step))
            (found,) = nest(micro.loops + 1, at, line, [sum_])
            return found

        loop = code.range(0, half, carried=before, unroll=Unroll.NEVER)
        index, (low, high) = code.value(loop.index), [x for x in loop.carried if isinstance(x, ir.Value)]
        ends = loop.close([added(index, low), added(code.b.add(index, half), high)])
        low, high = (x for x in ends if isinstance(x, ir.Value))
        rest = code.range(code.b.shl(half, I64(1)), count, carried=[low], unroll=Unroll.NEVER)
        (low,) = (x for x in rest.carried if isinstance(x, ir.Value))
        ends = rest.close([added(code.value(rest.index), low)])
        return [*(x for x in ends if isinstance(x, ir.Value)), high]

    def of_pairs(place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """The products of features with even numbers, then those of the others: each factor is a half of a word, which
        is broadcast from memory. At one place both are in one loop, so that more sums are under way.
        """
        if positions == 1:
            count = len(before)
            loop = code.range(0, numbers[-3], 2, carried=[*before, *[zero] * count], unroll=Unroll.NEVER)
            index = code.value(loop.index)
            both = [half(odd, index, place, row, loop.carried[odd * count : (odd + 1) * count]) for odd in (0, 1)]
            ends = [value for value in loop.close([*both[0], *both[1]]) if isinstance(value, ir.Value)]
            return [code.b.fadd(x, y) for x, y in zip(ends[:count], ends[count:], strict=True)]
        for odd in (0, 1):
            loop = code.range(0, numbers[-3], 2, carried=before, unroll=Unroll.NEVER)
            after = half(odd, code.value(loop.index), place, row, loop.carried)
            before = [value for value in loop.close(after) if isinstance(value, ir.Value)]
        return list(before)

    def half(odd: int, index: ir.Value, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """`before` plus the products of one of two neighbours."""
        down = code.b.mul(code.b.add(index, I64(1)) if odd else index, numbers[-1])
        line = code.b.gep(weights, [code.b.add(row, down)], source_etype=memory_type(vectors.source))
        read, found = vectors.load(code, line), list[ir.Value]()
        for start in starts:
            at = code.b.gep(start.value, [code.b.add(place, index)], source_etype=element)
            value = vectors.half(code, at, bool(odd))
            for w in read:
                found.append(code.b.fadd(before[len(found)], code.b.fmul(value, w)))
        return found

    zero = ir.Constant(vectors.type, None)
    many = positions * vectors.width // vectors.lanes
    halves = many == 1 and not micro.pairs  # one sum would wait for itself
    sums = nest(0, I64(0), I64(0), [zero] * (many + halves))
    if halves:
        sums = [code.b.fadd(*sums)]
    for n, total in enumerate(sums):
        place = code.b.gep(target, [I64(n * vectors.lanes)], source_etype=memory_type(vectors.dtype))
        align = vectors.dtype.bytes
        value = code.b.fadd(code.b.load(place, typ=vectors.type, align=align), total) if micro.adds else total
        code.b.store(value, place, align=align)
