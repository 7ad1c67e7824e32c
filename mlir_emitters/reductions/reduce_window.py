"""reduce-window: elements as loops over the window inside the operand; a cumulative one as a running reduction.

If it does not run along the fastest dimension, it keeps a tile of running values on the stack, one per column;
otherwise it carries one value along a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from ...hlo.attributes import Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Loop, Unroll, Value
from ..core.elements import Scalar, encode, flatten, gathered, spread, unflatten
from ..core.graph import Buffer, Node
from ..core.slots import Slots
from ..loops.elemental import Elemental, ElementRule, Indices, Reads
from ..loops.ranges import Steps, chunks, grouped, outer_loops, width_of
from ..loops.reduced import only_op
from ..numerics import half
from .windows import Sliding


def slides_of(node: Node) -> list[Sliding]:
    window: Window = node.attributes.get("window", Window(()))
    source, result = node.inputs[0].dims, node.output.dims
    sizes = window.dims or (WindowDim(1),) * len(source)
    return [
        Sliding(n, w.size, count, w.stride, w.rhs_dilate, w.pad_low, w.lhs_dilate, w.reverse)
        for w, n, count in zip(sizes, source, result, strict=True)
    ]


def reduce_window_value(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    b, slides = e.b, slides_of(node)
    count, dtypes = len(node.outputs), [x.dtype for x in node.outputs]
    totals: list[Scalar] = []
    for init in node.inputs[count:]:
        totals.append((yield init, (), False))
    if all(s.window and s.input for s in slides):
        loops: list[Loop] = []
        place: list[Index] = []
        carried = spread(totals)
        for slide, position in zip(slides, index, strict=True):
            lower, upper, step = slide.taps(b, position)
            loops.append(b.open_loop(lower, upper, step, carried))
            carried, tap = loops[-1].carried, loops[-1].index
            place.append(slide.element(b, position, _mirrored(b, lower, upper, step, tap) if slide.reverse else tap))
        elements: list[Scalar] = []
        for source in node.inputs[:count]:
            elements.append((yield source, tuple(place), False))
        results = spread(combine(e, node, gathered(carried, dtypes), elements))
        results = b.close_loops(loops, results)
        totals = gathered(results, dtypes)
    for k, value in enumerate(totals):
        b.remember((node.outputs[k], index, False), value)
    return encode(b, node.outputs[number].dtype, totals[number]) if raw else totals[number]


RULES: dict[Op, ElementRule] = {Op.REDUCE_WINDOW: reduce_window_value}


def _mirrored(b: Builder, lower: Index, upper: Index, step: int, tap: Index) -> Index:
    """The window position at the same distance from the other end of the range."""
    turns = b.div(b.sub(b.sub(upper, 1), lower), step)
    return b.sub(b.add(b.add(lower, lower), b.mul(turns, step)), tap)


def combine(e: Elemental, node: Node, totals: Sequence[Scalar], elements: Sequence[Scalar]) -> list[Scalar]:
    """Combine one more element of each operand."""
    with e.b.reassociating() if lone_op(node) is not None else nullcontext():
        return e.apply(node.bodies[0], [*totals, *elements])


def lone_op(node: Node) -> Op | None:
    """The op on both parameters that is the whole computation, if it is associative and commutative; otherwise None."""
    op = only_op(node)
    return op if op in _ASSOCIATIVE else None


_ASSOCIATIVE = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


# A kernel whose root is cumulative ----------------------------------------------------------------------------------

RUNS_TOGETHER = 4
"""Runs along memory that advance together, since each sum waits for the one before."""


TILE_RESULTS = 128
"""Running values kept side by side: with half of them, loops take a fifth longer."""


def cumulative(node: Node) -> tuple[int, bool] | None:
    """(dimension, from the end) if each window is the previous one plus one element along this dimension; else None."""
    found = []
    for d, s in enumerate(slides_of(node)):
        if (s.window, s.stride, s.low) == (1, 1, 0) and s.input == s.result:
            continue
        plain = (s.stride, s.spread, s.gap, s.reverse) == (1, 1, 1, False) and s.result <= s.input
        if not plain or min(s.window, s.result) < 2:
            return None
        forward = s.low == s.window - 1 and s.window >= s.result
        backward = s.low == 0 and s.window >= s.input and lone_op(node) is not None
        if not forward and not backward:
            return None
        found.append((d, not forward))
    return found[0] if len(found) == 1 and node.inputs[0].shape.size else None


class RunningReduction:
    """Loops: other dimensions, tiles of the fastest dimension, the dimension that it runs along, one tile."""

    def __init__(self, e: Elemental, node: Node, results: Sequence[Buffer], along: int, from_end: bool):
        self.e, self.b, self.node, self.results, self.along, self.from_end = e, e.b, node, results, along, from_end
        self.size, self.count = node.inputs[0].dims[along], results[0].dims[along]
        self.index: dict[int, Index] = dict.fromkeys(range(len(results[0].dims)), 0)
        only = node.output.dtype
        self.in_double = only is DType.F32 and lone_op(node) is Op.ADD and not self.b.strict

    def emit(self, steps: Steps | None = None) -> None:
        b, dims = self.b, self.results[0].dims
        order = self.results[0].order
        column = order[-1] if order[-1] != self.along else None
        starts = spread([self.e.value(x, ()) for x in self.node.inputs[len(self.results) :]])
        starts = [b.extend(v) for v in starts] if self.in_double else starts
        inside = () if steps is None else steps.dimensions
        outer = [d for d in order if d not in (self.along, column)]
        if column is None:
            for first, count in self.groups(steps, outer):
                self.rows(starts, outer[-1] if outer else self.along, first, count)
            return
        with outer_loops(b, steps, inside, dims, outer) as places:
            self.index |= places
            for begin, width in chunks(b, 0, dims[column], TILE_RESULTS, bare=False):
                self.tile(starts, column, begin, width)

    @property
    def unseen(self) -> int:
        """The number of elements before the first result, if it runs from the end."""
        return self.size - self.count if self.from_end else 0

    def groups(self, steps: Steps | None, outer: Sequence[int]) -> Iterator[tuple[Index, int]]:
        """Loops over the runs, which are along memory: the first of some neighbours along the last of the outer
        dimensions, and how many. The index has the positions along the others.
        """
        b, dims = self.b, self.results[0].dims
        if steps is not None and (*outer,) == steps.dimensions:
            width = width_of(steps.partition, dims[outer[-1]], RUNS_TOGETHER, least=RUNS_TOGETHER)
            if width is not None:
                for places, first, count in grouped(b, steps, [dims[d] for d in outer], width):
                    self.index |= zip(outer, places, strict=False)
                    yield first, count
                return
        together = RUNS_TOGETHER if outer and steps is None else 1
        loops = outer[:-1] if together > 1 else outer
        with outer_loops(b, steps, () if steps is None else steps.dimensions, dims, loops) as found:
            self.index |= found
            if together == 1:
                yield (self.index[outer[-1]] if outer else 0), 1
                return
            yield from chunks(b, 0, dims[outer[-1]], together, bare=False)

    def rows(self, starts: list[Value], dimension: int, first: Index, count: int) -> None:
        """Values carried along neighbouring rows side by side, in memory order or against it."""
        b, each = self.b, len(starts)
        values = starts * count
        for lower, upper in ((0, self.unseen), (self.unseen, self.unseen + self.count)):
            if lower == upper:
                continue
            with b.loop(lower, upper, 1, values) as loop:
                found: list[Value] = []
                for k in range(count):
                    self.index[dimension] = b.add(first, k)
                    mine = self.more(loop.carried[k * each : (k + 1) * each], loop.index)
                    if lower == self.unseen:
                        self.write(mine)
                    found += mine
                loop.next = found
            values = loop.values

    def tile(self, starts: list[Value], column: int, begin: Index, width: int) -> None:
        """Many values side by side, on the stack."""
        b = self.b
        slots = Slots.for_values(b, starts, width, alignment=1)
        with b.loop(0, width) as loop:
            slots.write(loop.index, starts)
        for lower, upper, shown in (
            (0, self.unseen, False),
            (self.unseen, self.unseen + self.count, True),
        ):
            if lower == upper:
                continue
            with b.loop(lower, upper) as turn, b.loop(0, width) as loop:
                self.index[column] = b.add(begin, loop.index)
                values = self.more(slots.read(loop.index), turn.index)
                if shown:
                    self.write(values)
                slots.write(loop.index, values)

    def more(self, values: Sequence[Value], turn: Index) -> list[Value]:
        """The values after one more element. Sets the index to that of the result."""
        b = self.b
        self.index[self.along] = b.sub(self.size - 1, turn) if self.from_end else turn
        elements = [self.e.value(x, tuple(self.index.values())) for x in self.node.inputs[: len(self.results)]]
        if self.in_double:  # rounding errors of a long f32 chain would be visible
            return [b.op("arith.addf", values[0], b.extend(flatten(elements[0])[0]))]
        return spread(combine(self.e, self.node, gathered(values, [x.dtype for x in self.node.outputs]), elements))

    def write(self, values: Sequence[Value]) -> None:
        b = self.b
        if self.in_double:
            values = [b.truncate(values[0], b.types.f32)]
        for value, result in zip(gathered(values, [x.dtype for x in self.node.outputs]), self.results, strict=True):
            self.e.store(result, tuple(self.index.values()), encode(b, result.dtype, value))


# A kernel whose root combines the windows of neighbours side by side --------------------------------------------------

MINIMUM_RESULTS = 8
"""Results along memory: a tile pays off from this number up."""

UNROLLED_RESULTS = 64
"""Results of a tile below which LLVM unrolls its loops before it makes vectors."""


def is_pool(node: Node) -> bool:
    """Whether windows may be combined in any order, and there are enough neighbours."""
    result, slides = node.output, slides_of(node)
    if lone_op(node) is None or not node.inputs[0].shape.size or not result.dims:
        return False
    return result.dims[result.shape.minor_to_major[0]] >= MINIMUM_RESULTS and any(s.window > 1 for s in slides)


class Pool:
    """Loops: all dimensions except the fastest, tiles of the fastest, positions in the window, one tile."""

    def __init__(self, e: Elemental, node: Node, result: Buffer):
        self.e, self.b, self.node, self.result, self.slides = e, e.b, node, result, slides_of(node)
        self.column = result.shape.minor_to_major[0]
        self.index: dict[int, Index] = dict.fromkeys(range(len(result.dims)), 0)
        op = lone_op(node)
        self.selects = op in (Op.MAXIMUM, Op.MINIMUM)
        by_key = self.selects and node.output.dtype is DType.F16 and not self.b.by_element
        self.keys = op if by_key else None  # f16 is compared by integers, which accumulators are, then

    def emit(self, steps: Steps | None = None) -> None:
        b, dims = self.b, self.result.dims
        start = flatten(self.e.value(self.node.inputs[1], ()))
        outer = list(reversed(self.result.shape.minor_to_major[1:]))
        with outer_loops(b, steps, () if steps is None else steps.dimensions, dims, outer) as places:
            self.index |= places
            for begin, width in chunks(b, 0, dims[self.column], TILE_RESULTS, bare=False):
                self.tile(start, begin, width)

    def tile(self, start: Sequence[Value], begin: Index, width: int) -> None:
        b = self.b
        # Sums of unrolled loops stay in registers; of maxima LLVM makes vectors along the window, which gather.
        unroll = Unroll.VECTORIZED if self.selects and width < UNROLLED_RESULTS else Unroll.ANY
        start = self.opened(start)
        slots = Slots.for_values(b, start, width, alignment=1)
        with b.loop(0, width, unroll=unroll) as loop:
            slots.write(loop.index, start)
        loops, spot = self.open_rows()
        slide = self.slides[self.column]
        loops.append(b.open_loop(0, slide.window))
        tap = loops[-1].index
        loops.append(b.open_loop(*slide.positions(b, tap, begin, b.add(begin, width)), unroll=unroll))
        spot[self.column] = slide.element(b, loops[-1].index, tap)
        at = b.sub(loops[-1].index, begin)
        slots.write(at, self.joined(slots.read(at), self.element(spot)))
        b.close_loops(loops)
        with b.loop(0, width, unroll=unroll) as loop:
            self.write(b.add(begin, loop.index), slots.read(loop.index))

    def open_rows(self) -> tuple[list[Loop], list[Index]]:
        """Open loops over the rows of the input under a tile: the loops, and their positions in the input."""
        loops: list[Loop] = []
        spot: list[Index] = [0] * len(self.slides)
        for d, slide in enumerate(self.slides):
            if d != self.column:
                loops.append(self.b.open_loop(*slide.taps(self.b, self.index[d])))
                spot[d] = slide.element(self.b, self.index[d], loops[-1].index)
        return loops, spot

    # Accumulators: the parts of an element, or the key of one ---------------------------------------------------------

    def element(self, spot: Sequence[Index]) -> list[Value]:
        return self.opened(flatten(self.e.value(self.node.inputs[0], tuple(spot))))

    def opened(self, values: Sequence[Value]) -> list[Value]:
        return [*values] if self.keys is None else [half.key(self.b, self.keys, values[0])]

    def joined(self, old: Sequence[Value], new: Sequence[Value]) -> list[Value]:
        """The combination of two accumulators."""
        if self.keys is not None:
            return [half.best_key(self.b, self.keys, old[0], new[0])]
        both = ([unflatten([*x], self.node.output.dtype)] for x in (old, new))
        return flatten(combine(self.e, self.node, *both)[0])

    def write(self, position: Index, values: list[Value]) -> None:
        """Store the result at a position along the fastest dimension."""
        b, dtype = self.b, self.node.output.dtype
        self.index[self.column] = position
        value = unflatten(values, dtype) if self.keys is None else half.of_key(b, values[0])
        self.e.store(self.result, tuple(self.index.values()), encode(b, dtype, value))
