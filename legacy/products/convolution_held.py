"""Convolutions whose output features are neighbours in memory: the sums of a few positions × vectors of features are in
vector registers over the inner loops of the window and over the input features.

One body serves all whole tiles of a kernel; a second one takes the positions that are left, and those at the border,
one at a time. Where products are in a function that kernels share, both are one loop around its call. Nothing is
unrolled, and LLVM has nothing to vectorise: that is most of the time to compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass, replace
from ..core.builder import Code, IndexValue, Loop, Once, Range, Unroll
from ..core.registers import I64, memory_type
from ..core.stack import alloca
from ..loops.elemental import Elemental, Index
from ..loops.lanewise import Lanewise
from ..loops.memory import Pointer, address
from ..loops.ranges import Steps, loops_over
from ..numerics.convert import convert
from ..reductions.windows import SPATIAL
from .convolution_blocks import (
    Holding,
    blocks_of,
    is_short,
)
from .convolution_columns import Columns, Part
from .convolution_micro import Dimension, Micro, Vectors


@dataclass(frozen=True, slots=True)
class Weights:
    """Reads the kernel of a convolution: `width` neighbouring features, in the dtype of the sums.

    panel: a copy of a block of features, row by row, in the dtype of the sums; None: they are read where they are.
    """

    code: Code
    operand: Instruction
    dtype: DType
    width: int
    panel: Pointer | None = None

    @property
    def vectors(self) -> Vectors:
        """How they are read."""
        return Vectors(self.operand.shape.dtype if self.panel is None else self.dtype, self.dtype, self.width)

    @property
    def strides(self) -> list[int]:
        """The strides of what is read, in elements. The features of a copied block are numbered from its first one."""
        shape = self.operand.shape
        if self.panel is None:
            return list(shape.strides)
        fastest = shape.minor_to_major[0]
        return [0 if d == fastest else n // shape.dims[fastest] * self.width for d, n in enumerate(shape.strides)]

    def at(self, e: Elemental, position: Sequence[IndexValue]) -> ir.Value:
        """The address of the first feature at a position."""
        offset = self.code.value(self.code.weighted_sum(position, self.strides))
        pointer = e.leaves[self.operand] if self.panel is None else self.panel
        return self.code.b.gep(pointer.value, [offset], source_etype=memory_type(self.vectors.source))

    def copy(self, e: Elemental, start: IndexValue) -> None:
        """Fill the panel with the features from `start` on."""
        assert self.panel is not None
        code, shape = self.code, self.operand.shape
        read = Vectors(shape.dtype, self.dtype, self.width)
        outs = shape.dims[shape.minor_to_major[0]]
        with code.loop(shape.size // outs, unroll=Unroll.DONE) as i:
            source = code.add(code.multiply(i, outs), start)
            for n, value in enumerate(read.load(code, address(code, e.leaves[self.operand], shape.dtype, source))):
                target = code.add(code.multiply(i, self.width), n * read.lanes)
                code.b.store(value, address(code, self.panel, self.dtype, target), align=self.dtype.bytes)


class Held(Columns):
    """The same sums, held in registers. No column is among the steps' dimensions."""

    between = Unroll.DONE
    behind: Lanewise | None = None
    stored: IndexValue = 0
    """The first positions of a tile that another one stores."""

    def __post_init__(self) -> None:
        found: Holding = self.blocks.form
        self.grid, self.held, self.each, self.behind = found.grid, found.held, found.each, found.behind
        super().__post_init__()
        self.around = Unroll.NEVER
        count = self.c.terms * self.grid.width
        self.panel = Pointer(alloca(self.code, memory_type(self.dtype), count)) if found.copied else None

    def _part(self, part: Part, start: IndexValue, width: int) -> None:
        if not part.rest:
            super()._part(part, start, width)
            return
        assert self.across is not None
        code, inside = self.code, part.end - part.start
        tiles, over = -(-inside // part.step), inside % part.step > 0
        with code.loop(tiles + self.c.sizes[self.across] - inside, unroll=Unroll.NEVER) as i:
            one = self._beside(part, code.subtract(i, tiles))
            block, phase = code.divide(i, part.apart), code.remainder(i, part.apart)
            first = code.add(code.multiply(block, part.step * part.apart), code.add(phase, part.start))
            whole = code.b.icmp_unsigned("<", code.value(i), I64(tiles))
            back = code.minimum(first, part.end - part.step) if over else first
            place = code.b.select(whole, code.value(back), code.value(one))
            self.count = code.b.select(whole, I64(part.step), I64(1))
            stored = code.b.select(whole, code.value(code.subtract(first, back)), I64(0))
            for value in (place, self.count, stored):
                code.define(value, code.scope)
            self.stored = stored if over else 0
            self.place[self.across] = place
            self._tile(part, start, width)
            self.stored = 0

    def unfinished(self, part: Part) -> Loop | Once | Range:
        if isinstance(self.stored, int):
            return super().unfinished(part)
        return self.code.range(self.stored, self.positions(part), unroll=self.between)

    def call(
        self,
        part: Part,
        weights: Weights,
        input_: ir.Value,
        apart: int,
        row: ir.Value,
        dimensions: Sequence[Dimension],
    ) -> None:
        """Call the function. input_, row: addresses of the first factors; the rest as of Micro.call."""
        source, loops = self.instruction.operands[0].shape.dtype, len(dimensions) - 1
        adjacent, even = dimensions[-1].input == 1, self.c.ins % 2 == self.each % 2 == 0
        few = self.code.view.processor.vector_registers <= 16  # with more, factors are ready before sums
        pairs = few and adjacent and even and (source, self.dtype) == (DType.BF16, DType.F32)
        micro = Micro(source, weights.vectors, part.step, loops, adjacent, self.blocks.adds, part.rest, pairs)
        micro.call(self.code, input_, apart, row, self.sums.innermost(), dimensions, self.positions(part))

    def _row(self, place: list[IndexValue], row: IndexValue, start: IndexValue, width: int) -> None:
        behind, shape = self.behind, self.instruction.shape
        if behind is None or self.known or width % self.grid.lanes:
            super()._row(place, row, start, width)
            return
        lanes = self.grid.lanes
        for n in range(0, width, lanes):
            place[self.column] = self.code.add(start, n)
            position = self.c.result(self.code, place)
            offset = Index.at(self.code, shape, position).offset(shape)
            behind.store(self.e, self.sums.get_vector(self.code.add(row, n), lanes), offset, position[behind.column])

    def dimensions(
        self, part: Part, taps: Sequence[IndexValue], left: Sequence[int], right: Sequence[int]
    ) -> tuple[list[Dimension], list[IndexValue]]:
        """(The loops over the window behind these positions, with all where they begin) of a call of the function.
        left, right: strides of what it reads.
        """
        code, c, found, starts = self.code, self.c, list[Dimension](), [*taps]
        for n in range(len(taps), len(c.axes)):
            axis, (start, end, step) = c.axes[n], self.reach(part, n)
            count = code.divide(code.add(code.maximum(code.subtract(end, start), 0), step - 1), step)
            along = axis.dilation * step // axis.holes * left[c.dims.input_spatial[n]]
            row = right[c.dims.kernel_spatial[n]] * step
            found.append(Dimension(count, along, -row if axis.reverse else row))
            starts.append(start)
        return found, starts

    def positions(self, part: Part) -> IndexValue:
        return self.count if part.rest else part.step

    def _blocks(
        self, steps: Steps | None, inside: Sequence[int], order: Sequence[int]
    ) -> Iterator[tuple[list[IndexValue], IndexValue, int]]:
        """Blocks are outermost: their weights, a part of each row of the kernel, stay in the cache for all places."""
        code, sizes = self.code, self.c.sizes
        for start, end, width in blocks_of(self.grid, sizes[self.column]):
            if end - start == width and is_short(width, self.dtype):
                self.known = self.grid.lanes - width
                start, width = start - self.known, self.grid.lanes
            with code.loop(end - start, start=start, step=width, unroll=Unroll.NEVER) as i:
                self.weights = Weights(code, self.instruction.operands[1], self.dtype, width, self.panel)
                if self.panel is not None:
                    self.weights.copy(self.e, i)
                with loops_over(code, steps, sizes, order, Unroll.NEVER, inside) as places:
                    yield places, i, width
        self.known = 0

    def _taps(self, part: Part, taps: list[IndexValue], start: IndexValue, width: int) -> None:
        if len(taps) < self.held:
            super()._taps(part, taps, start, width)
            return

        def add_up(first: IndexValue, features: int) -> None:
            tile = _Tile(self, part, start, self.weights, first, features)
            if self.blocks.calls:
                tile.call(taps)
            else:
                tile.put(taps)

        whole, rest = divmod(self.c.ins, self.each)
        feature: list[IndexValue] = [0]
        with self.sums.loops(self.levels[-1], [whole], feature, self.each):
            add_up(feature[0], self.each)
        if rest:
            add_up(whole * self.each, rest)


@dataclass(frozen=True, slots=True)
class _Tile:
    """Products of `features` input features from `first` on, at some positions, with features from `start` on."""

    columns: Held
    part: Part
    start: IndexValue
    weights: Weights
    first: IndexValue
    features: int

    def call(self, taps: list[IndexValue]) -> None:
        """Compute them by the function that kernels share."""
        columns, code, weights, part = self.columns, self.columns.code, self.weights, self.part
        c, source = columns.c, columns.instruction.operands[0]
        left, right = source.shape.strides, weights.strides
        dimensions, starts = columns.dimensions(part, taps, left, right)
        feature = left[c.dims.input_feature]
        features = Dimension(self.features, feature, right[c.dims.kernel_input_feature])
        if dimensions and features.continues(dimensions[-1]):
            features = replace(features, count=code.multiply(dimensions.pop().count, self.features))
        dimensions.append(features)
        place = list(columns.place)
        place[columns.column] = self.start
        first, row_position = c.operands(code, place, starts, self.first)
        offset = code.value(Index.at(code, source.shape, first).offset(source.shape))
        apart = 0
        if columns.across is not None:
            holes = c.axes[columns.across - SPATIAL].holes if columns.across >= SPATIAL else 1
            apart = c.strides(columns.instruction)[1][columns.across] * part.apart // holes
        element = memory_type(source.shape.dtype)
        input_ = code.b.gep(columns.e.leaves[source].value, [offset], source_etype=element)
        columns.call(part, weights, input_, apart, weights.at(columns.e, row_position), dimensions)

    def put(self, taps: list[IndexValue]) -> None:
        """Compute them here."""
        vectors = self.weights.vectors
        zeros = [ir.Constant(vectors.type, None)] * (self.part.step * vectors.width // vectors.lanes)
        for n, value in enumerate(self.sums(taps, zeros)):
            self.columns.sums.put_vector(n * vectors.lanes, value, add=self.columns.blocks.adds)

    def sums(self, taps: list[IndexValue], before: Sequence[ir.Value]) -> list[ir.Value]:
        """`before` plus the products at the window positions of the remaining dimensions: by position of the tile."""
        columns, number = self.columns, len(taps)
        code = columns.code
        if number < len(columns.c.axes):
            start, end, step = columns.reach(self.part, number)
            loop = code.range(start, end, step, carried=before, unroll=Unroll.NEVER)
            return [*loop.close(self.sums([*taps, loop.index], loop.carried))]
        inner = code.loop(self.features, carried=before, unroll=Unroll.NEVER)
        return [*inner.close(self._products(taps, code.add(self.first, inner.index), inner.carried))]

    def _products(self, taps: list[IndexValue], feature: IndexValue, before: Sequence[ir.Value]) -> list[ir.Value]:
        columns, code = self.columns, self.columns.code
        place = list(columns.place)
        place[columns.column] = self.start
        vectors, position = self.weights.vectors, columns.c.operands(code, place, taps, feature)[1]
        weights = vectors.load(code, self.weights.at(columns.e, position))
        found: list[ir.Value] = []
        for factor in self._factors(taps, feature):
            value = vectors.splat(code, factor)
            for weight in weights:
                found.append(code.b.fadd(before[len(found)], code.b.fmul(value, weight)))
        return found

    def _factors(self, taps: list[IndexValue], feature: IndexValue) -> Iterator[ir.Value]:
        """The elements of the input for the positions of the tile, in the dtype of the sums."""
        columns, code = self.columns, self.columns.code
        source, dtype = columns.instruction.operands[0], columns.instruction.operands[0].shape.dtype
        place = list(columns.place)
        for p in range(self.part.step):
            if columns.across is not None:
                place[columns.across] = code.add(columns.place[columns.across], p)
            position = columns.c.operands(code, place, taps, feature)[0]
            found = convert(code, dtype, columns.dtype, columns.e.value(source, Index.at(code, source.shape, position)))
            yield found
