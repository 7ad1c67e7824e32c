"""pad at a kernel's root whose elements lie apart in memory: one loop over the elements of a row writes each of them
with the gap behind it, so that LLVM interleaves vectors of them. An element at a time, each place divides by the
distance.

Where processors have no masks, rows of narrow elements have such loops without gaps, too: the plain nest reads an
element only where it is the operand's, which is no vector there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...hlo.attributes import PadDim
from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Unroll, Value
from ..core.elements import Scalar, parts
from ..core.facts import Facts
from ..core.graph import Buffer, Node, reachable
from ..loops.elemental import Elemental
from ..loops.form import Answer, Fits, fewer, more
from ..loops.ranges import Steps, neighbours, open_steps, outer_loops
from ..loops.view import Subject, View
from .padded_rows import MAXIMUM_ROW_ELEMENTS
from .regions import boxes_of

MAXIMUM_NEIGHBOURS = 8
"""Neighbours in memory that LLVM interleaves at most."""

MINIMUM_ROW_PLACES, SCATTERED_BYTES = 32, 4
"""Places of a row below which LLVM would make vectors of several rows, and scatter them; bytes of what it scatters."""

MAXIMUM_UNMASKED_BYTES = 2
"""Bytes of elements for which processors without masks have no vectors of what is read under a condition."""

MINIMUM_ELEMENTS = 1 << 12
"""Places of such a result below which all that counts is what it takes to compile."""


def why_not(facts: Facts, node: Node, result: Buffer) -> str | None:
    """None if a pad of elements that are few operations each has loops of its own over them: if they lie apart in
    memory, close enough for LLVM to interleave them, or are narrow beside others, in rows without branches otherwise.
    """
    fast = node.output.fastest
    if fast is None or node.inputs[0].dims[fast] < 2 or not node.inputs[0].shape.size:
        return "a row has no two elements of what is padded"
    here = node.attributes["padding"][fast]
    distance = (here.interior + 1) * parts(node.output.dtype)
    if distance > MAXIMUM_NEIGHBOURS:
        return more(distance, "neighbours are interleaved", MAXIMUM_NEIGHBOURS)
    narrow = None if here.interior else _why_not_narrow(facts, result, here)
    if narrow is not None:
        return narrow
    costly = EXPENSIVE | {Op.CONVOLUTION, Op.DOT}
    found = next((x.opcode for x in reachable(node.inputs) if x.bodies or x.opcode in costly), None)
    return None if found is None else f"an element of what is padded takes a {found.value}"


def _why_not_narrow(facts: Facts, result: Buffer, here: PadDim) -> str | None:
    """As above, for elements that are neighbours, with others before or behind them."""
    fast = result.fastest
    if fast is None or not (here.low > 0 or here.high > 0):
        return "elements lie beside each other, and rows are not padded"
    if facts.processor.masks:
        return "elements lie beside each other, and vectors have masks"
    if result.shape.size < MINIMUM_ELEMENTS:
        return fewer(result.shape.size, "elements", MINIMUM_ELEMENTS)
    if result.dims[fast] <= MAXIMUM_ROW_ELEMENTS:
        return f"rows of {result.dims[fast]} elements, no more than {MAXIMUM_ROW_ELEMENTS}"
    if result.dtype.bytes > MAXIMUM_UNMASKED_BYTES:
        return more(result.dtype.bytes, "bytes of an element", MAXIMUM_UNMASKED_BYTES)
    return None if isinstance(boxes_of([result]), str) else "regions are better"


def fits(view: View, subject: Subject) -> Answer:
    """Of a root that has loops of its own (why_not)."""
    node, fast = subject.node, subject.first.fastest
    if fast is None or fast != node.output.fastest:
        return "the result is wanted in another order of memory"
    return Fits(fast, fast not in view.numbered or view.numbered[-1] == fast)


def emit(e: Elemental, subject: Subject, fast: int, steps: Steps | None) -> None:
    """Write all rows, or those of the steps."""
    node, result = subject.node, subject.first
    gap = e.value(node.inputs[1], (), raw=True)
    for places, first, count in _rows(e.b, result, fast, steps):
        _Row(e, node, result, fast, gap, places).emit(first, count)


def _rows(
    b: Builder, result: Buffer, fast: int, steps: Steps | None
) -> Iterator[tuple[dict[int, Index], Index, Index]]:
    """Loops over rows: (the position along each other dimension, the first place in the row, the number of them)."""
    dims, inside = result.dims, () if steps is None else steps.dimensions
    short = dims[fast] < MINIMUM_ROW_PLACES and result.dtype.bytes // parts(result.dtype) >= SCATTERED_BYTES
    unroll = Unroll.SCALAR if short else Unroll.NONE

    def within(places: dict[int, Index], first: Index, count: Index) -> Iterator[tuple[dict[int, Index], Index, Index]]:
        order = [d for d in reversed(result.shape.minor_to_major) if d != fast and d not in places]
        with outer_loops(b, None, (), dims, order, unroll) as more:
            yield places | more, first, count

    if steps is None:
        yield from within({}, 0, dims[fast])
    elif fast in inside:
        for outer, first, count in neighbours(b, steps, [dims[d] for d in inside]):
            yield from within(dict(zip(inside, outer, strict=False)), first, count)
    else:
        loop, found = open_steps(b, steps, [dims[d] for d in inside], unroll)
        yield from within(dict(zip(inside, found, strict=True)), 0, dims[fast])
        b.close_loop(loop)


class _Row:
    """The places of one row of a padded array. gap: the padding value; places: of the row, by dimension."""

    def __init__(self, e: Elemental, node: Node, result: Buffer, fast: int, gap: Scalar, places: Mapping[int, Index]):
        self.e, self.result, self.fast, self.gap = e, result, fast, gap
        self.source = node.inputs[0]
        self.padding = node.attributes["padding"]
        self.index: list[Index] = [places.get(d, 0) for d in range(len(result.dims))]

    def emit(self, first: Index, count: Index) -> None:
        """Write `count` places of the row from `first` on."""
        b, end = self.e.b, self.e.b.add(first, count)
        taken, conditions = self._taken()
        if not conditions:
            self._elements(taken, first, end)
            return
        branch = b.branch(b.all_of(conditions), [])
        with branch.side(0):
            self._elements(taken, first, end)
        with branch.side(1):
            self._fill(first, end)

    def _taken(self) -> tuple[list[Index], list[Value]]:
        """(The index of the row in the operand, the conditions under which it is there)."""
        b, taken, conditions = self.e.b, list[Index](), list[Value]()
        zero = b.constant(0, b.types.i64)
        for d, (i, size, p) in enumerate(zip(self.index, self.source.dims, self.padding, strict=True)):
            if d == self.fast or not (p.low or p.high or p.interior):
                taken.append(i)
                continue
            shifted, step = b.sub(i, p.low), p.interior + 1
            whole = b.constant((size - 1) * step + 1, b.types.i64)
            conditions.append(b.compare_integers("ult", b.materialize(shifted), whole))
            if step > 1:
                conditions.append(b.compare_integers("eq", b.materialize(b.rem(b.materialize(shifted), step)), zero))
            taken.append(b.div(b.materialize(shifted), step))
        return taken, conditions

    def _elements(self, taken: Sequence[Index], start: Index, end: Index) -> None:
        """Write the places from `start` to `end` of a row that has elements."""
        b, p, size = self.e.b, self.padding[self.fast], self.source.dims[self.fast]
        step = p.interior + 1

        def before(place: Index, most: int) -> Index:
            """The number of elements before a place, limited to `most`."""
            return b.least(b.div(b.greatest(b.add(place, step - 1 - p.low), 0), step), most)

        first = before(start, size)
        last = b.greatest(before(end, size), first)
        whole = b.greatest(before(b.add(end, 1 - step), size), first)  # with all of the gap behind them
        self._fill(start, b.least(self._place(first), end))
        if not (isinstance(first, int) and first == whole):
            with b.loop(first, whole, unroll=Unroll.SHORT if self.result.dtype.bytes <= 2 else Unroll.ANY) as loop:
                self._element(taken, loop.index)
                for k in range(1, step):
                    self._store(b.add(self._place(loop.index), k), self.gap)
        if not (isinstance(last, int) and last == whole):
            with b.loop(whole, last) as loop:  # one at most
                self._element(taken, loop.index)
        self._fill(b.least(b.add(self._place(whole), b.sub(last, whole)), end), end)

    def _place(self, number: Index) -> Index:
        p = self.padding[self.fast]
        return self.e.b.add(self.e.b.mul(number, p.interior + 1), p.low)

    def _element(self, taken: Sequence[Index], number: Index) -> None:
        at = (*taken[: self.fast], number, *taken[self.fast + 1 :])
        self._store(self._place(number), self.e.value(self.source, at, raw=True))

    def _fill(self, start: Index, end: Index) -> None:
        if isinstance(start, int) and isinstance(end, int) and start >= end:
            return
        with self.e.b.loop(start, end) as loop:
            self._store(loop.index, self.gap)

    def _store(self, place: Index, value: Scalar) -> None:
        self.e.store(self.result, (*self.index[: self.fast], place, *self.index[self.fast + 1 :]), value)
