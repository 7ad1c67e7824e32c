"""Convolutions of devices in tiles: for each position of the window, a product of the images with a matrix of features.

Next to the images are no terms: an item leaves them out of its sums.
"""

from __future__ import annotations

import math

from llvmlite import ir

from ...codegen.options import GroupShape
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..core.builder import IndexValue
from ..core.registers import BOOL, I64, Register
from ..loops.access import fastest_dimension
from ..loops.form import Fit, Task, form, needs
from ..products.convolution_columns import is_zero
from ..products.dot import accumulator_dtype
from ..reductions.results import finishes, products_of_all
from ..reductions.windows import BATCH, GROUP, OUT, SPATIAL, Axis, Convolution
from . import group_dot
from .group_dot import MINIMUM_TERMS, Side, Tile, Tiling, depth_of, side_of


def convolution_tiling(instruction: Instruction, shape: GroupShape) -> Tiling:
    """The tiles of a convolution. Raises Unfit if there is too little of it."""
    c = Convolution.of(instruction)
    needs(not is_zero(c) and c.terms >= MINIMUM_TERMS, f"sums of {c.terms} terms, fewer than {MINIMUM_TERMS}")
    lhs, rhs = instruction.operands[:2]
    fastest = fastest_dimension(instruction.shape)
    swapped = fastest not in (None, c.dims.output_feature)  # the places of the images are neighbours in the result
    counts = [(shape.rows, shape.down), (shape.columns, shape.across)]
    if swapped:
        counts.reverse()
    sizes = tuple(c.sizes[role] for role in _places(instruction, c))
    images = side_of(lhs, 0, sizes, (c.dims.input_feature,), 0, *counts[0])
    features = side_of(rhs, 1, (c.outs,), (c.dims.kernel_input_feature,), 0, *counts[1])
    rows, columns = (features, images) if swapped else (images, features)
    depth = depth_of(rows, columns, c.ins, accumulator_dtype(instruction), shape)
    return Tiling(instruction, rows, columns, (c.groups,), (c.ins,), depth)


def _places(instruction: Instruction, c: Convolution) -> list[int]:
    """The roles of the result that are not features, the slowest in memory first."""
    strides = c.strides(instruction)[0]
    return sorted((BATCH, *range(SPATIAL, len(c.sizes))), key=lambda role: -strides[role])


class ConvolutionTile(Tile):
    """The tile of one group: its rows or columns are places of the images, the others features."""

    def add_up(self, sums: list[Register]) -> list[Register]:
        code, self.c = self.code, Convolution.of(self.tiling.instruction)
        windows = [axis.window for axis in self.c.axes]
        window = code.loop(math.prod(windows), carried=sums)
        self.taps = code.split(window.index, windows)
        return window.close(super().add_up(list(window.carried)))

    def chosen(self) -> list[ir.Value] | None:
        if all(axis.inside() == (0, axis.count) for axis in self.c.axes):
            return None
        self.at_tile()
        rows, columns = self.tiling.rows, self.tiling.columns
        side = columns if columns.number == 0 else rows
        found = [self._meets(self.code.add(self.starts[side], place)) for place in self.places(side)]
        numbers = range(rows.each * columns.each)
        return [found[n % columns.each if side is columns else n // columns.each] for n in numbers]

    def _meets(self, free: IndexValue) -> ir.Value:
        """Whether the window has an element of the input at its present position."""
        code, place, found = self.code, self._place(free), BOOL(1)
        for n, axis in enumerate(self.c.axes):
            at, last = code.value(self._beside(axis, place[SPATIAL + n], n)), (axis.size - 1) * axis.holes
            found = code.b.and_(found, code.b.icmp_unsigned("<=", at, I64(last)))
            if axis.holes > 1:
                rest = code.b.urem(at, I64(axis.holes))
                found = code.b.and_(found, code.b.icmp_unsigned("==", rest, I64(0)))
        return found

    def _beside(self, axis: Axis, position: IndexValue, n: int) -> IndexValue:
        """Where a place of the result meets the input, holes counted; outside of it in the padding."""
        code = self.code
        start = code.add(code.multiply(position, axis.stride), -axis.low)
        return code.add(start, code.multiply(self.taps[n], axis.dilation))

    def _place(self, free: IndexValue) -> list[IndexValue]:
        """A place of the images by role; the first feature of the group."""
        found: list[IndexValue] = [0] * len(self.c.sizes)
        found[GROUP] = self.batch[0]
        roles = _places(self.tiling.instruction, self.c)
        for role, position in zip(roles, self.code.split(free, [self.c.sizes[r] for r in roles]), strict=True):
            found[role] = position
        return found

    def operand_at(self, side: Side, free: IndexValue, term: IndexValue) -> list[IndexValue]:
        code, c = self.code, self.c
        if side.number == 1:
            place: list[IndexValue] = [0] * len(c.sizes)
            place[GROUP], place[OUT] = self.batch[0], free
            return c.operands(code, place, self.taps, term)[1]
        place = self._place(free)
        found = c.operands(code, place, [0] * len(c.axes), term)[0]
        for n, axis in enumerate(c.axes):
            at = code.maximum(self._beside(axis, place[SPATIAL + n], n), 0)
            within = code.minimum(at, (axis.size - 1) * axis.holes)
            found[c.dims.input_spatial[n]] = code.divide(within, axis.holes)
        return found

    def result(self, at: dict[Side, IndexValue]) -> list[IndexValue]:
        place: list[IndexValue] = []
        for side, free in at.items():
            if side.number == 0:
                place = self._place(free)
        (place[OUT],) = [free for side, free in at.items() if side.number == 1]
        return self.c.result(self.code, place)


@form(
    "groups/convolution",
    lambda e, results, tiling, group: ConvolutionTile(e, tiling, group).emit(finishes(e, results)),
    group_dot,
    MINIMUM_ROWS="rows",
    MINIMUM_TERMS="terms of a sum",
)
def tiled(task: Task) -> Fit:
    """Convolutions: for each position of the window, a product in tiles."""
    assert task.group is not None
    return Fit(convolution_tiling(products_of_all(task, Op.CONVOLUTION)[0], task.group))
