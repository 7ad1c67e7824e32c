"""The roles of a convolution's dimensions, and the ranges of positions at which its window overlaps its input.

Along one spatial dimension, result position s and window position k meet the input at (s·stride + k·dilation − low) /
holes, if that is an integer inside the input. For a fixed s or k the solutions are a range with a step, so that loops
run over it and no element needs a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.attributes import ConvolutionDims, Window
from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue

BATCH, GROUP, OUT, SPATIAL = 0, 1, 2, 3
"""Numbers of the roles of a result's coordinates. Spatial dimensions are numbered from SPATIAL on."""

Range = tuple[IndexValue, IndexValue, int]
"""(start, end, step); empty if end ≤ start."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial dimension. size: of the input; window: of the kernel; count: of the result; holes: base dilation."""

    size: int
    window: int
    count: int
    stride: int
    low: int
    holes: int
    dilation: int
    reverse: bool

    def taps(self, code: Code, position: IndexValue) -> Range:
        """The window positions that meet the input from a position of the result."""
        start = code.add(code.multiply(position, self.stride), -self.low)
        least = -self.low
        places = Places(start, least, least + (self.count - 1) * self.stride, self.dilation, self.window)
        return self._meeting(code, places, (0, self.window))

    def positions(self, code: Code, tap: IndexValue, within: tuple[IndexValue, IndexValue]) -> Range:
        """The result positions `within` a range from which a window position meets the input."""
        start = code.add(code.multiply(tap, self.dilation), -self.low)
        least = -self.low
        places = Places(start, least, least + (self.window - 1) * self.dilation, self.stride, self.count)
        return self._meeting(code, places, within)

    def inside(self) -> tuple[int, int]:
        """[start, end) of the result positions whose whole window is in the input."""
        return self.between() if self.holes == 1 else (0, 0)

    def between(self) -> tuple[int, int]:
        """[start, end) of the result positions whose window lies between the first and the last element of the input,
        with holes in it or not.
        """
        start = max(0, -(-self.low // self.stride))
        last = (self.size - 1) * self.holes
        end = (last + self.low - (self.window - 1) * self.dilation) // self.stride + 1
        return (start, min(end, self.count)) if start < min(end, self.count) else (0, 0)

    @property
    def meets_one(self) -> bool:
        """Whether each result position meets exactly one element: none lies in the padding, or in a hole."""
        return self.window == 1 and self.inside() == (0, self.count)

    @property
    def period(self) -> int:
        """Result positions so far apart meet the input at the same window positions, or at none."""
        return self.holes // math.gcd(self.stride, self.holes)

    def place(self, code: Code, position: IndexValue, tap: IndexValue) -> IndexValue:
        """The position in the input of a pair of result and window positions that meets it."""
        sum_ = code.add(code.multiply(position, self.stride), code.multiply(tap, self.dilation))
        return code.divide(code.add(sum_, -self.low), self.holes)

    def _meeting(self, code: Code, places: Places, within: tuple[IndexValue, IndexValue]) -> Range:
        """The numbers x `within` whose place is an element of the input; elements are `holes` apart, starting at 0."""
        start, end = self._inside(code, places, within)
        return (start, end, 1) if self.holes == 1 else self._on_elements(code, places, start, end)

    def _inside(
        self, code: Code, places: Places, within: tuple[IndexValue, IndexValue]
    ) -> tuple[IndexValue, IndexValue]:
        """[start, end) of the numbers `within` whose place is between the first and the last element of the input."""
        start, end = within
        last = (self.size - 1) * self.holes
        if places.least < 0:
            missing = code.add(code.maximum(code.subtract(0, places.start), 0), places.step - 1)
            start = code.maximum(start, code.divide(missing, places.step))
        if places.greatest + (places.count - 1) * places.step > last:
            left = code.maximum(code.subtract(last + places.step, places.start), 0)
            end = code.minimum(end, code.divide(left, places.step))
        return start, end

    def _on_elements(self, code: Code, places: Places, start: IndexValue, end: IndexValue) -> Range:
        """The numbers in [start, end) whose place is a multiple of `holes`.

        start + x·step ≡ 0 modulo holes. With g = gcd(step, holes) there is a solution if g divides the start, and then
        one in each holes/g numbers: x ≡ −start/g · (step/g)⁻¹ modulo holes/g.
        """
        whole = -(min(places.least, 0) // self.holes) * self.holes  # keeps the dividend non-negative
        rest = code.remainder(code.add(places.start, whole), self.holes)
        common = math.gcd(places.step, self.holes)
        period = self.holes // common
        if common > 1:
            unsolvable = code.minimum(code.remainder(rest, common), 1)
            end = code.minimum(end, code.multiply(code.subtract(1, unsolvable), places.count))
        inverse = pow(places.step // common, -1, period)
        first = code.remainder(code.multiply(code.divide(code.subtract(self.holes, rest), common), inverse), period)
        above = period * (places.count + max(0, -places.least) + 1)  # a multiple of the period that no start exceeds
        skipped = code.remainder(code.subtract(code.add(first, above), start), period)
        return code.add(start, skipped), end, period


@dataclass(frozen=True, slots=True)
class Places:
    """start + x·step for x in [0, count), in units of the dilated input. least, greatest: limits of start."""

    start: IndexValue
    least: int
    greatest: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Convolution:
    """The sizes of a convolution by role. batch: of the result; ins, outs: features of one group.

    by_batch: groups divide the batch, otherwise the features.
    """

    dims: ConvolutionDims
    axes: tuple[Axis, ...]
    batch: int
    groups: int
    ins: int
    outs: int
    by_batch: bool

    @staticmethod
    def of(instruction: Instruction) -> Convolution:
        dims: ConvolutionDims = instruction.attributes["dim_labels"]
        window: Window = instruction.attributes.get("window", Window(()))
        features, batches = (instruction.attributes.get(f"{n}_group_count", 1) for n in ("feature", "batch"))
        lhs, rhs, result = (
            instruction.operands[0].shape.dims,
            instruction.operands[1].shape.dims,
            instruction.shape.dims,
        )
        axes = tuple(
            Axis(lhs[i], rhs[k], result[o], w.stride, w.pad_low, w.lhs_dilate, w.rhs_dilate, w.reverse)
            for i, k, o, w in zip(
                dims.input_spatial, dims.kernel_spatial, dims.output_spatial, window.dims, strict=True
            )
        )
        groups = max(features, batches)
        return Convolution(
            dims,
            axes,
            result[dims.output_batch],
            groups,
            rhs[dims.kernel_input_feature],
            rhs[dims.kernel_output_feature] // groups,
            batches > 1,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the result by role."""
        return self.batch, self.groups, self.outs, *(a.count for a in self.axes)

    @property
    def products(self) -> int:
        """The number of multiplications, padding included."""
        return math.prod(self.sizes) * self.terms

    @property
    def terms(self) -> int:
        """The number of products whose sum is an element of the result, padding included."""
        return self.ins * math.prod(a.window for a in self.axes)

    def result(self, code: Code, place: Sequence[IndexValue]) -> list[IndexValue]:
        """The position in the result, given coordinates by role."""
        dims, found = self.dims, [0] * (len(self.axes) + 2)
        positions: list[IndexValue] = list(found)
        positions[dims.output_batch] = place[BATCH]
        positions[dims.output_feature] = code.add(code.multiply(place[GROUP], self.outs), place[OUT])
        for d, position in zip(dims.output_spatial, place[SPATIAL:], strict=True):
            positions[d] = position
        return positions

    def role_of(self, d: int) -> int | None:
        """The role of a dimension of the result; None for features of several in several groups."""
        if d == self.dims.output_batch:
            return BATCH
        if d == self.dims.output_feature:
            return OUT if self.groups == 1 else GROUP if self.outs == 1 else None
        return SPATIAL + self.dims.output_spatial.index(d)

    def roles(self, code: Code, positions: Sequence[IndexValue]) -> list[IndexValue]:
        """The inverse of `result`."""
        dims = self.dims
        feature = positions[dims.output_feature]
        group, out = code.divide(feature, self.outs), code.remainder(feature, self.outs)
        if self.groups == 1:
            group, out = 0, feature
        return [positions[dims.output_batch], group, out, *(positions[d] for d in dims.output_spatial)]

    def operands(
        self, code: Code, place: Sequence[IndexValue], taps: Sequence[IndexValue], feature: IndexValue
    ) -> tuple[list[IndexValue], list[IndexValue]]:
        """Positions in both operands, given those in the result and window, and the input feature within the group."""
        dims = self.dims
        left: list[IndexValue] = [0] * (len(self.axes) + 2)
        right = list(left)
        batch, group, out = place[:SPATIAL]
        left[dims.input_batch], left[dims.input_feature] = batch, feature
        if self.by_batch:
            left[dims.input_batch] = code.add(code.multiply(group, self.batch), batch)
        else:
            left[dims.input_feature] = code.add(code.multiply(group, self.ins), feature)
        right[dims.kernel_input_feature] = feature
        right[dims.kernel_output_feature] = code.add(code.multiply(group, self.outs), out)
        for n, axis in enumerate(self.axes):
            left[dims.input_spatial[n]] = axis.place(code, place[SPATIAL + n], taps[n])
            tap = taps[n]
            right[dims.kernel_spatial[n]] = code.subtract(axis.window - 1, tap) if axis.reverse else tap
        return left, right

    def strides(self, instruction: Instruction) -> tuple[list[int], list[int], list[int]]:
        """Strides in the result, the left and the right operand for a step along each role, in elements."""
        dims = self.dims
        out, left, right = (s.strides for s in (instruction.shape, *(o.shape for o in instruction.operands[:2])))
        feature, batch = left[dims.input_feature], left[dims.input_batch]
        group = self.batch * batch if self.by_batch else self.ins * feature
        f, k = out[dims.output_feature], right[dims.kernel_output_feature]
        return (
            [out[dims.output_batch], f * self.outs, f, *(out[d] for d in dims.output_spatial)],
            [batch, group, 0, *(left[d] * a.stride for d, a in zip(dims.input_spatial, self.axes, strict=True))],
            [0, k * self.outs, k, *(0 for _ in self.axes)],
        )
