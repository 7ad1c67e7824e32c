"""Sums of a convolution side by side: a tile of accumulators on the stack.

A tile is a run of results along one axis (the lane axis: features, channels of a depthwise convolution, or a spatial
dimension) for a few positions of another axis (the reuse axis). If the windows of a tile are entirely in the input, its
positions share the window's loops; at the border each position has its own bounds. Loops over runs of lanes are
vectorised before LLVM may unroll them; loops over window positions around loops over input features are not unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...hlo.dtypes import DType
from ..core.builder import Builder, Index, Unroll
from ..core.elements import Scalar, decode, encode, flatten, parts, raw_type, unflatten, working_type
from ..core.graph import Node
from ..loops.elemental import Elemental, Indices
from ..loops.ranges import Steps, chunks, outer_loops
from ..numerics.convert import convert_to
from ..reductions.long_sums import MAXIMUM_REGISTER_CHAINS, Totals, component_type
from ..reductions.windows import Geometry, Site
from .convolution_blocks import MINIMUM_WORK, SPATIAL, Blocks
from .dot import accumulator_of, multiply_add, narrow

PRODUCTS_TOGETHER = 4
"""Products added per read and write of an accumulator: the latency of an addition in cycles."""

Write = Callable[[Indices], None]
"""Called with the index of a result whose value is bound, to store it."""


def widened(b: Builder, node: Node, wide: DType, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    return convert_to(b, node.inputs[0].dtype, wide, x), convert_to(b, node.inputs[1].dtype, wide, y)


def zero_of(b: Builder, dtype: DType) -> Scalar:
    """Zero as a working value."""
    type = working_type(b.types, dtype)
    zero = b.constant(0.0 if b.is_float(type) else 0, type)
    return (zero, zero) if dtype.is_complex else zero


def side_by_side(width: int) -> Unroll:
    """The unroll mode of a loop over a run of lanes: vectors first, unless the run is short and no power of two."""
    return Unroll.ANY if width < 16 and width.bit_count() > 1 else Unroll.VECTORIZED


class Tiles:
    """Loops: the other axes, runs of lanes, positions of the reuse axis, the window, input features, lanes."""

    between = Unroll.ANY
    """The mode of the loop over the finished positions of a tile."""

    def __init__(self, e: Elemental, node: Node, blocks: Blocks, write: Write):
        """write: receives each result."""
        self.e, self.b, self.node, self.blocks, self.write = e, e.b, node, blocks, write
        self.geometry, self.wide = Geometry.of(node), accumulator_of(node)
        self.around = Unroll.NONE if self.geometry.inputs > 1 else Unroll.ANY
        self.unrolls = self.geometry.work >= MINIMUM_WORK
        self.lanes, self.reuse, self.width, self.tile = blocks.lanes, blocks.reuse, blocks.width, blocks.tile
        self.apart, self.level, self.group, self.pitch = blocks.apart, blocks.level, blocks.group, blocks.pitch
        self.places = blocks.places  # accumulators of the tile at work
        places = self.places * parts(self.wide)
        self.element = (raw_type if self.wide is DType.PRED else working_type)(self.b.types, self.wide)
        self.panel = self.b.alloca(self.element, blocks.panel, 64) if blocks.panel else None
        self.space = self.b.alloca(self.element, places, 64)
        self.totals: Totals | None = None
        if blocks.totals:
            self.totals = Totals(self.b, places, component_type(self.b, self.wide), blocks.wide)

    def emit(self, steps: Steps | None = None) -> None:
        geometry, extents = self.geometry, self.geometry.extents
        site = Site(0, 0, 0, (0,) * len(geometry.slides))
        strides = geometry.steps(self.node)
        order = sorted(range(len(extents)), key=lambda axis: strides[axis][0], reverse=True)
        order = [axis for axis in order if axis not in (self.lanes, self.reuse)]
        axes = [geometry.axis_of(d) for d in steps.dimensions] if steps is not None else []
        with outer_loops(self.b, steps, [axis for axis in axes if axis is not None], extents, order) as places:
            for axis, place in places.items():
                site = site.moved(axis, place)
            for start, width in chunks(self.b, 0, extents[self.lanes], self.width):
                self._run(site, start, width)

    def _run(self, site: Site, start: Index, width: int) -> None:
        """One run of lanes, at all positions of the reuse axis."""
        axis, extents, tile = self.reuse, self.geometry.extents, self.tile
        if axis is None:
            self._tile(site, 1, start, width, False)
        elif axis < SPATIAL:
            for position, count in chunks(self.b, 0, extents[axis], tile):
                self._tile(site.moved(axis, position), count, start, width, True)
        else:
            inner = self.geometry.slides[axis - SPATIAL].covered()
            for position, count in chunks(self.b, inner.start, inner.stop, tile):
                self._tile(site.moved(axis, position), count, start, width, True)
            for number, _ in chunks(self.b, 0, extents[axis] - len(inner), 1, self.around):
                self._tile(site.moved(axis, self._beside(number, inner)), 1, start, width, False)

    def _beside(self, number: Index, inner: range) -> Index:
        """The position with a number among those before and after `inner`. One loop over both emits the border's code
        once.
        """
        b = self.b
        after = b.add(number, len(inner))
        if isinstance(number, int):
            return number if number < inner.start else after
        return b.select(b.compare_integers("slt", number, b.materialize(inner.start)), number, after)

    def _tile(self, site: Site, count: int, start: Index, width: int, shares: bool) -> None:
        """`width` lanes from `start`, at `count` positions of the reuse axis. shares: they share one window."""
        b, node, wide = self.b, self.node, self.wide
        self._start(count * self.pitch(width))
        self._window(site, [], count, start, width, shares)
        # The ends of long sums run seldom: little code for them compiles in less time.
        seldom = self.totals is not None and count * width > MAXIMUM_REGISTER_CHAINS
        rows, lanes = (Unroll.NONE, Unroll.LEAN) if seldom else (self.between, side_by_side(width))
        with (
            b.loop(self.unwritten(), self.positions(count), unroll=rows) as position,
            b.loop(0, width, unroll=lanes) as lane,
        ):
            done = site.moved(self.lanes, b.add(start, lane.index))
            if self.reuse is not None:
                place = b.add(site.coordinate(self.reuse), b.mul(position.index, self.apart))
                done = done.moved(self.reuse, place)
            total = self._final(b.add(b.mul(position.index, self.pitch(width)), lane.index))
            index = self.geometry.index_of(b, done)
            b.remember((node.output, index, False), narrow(b, wide, node.output.dtype, total))
            self.write(index)

    def positions(self, count: int) -> Index:
        """How many of the `count` positions of a tile are computed."""
        return count

    def unwritten(self) -> Index:
        """The first position of a tile that no tile has stored."""
        return 0

    def _start(self, places: int) -> None:
        """Start the accumulators at 0, and their totals."""
        self.places = places
        with self.b.loop(0, places) as slot:
            self._put(slot.index, zero_of(self.b, self.wide))
        if self.totals is not None:
            self.totals.clear(places * parts(self.wide))

    def _window(self, site: Site, taps: list[Index], count: int, start: Index, width: int, shares: bool) -> None:
        """One loop for each remaining dimension of the window, then the products."""
        b, n, slides = self.b, len(taps), self.geometry.slides
        if n == len(slides):
            for feature, number in self._steps(
                n, self.geometry.inputs, PRODUCTS_TOGETHER if self.unrolls else 1, count * width
            ):
                self._add(site, [(taps, b.add(feature, k)) for k in range(number)], count, start, width)
            return
        slide, axis = slides[n], SPATIAL + n
        if shares and axis == self.reuse and self.geometry.inputs == 1 and n == len(slides) - 1 and self.unrolls:
            for tap, number in self._steps(n, slide.window, PRODUCTS_TOGETHER, count * width):
                self._add(site, [([*taps, b.add(tap, k)], 0) for k in range(number)], count, start, width)
            return
        every = axis == self.lanes or (shares and axis == self.reuse)
        lower, upper, step = (0, slide.window, 1) if every else slide.taps(b, site.spatial[n])
        for first, end in self._groups(n, lower, upper, step, count * width):
            with b.loop(first, end, step, unroll=self.around) as tap:
                self._window(site, [*taps, tap.index], count, start, width, shares)

    def _groups(self, n: int, lower: Index, upper: Index, step: int, places: int) -> Iterator[tuple[Index, Index]]:
        """Yield the bounds of a loop over dimension n of the window: of blocks that end with an addition to totals."""
        b = self.b
        if self.totals is None or n != self.level:
            yield lower, upper
            return
        size = step * max(1, self.group // step)
        with b.loop(lower, upper, size, unroll=Unroll.NONE) as loop:
            end = b.add(loop.index, size)
            if not (isinstance(lower, int) and isinstance(upper, int)) or (upper - lower) % size:
                end = b.least(end, upper)
            yield loop.index, end
            self._spill(places)

    def _spill(self, places: int) -> None:
        """Add the accumulators of some places to their totals, and start them again."""
        assert self.totals is not None
        self.totals.spill(self.space, places * parts(self.wide))

    def _steps(self, n: int, size: int, step: int, places: int) -> Iterator[tuple[Index, int]]:
        """Yield (start, size) of steps along all of dimension n of the window, in the same blocks."""
        if self.totals is None or n != self.level:
            yield from chunks(self.b, 0, size, step)
            return
        whole = size - size % step
        for first, end in self._groups(n, 0, whole, step, places):
            with self.b.loop(first, end, step, unroll=Unroll.NONE) as loop:
                yield loop.index, step
        if whole < size:
            yield whole, size - whole

    def _final(self, slot: Index) -> Scalar:
        """The sum of all products of a slot."""
        total = self._get(slot)
        if self.totals is None:
            return total
        values = [
            self.totals.final(place, part) for place, part in zip(self._places(slot), flatten(total), strict=True)
        ]
        return unflatten(values, self.wide)

    def _add(
        self, site: Site, products: Sequence[tuple[list[Index], Index]], count: int, start: Index, width: int
    ) -> None:
        """Add products, each given by a window position and an input feature, to the tile."""
        b = self.b
        bounds: tuple[Index, Index, int] = (start, b.add(start, width), 1)
        if self.lanes >= SPATIAL:
            n = self.lanes - SPATIAL
            bounds = self.geometry.slides[n].positions(b, products[0][0][n], start, bounds[1])
        with b.loop(*bounds, unroll=side_by_side(width)) as lane:
            here = site.moved(self.lanes, lane.index)
            for k in range(count):
                if self.reuse is not None:
                    here = here.moved(self.reuse, b.add(site.coordinate(self.reuse), k))
                slot = b.add(b.sub(lane.index, start), k * width)
                total = self._get(slot)
                for taps, feature in products:
                    total = self._product(here, taps, feature, total)
                self._put(slot, total)

    def _product(self, site: Site, taps: list[Index], feature: Index, total: Scalar) -> Scalar:
        b = self.b
        indices = self.geometry.factors(b, site, taps, feature)
        x, y = (self.e.value(source, index) for source, index in zip(self.node.inputs, indices, strict=True))
        with b.reassociating():
            return multiply_add(b, self.wide, *widened(b, self.node, self.wide, x, y), total)

    def _get(self, slot: Index) -> Scalar:
        b, wide = self.b, self.wide
        size = wide.bytes // parts(wide)
        values = [
            b.load(b.pointer(self.space, place, self.element), self.element, size) for place in self._places(slot)
        ]
        value = unflatten(values, wide)
        return decode(b, wide, value) if wide is DType.PRED else value

    def _put(self, slot: Index, value: Scalar) -> None:
        b, wide = self.b, self.wide
        values = flatten(encode(b, wide, value) if wide is DType.PRED else value)
        for place, part in zip(self._places(slot), values, strict=True):
            b.store(part, b.pointer(self.space, place, self.element), wide.bytes // parts(wide))

    def _places(self, slot: Index) -> list[Index]:
        """Where the parts of an accumulator are: the imaginary ones behind all real ones, so that lanes are vectors."""
        return [self.b.add(slot, k * self.places) for k in range(parts(self.wide))]
