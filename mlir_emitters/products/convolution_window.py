"""The products of a convolution's tile, as a function of a module of its own that the kernels of all convolutions call.

Sizes of the window, strides and the number of input features are arguments, so that its text is the same in every
program: it is compiled once a process, and kept in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import decode, flatten, raw_type
from ..loops.elemental import load_element
from ..loops.helper import call_helper, memory_types
from ..numerics.convert import convert_to
from .dot_dtypes import read_vector


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of products: how many, and the strides of the input and of the kernel, in elements."""

    count: Index
    input: int
    kernel: int

    def continues(self, outer: Loop) -> bool:
        """Whether the loop outside it goes on where this one ends, so that both are one loop."""
        count = self.count
        return isinstance(count, int) and (outer.input, outer.kernel) == (count * self.input, count * self.kernel)


def turns(b: Builder, lower: Index, upper: Index, step: int) -> Index:
    """The iterations of a loop, which may have none."""
    return b.div(b.add(b.greatest(b.sub(upper, lower), 0), step - 1), step)


@dataclass(frozen=True, slots=True)
class Window:
    """Sums of `columns` features at each of `positions` places. `loops`: the depth of the loop nest over the products.

    input, kernel: dtypes in memory, converted to `wide`. lanes: features of a value. adjacent: whether the elements of
    the input in the last loop are. masked: only some of the last features are in memory. adds: whether
    sums are added to what their memory holds. pairs: two neighbours of the input, bf16, are read at once, and the last
    loop's count is even. rest: whether a call may also ask for one place only. fma: whether the
    target has fused multiply-adds.
    """

    wide: DType
    input: DType
    kernel: DType
    positions: int
    columns: int
    lanes: int
    loops: int
    adjacent: bool
    masked: bool
    adds: bool
    pairs: bool
    rest: bool
    fma: bool

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.wide, self.input, self.kernel))
        marks = f"{'a' * self.adjacent}{'m' * self.masked}{'s' * self.adds}{'p' * self.pairs}{'r' * self.rest}"
        return f"mlir.window.{dtypes}.{self.positions}x{self.columns}x{self.lanes}.{self.loops}{marks}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of the input, the kernel and the sums; the offsets of the first two, the number
        of features, that of places if it may be 1, the distances of other positions in the input, then the count and
        the strides of each loop.
        """
        memory = memory_types(b, [raw_type(b.types, d) for d in (self.input, self.kernel, self.wide)])
        return [*memory, *[b.types.i64] * (2 + self.rest + self.positions + 3 * self.loops)]

    def call(
        self, b: Builder, places: Sequence[Pointer], apart: int, features: int, loops: Sequence[Loop], count: Index
    ) -> None:
        """Call the function. places: the first elements of the input, the kernel and the sums' memory; count: of the
        places at which there are sums.
        """
        others = [*([count] if self.rest else []), *(apart * p for p in range(1, self.positions))]
        numbers = [features, *others, *(n for loop in loops for n in (loop.count, loop.input, loop.kernel))]
        call_helper(b, self, places, numbers, offsets=2)

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        if not self.rest:
            self._sums(b, parameters, self.positions)
            return
        count = parameters[6]
        others = [*parameters[:6], *parameters[7:]]
        many = b.branch(b.compare_integers("ne", count, b.constant(1, b.types.i64)), [])
        for side, positions in ((0, self.positions), (1, 1)):
            with many.side(side):
                self._sums(b, others, positions)

    def _sums(self, b: Builder, parameters: Sequence[Value], positions: int) -> None:
        """The sums at the first places."""
        input_, kernel, sums, input_at, kernel_at, features, *numbers = parameters
        starts: list[Index] = [0, *numbers[: positions - 1]]
        del numbers[: self.positions - 1]
        element, stored = raw_type(b.types, self.wide), raw_type(b.types, self.kernel)
        vector = b.vector(self.lanes, element)
        vectors = self.columns // self.lanes

        def weights(first: Index, v: int) -> Value:
            place, mask = b.pointer(kernel, b.add(first, v * self.lanes), stored), None
            if self.masked and v == vectors - 1:
                bits = b.vector(self.lanes, b.types.i1)
                mask = b.op("vector.create_mask", b.at(b.sub(features, v * self.lanes)), type=bits)
            return read_vector(b, place, self.kernel, self.wide, self.lanes, mask)

        def nest(level: int, place: Index, first: Index, before: Sequence[Value]) -> list[Value]:
            """`before` plus the products in the loops from `level` on. place, first: of the first factors."""
            if level == self.loops:
                found: list[Value] = []
                read = [weights(first, v) for v in range(vectors)]
                for start in starts:
                    value = load_element(b, input_, self.input, b.add(b.add(input_at, start), place))
                    scalar = flatten(convert_to(b, self.input, self.wide, decode(b, self.input, value)))[0]
                    factor = b.op("vector.broadcast", scalar, type=vector)
                    found += [b.fma(factor, w, before[len(found) + v]) for v, w in enumerate(read)]
                return found
            count, step, row_step = numbers[3 * level : 3 * level + 3]
            if level == self.loops - 1 and self.pairs:
                return of_pairs(place, first, before)
            with b.loop(0, count, 1, before, Unroll.NONE) as loop:
                last = level == self.loops - 1 and self.adjacent
                along = loop.index if last else b.mul(loop.index, step)
                row = b.add(first, b.mul(loop.index, row_step))
                loop.next = nest(level + 1, b.add(place, along), row, loop.carried)
            return loop.values

        def of_pairs(place: Index, first: Index, before: Sequence[Value]) -> list[Value]:
            """The last loop, of even products, then of odd ones: a factor is a half of a word that is broadcast from
            memory, and takes one operation. The few sums of one place would wait for each other: both are in one loop.
            """
            count = numbers[-3]
            if positions == 1:
                with b.loop(0, count, 2, [*before, *[zero] * vectors], Unroll.NONE) as loop:
                    even, odd = loop.carried[:vectors], loop.carried[vectors:]
                    loop.next = [*half(0, loop.index, place, first, even), *half(1, loop.index, place, first, odd)]
                return [b.op("arith.addf", loop.values[v], loop.values[vectors + v]) for v in range(vectors)]
            for turn in (0, 1):
                with b.loop(0, count, 2, before, Unroll.NONE) as loop:
                    loop.next = half(turn, loop.index, place, first, loop.carried)
                before = loop.values
            return list(before)

        def half(turn: int, at: Value, place: Index, first: Index, before: Sequence[Value]) -> list[Value]:
            """`before` plus the products of the element at `at`, or of the next one, at each place."""
            operation, number = (("arith.shli", 16), ("arith.andi", -1 << 16))[turn]
            words = b.vector(self.lanes, b.types.i32)
            constant = b.filled(number, words)
            row = b.add(first, b.mul(b.add(at, turn), numbers[-1]))
            read, found = [weights(row, v) for v in range(vectors)], list[Value]()
            for start in starts:
                where = b.add(b.add(b.add(input_at, start), place), at)
                pair = b.op("vector.broadcast", pair_at(b, input_, where), type=words)
                factor = b.bitcast(b.op(operation, pair, constant), vector)
                found += [b.fma(factor, w, before[len(found) + v]) for v, w in enumerate(read)]
            return found

        zero = b.filled(0, vector)
        for n, value in enumerate(nest(0, 0, kernel_at, [zero] * (positions * vectors))):
            place = b.pointer(sums, n * self.lanes, element)
            if self.adds:
                value = b.op("arith.addf", b.load(place, vector, self.wide.bytes), value)
            b.store(value, place, self.wide.bytes)


def pair_at(b: Builder, memory: Value, place: Index) -> Value:
    """An element of 16 bits in the lower half of a word, the next one in the upper half."""
    two = b.load(b.pointer(memory, place, b.types.i16), b.vector(2, b.types.i16), 2)
    return b.op("vector.bitcast", two, type=b.vector(1, b.types.i32))
