"""Sums of a convolution side by side: blocks of columns on the stack.

Columns are the coordinates of one role whose elements are adjacent in memory: output features, groups of a depthwise
convolution, or a spatial dimension. A few positions across the columns and a few products are processed together, so
that loaded values are used several times. Loops over columns are vectorised before LLVM may unroll them; loops over a
window with features inside are not unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...hlo.ir import Instruction
from ...hlo.records import dataclass, field
from ..core.builder import IndexValue, Loop, Once, Range, Unroll, over_columns
from ..core.view import View
from ..loops.elemental import Elemental, Index
from ..loops.form import Results, Unfit, needs
from ..loops.leaf import write_all
from ..loops.ranges import Steps, column_blocks, parts
from ..numerics.convert import convert
from ..reductions.columns import CONVOLUTION_COLUMNS, row_passes
from ..reductions.long_sums import OUTSIDE_TERMS, UNBOUNDED, Level, PartialArrays, levels_of
from ..reductions.windows import BATCH, GROUP, OUT, SPATIAL, Convolution
from ..reductions.windows import Range as Reach
from .dot import COLUMN_TERMS, accumulator_dtype, in_parts, multiply_add, rounded, zero

POSITIONS_TOGETHER = 4
"""Positions across the columns whose sums are computed together. A product takes 1 + 1/POSITIONS_TOGETHER loads,
because one factor is shared; twice the positions would save a tenth of them.
"""

PRODUCTS_TOGETHER = 4
"""Products that are added to a sum before it is stored again: one of ten memory accesses is then the store."""

MINIMUM_MULTIPLICATIONS = 1 << 14
"""Minimum multiplications for which POSITIONS_TOGETHER and PRODUCTS_TOGETHER pay off: 2 µs at 8 per ns, while a call
takes about 1 µs.
"""

MAXIMUM_DISTANCE = 4
"""Largest distance, in elements, of neighbours for which a vector load pays off: a vector then spans four lines."""


def is_zero(c: Convolution) -> bool:
    """Whether the sums have no terms."""
    return c.ins == 0 or any(a.window == 0 or a.size == 0 for a in c.axes)


def column_role(instruction: Instruction) -> int:
    """The role of the result to vectorise over: the fastest one that is long and whose neighbours are near.

    Raises Unfit if there is none.
    """
    c = Convolution.of(instruction)
    needs(not is_zero(c), "sums have no terms")
    out, left, right = c.strides(instruction)
    near = [
        r for r in range(len(out)) if c.sizes[r] > 1 and left[r] <= MAXIMUM_DISTANCE and right[r] <= MAXIMUM_DISTANCE
    ]
    for least in (8, 2):
        long = [r for r in near if c.sizes[r] >= least]
        if long:
            return min(long, key=out.__getitem__)
    raise Unfit(f"no neighbours in the result are at most {MAXIMUM_DISTANCE} elements apart in both operands")


def across_role(instruction: Instruction, column: int) -> int | None:
    """The role of which several positions are computed together, so that shared values are loaded once."""
    c = Convolution.of(instruction)
    if column >= SPATIAL:
        return OUT if c.outs > 1 else GROUP if c.groups > 1 else None
    places = [a.between() if column == OUT else a.inside() for a in c.axes]
    inside = {n: (end - start) // c.axes[n].period for n, (start, end) in enumerate(places)}
    strides = c.strides(instruction)[0]
    for least in (POSITIONS_TOGETHER, 1):
        long = [n for n, size in inside.items() if size >= least]
        if long:
            return SPATIAL + min(long, key=lambda n: strides[SPATIAL + n])
        if c.batch >= POSITIONS_TOGETHER and column != BATCH:
            return BATCH
    return None


@dataclass(frozen=True, slots=True)
class Part:
    """Positions [start, end) across the columns, in steps of `step`. border: the positions outside it instead. rest:
    these, too, one at a time, in the same loop. apart: the distance of the positions of a tile.
    """

    start: int
    end: int
    step: int
    border: bool = False
    rest: bool = False
    apart: int = 1


@dataclass(frozen=True, slots=True)
class Blocks:
    """column: the role of neighbours; across: that of positions that are computed together. width: the most columns of
    a block. parts: of the positions across. levels: for each spatial dimension, the loops over its window; then those
    over passes of features; terms: of a partial sum. adds: whether products are added to what the sums' memory holds.
    calls: whether a function that kernels share computes them. form: what a kind of blocks is given besides.
    """

    column: int
    across: int | None
    width: int
    parts: tuple[Part, ...]
    levels: tuple[list[Level], ...]
    terms: int = UNBOUNDED
    adds: bool = True
    calls: bool = False
    form: Any = None


def blocks_on_stack(view: View, instruction: Instruction, column: int) -> Blocks:
    c, across = Convolution.of(instruction), across_role(instruction, column)
    width = min(CONVOLUTION_COLUMNS, c.sizes[column])
    apart = in_parts(view, accumulator_dtype(instruction), c.terms, COLUMN_TERMS)
    terms = COLUMN_TERMS if apart else UNBOUNDED
    return Blocks(column, across, width, tuple(_parts(c, across)), tuple(_levels(c, terms)), terms)


def _parts(c: Convolution, across: int | None) -> Iterator[Part]:
    if across is None:
        yield Part(0, 1, 1)
        return
    if across < SPATIAL:
        start, end, all_ = 0, c.sizes[across], c.sizes[across]
    else:
        axis = c.axes[across - SPATIAL]
        (start, end), all_ = axis.inside(), axis.count
    for first, last, step in parts(
        end - start, POSITIONS_TOGETHER if c.products >= MINIMUM_MULTIPLICATIONS and across != GROUP else 1
    ):
        yield Part(start + first, start + last, step)
    if end - start < all_:
        yield Part(start, end, 1, border=True)


def _levels(c: Convolution, most: int) -> list[list[Level]]:
    each = PRODUCTS_TOGETHER if c.products >= MINIMUM_MULTIPLICATIONS else 1
    found, terms = levels_of([max(1, c.ins // each)], each, most, OUTSIDE_TERMS)
    levels = [found]
    for axis in reversed(c.axes):
        inner = OUTSIDE_TERMS if most != UNBOUNDED and any(level.apart for found in levels for level in found) else most
        found, terms = levels_of([axis.window], terms, inner, OUTSIDE_TERMS)
        levels.append(found or [Level(0, 1, False)])
    return levels[::-1]


@dataclass(eq=False)
class Columns:
    e: Elemental
    results: Results
    blocks: Blocks
    place: list[IndexValue] = field(default_factory=list)
    known = 0
    """The first columns of a block that another one stores."""
    between = Unroll.FREELY
    """The mode of the loop over the finished sums of positions."""

    def __post_init__(self) -> None:
        (self.instruction,), self.column, self.across = self.results.products, self.blocks.column, self.blocks.across
        self.code, self.c = self.e.code, Convolution.of(self.instruction)
        self.dtype = accumulator_dtype(self.instruction)
        self.place = [0] * len(self.c.sizes)
        self.around = Unroll.NEVER if self.c.ins > 1 else Unroll.FREELY
        self.large = self.c.products >= MINIMUM_MULTIPLICATIONS
        most = max(part.step for part in self.blocks.parts)
        self.sums = PartialArrays(self.code, [zero(self.dtype)], self.blocks.width * most)
        self.most = self.blocks.terms
        self.levels = self.blocks.levels

    def emit(self, steps: Steps | None) -> None:
        c = self.c
        strides = c.strides(self.instruction)[0]
        order = sorted(range(len(c.sizes)), key=lambda r: -strides[r])
        order = [role for role in order if role not in (self.column, self.across)]
        inside = [] if steps is None else [role for d in steps.dimensions if (role := c.role_of(d)) is not None]
        for place, start, width in self._blocks(steps, inside, order):
            self.place = place
            for part in self.blocks.parts:
                self._part(part, start, width)

    def _blocks(
        self, steps: Steps | None, inside: Sequence[int], order: Sequence[int]
    ) -> Iterator[tuple[list[IndexValue], IndexValue, int]]:
        """Loops over places and blocks of columns: (place, the first column, the number of columns)."""
        yield from column_blocks(self.code, steps, self.c.sizes, order, self.column, CONVOLUTION_COLUMNS, inside=inside)

    def _part(self, part: Part, start: IndexValue, width: int) -> None:
        code = self.code
        if self.across is None:
            self._tile(part, start, width)
            return
        if not part.border:
            loop = code.loop(part.end - part.start, start=part.start, step=part.step, unroll=self.between)
            self.place[self.across] = loop.index
        else:
            inside = part.end - part.start
            loop = code.loop(self.c.sizes[self.across] - inside, unroll=self.around)
            self.place[self.across] = self._beside(part, loop.index)
        self._tile(part, start, width)
        loop.close()

    def _beside(self, part: Part, number: IndexValue) -> IndexValue:
        """The position outside the part that has this number."""
        code = self.code
        beyond = code.minimum(code.maximum(code.add(number, 1 - part.start), 0), 1)
        return code.add(number, code.multiply(beyond, part.end - part.start))

    def positions(self, part: Part) -> IndexValue:
        """The positions of a tile."""
        return part.step

    def unfinished(self, part: Part) -> Loop | Once | Range:
        """A loop over the positions of a tile that have their sums."""
        return self.code.loop(self.positions(part), unroll=self.between)

    def _tile(self, part: Part, start: IndexValue, width: int) -> None:
        """The sums of `width` columns from `start` on, at the positions of a tile, followed by `finish`."""
        code, place = self.code, list(self.place)
        self.sums.start(width * part.step, width if width & (width - 1) == 0 else None, self.blocks.adds)
        self._taps(part, [], start, width)
        across = self.unfinished(part)
        if self.across is not None:
            place[self.across] = code.add(place[self.across], code.multiply(across.index, part.apart))
        self._row(place, code.multiply(across.index, width), start, width)
        across.close()

    def _row(self, place: list[IndexValue], row: IndexValue, start: IndexValue, width: int) -> None:
        """`finish` for the columns of one position, whose sums begin at `row`."""
        code, shape = self.code, self.instruction.shape
        with code.loop(width - self.known, start=self.known, unroll=over_columns(width - self.known)) as column:
            place[self.column] = code.add(start, column)
            index = Index.at(code, shape, self.c.result(code, place))
            (total,) = self.sums.read(code.add(row, column))
            self.e.bind(self.instruction, index, rounded(code, self.dtype, shape.dtype, total))
            write_all(self.e, self.results.leaves, index)

    def _taps(self, part: Part, taps: list[IndexValue], start: IndexValue, width: int) -> None:
        """Emit loops over the window, one per dimension, and inside them over the features of the group."""
        code, number = self.code, len(taps)
        if number == len(self.c.axes):
            self._features(part, taps, start, width)
            return
        axis, whole = self.c.axes[number], self._whole(part, number)
        one = self.c.ins == 1 and number == len(self.c.axes) - 1
        if whole and SPATIAL + number != self.column and one and self.large:
            for rows, (tap,) in row_passes(self.sums, [axis.window], PRODUCTS_TOGETHER, self.most, OUTSIDE_TERMS):
                self._columns(part, [([*taps, code.add(tap, r)], 0) for r in range(rows)], start, width)
            return
        with self._window(self.levels[number], self.reach(part, number)) as tap:
            self._taps(part, [*taps, tap], start, width)

    def _whole(self, part: Part, number: int) -> bool:
        """Whether all positions of a tile have the whole window along a spatial dimension."""
        return SPATIAL + number == self.column or (
            SPATIAL + number == self.across and not part.border and not part.rest
        )

    def reach(self, part: Part, number: int) -> Reach:
        """The window positions of a spatial dimension at which a tile's positions meet the input."""
        axis = self.c.axes[number]
        return (0, axis.window, 1) if self._whole(part, number) else axis.taps(self.code, self.place[SPATIAL + number])

    @contextmanager
    def _window(self, levels: Sequence[Level], reach: Reach) -> Iterator[IndexValue]:
        """Loops over window positions."""
        code, opened = self.code, []
        tap, end, step = reach
        for level in levels:
            loop = code.range(tap, end, step * level.span, unroll=self.around)
            opened.append(loop)
            tap = loop.index
            end = code.minimum(end, code.add(tap, step * level.span))
            if level.apart:
                self.sums.enter()
        yield tap
        for level, loop in zip(reversed(levels), reversed(opened), strict=True):
            if level.apart:
                self.sums.leave()
            loop.close([])

    def _features(self, part: Part, taps: list[IndexValue], start: IndexValue, width: int) -> None:
        code, each = self.code, PRODUCTS_TOGETHER if self.large else 1
        for rows, (feature,) in row_passes(self.sums, [self.c.ins], each, self.most, OUTSIDE_TERMS, each):
            self._columns(part, [(taps, code.add(feature, r)) for r in range(rows)], start, width)

    def _columns(
        self, part: Part, products: Sequence[tuple[list[IndexValue], IndexValue]], start: IndexValue, width: int
    ) -> None:
        """Add the given products, each (taps, feature), to the sums of all columns."""
        code, place = self.code, list(self.place)
        if self.column >= SPATIAL:
            number = self.column - SPATIAL
            first, last, step = self.c.axes[number].positions(
                code, products[0][0][number], (start, code.add(start, width))
            )
            column = code.range(first, last, step, unroll=over_columns(width))
            place[self.column], slot = column.index, code.subtract(column.index, start)
        else:
            column = code.range(0, width, unroll=over_columns(width))
            place[self.column], slot = code.add(start, column.index), column.index
        for p in range(part.step):
            if self.across is not None:
                place[self.across] = code.add(self.place[self.across], p)
            at = code.add(slot, p * width)
            (total,) = self.sums.read(at)
            for taps, feature in products:
                a, b = self._factors(place, taps, feature)
                total = multiply_add(code, self.dtype, total, a, b, self.most != UNBOUNDED)
            self.sums.write(at, [total])
        column.close([])

    def _factors(self, place: list[IndexValue], taps: list[IndexValue], feature: IndexValue):
        code, operands = self.code, self.instruction.operands[:2]
        positions = self.c.operands(code, place, taps, feature)
        return [
            convert(code, o.shape.dtype, self.dtype, self.e.value(o, Index.at(code, o.shape, p)))
            for o, p in zip(operands, positions, strict=True)
        ]
