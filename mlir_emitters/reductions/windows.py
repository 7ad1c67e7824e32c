"""Windows of a convolution: which result positions and which window positions meet an element of the input.

`Sliding.meeting` answers both questions with the bounds and the step of a loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...hlo.attributes import ConvolutionDims, Window
from ...hlo.records import dataclass, replace
from ..core.builder import Builder, Index
from ..core.graph import Node

Bounds = tuple[Index, Index, int]
"""Lower bound, upper bound and step of a loop, which may be empty."""


@dataclass(frozen=True, slots=True)
class Sliding:
    """A spatial dimension: sizes of input, window and result, and how the window slides.

    Result position s and window position k meet the input, in which `gap` − 1 holes follow each element, at
    s·stride + k·spread − low.
    """

    input: int
    window: int
    result: int
    stride: int
    spread: int
    low: int
    gap: int
    reverse: bool

    def positions(self, b: Builder, tap: Index, lower: Index, upper: Index) -> Bounds:
        """Result positions in [lower, upper) that meet an element through a window position."""
        swapped = replace(self, stride=self.spread, spread=self.stride, window=self.result, result=self.window)
        return swapped.meeting(b, tap, lower, upper)

    def taps(self, b: Builder, position: Index) -> Bounds:
        """Window positions that meet an element from a result position."""
        return self.meeting(b, position, 0, self.window)

    def meeting(self, b: Builder, position: Index, lower: Index, upper: Index) -> Bounds:
        missing = b.sub(self.low, b.mul(position, self.stride))  # distance by which the window begins before the input
        least = self.low - (self.result - 1) * self.stride
        last = (self.input - 1) * self.gap
        if self.low > 0:
            lower = b.greatest(lower, b.div(b.add(b.greatest(missing, 0), self.spread - 1), self.spread))
        if last + least < (self.window - 1) * self.spread:
            left = b.greatest(b.add(missing, last + self.spread), 0)
            upper = b.least(upper, b.div(left, self.spread))
        if self.gap == 1:
            return lower, upper, 1
        step = self.gap // math.gcd(self.spread, self.gap)
        wrapped = b.rem(b.add(missing, -(least // self.gap) * self.gap), self.gap)
        first = self._first(b, wrapped, step)
        if isinstance(first, int):
            if first < 0:
                return 0, 0, 1
        else:
            none = b.compare_integers("slt", first, b.materialize(0))
            upper = b.select(none, b.materialize(0), b.materialize(upper))
        turns = step * (self.window + self.low + 1) if self.low > 0 else step * (self.window + 1)
        return b.add(lower, b.rem(b.sub(b.add(first, turns), lower), step)), upper, step

    def _first(self, b: Builder, residue: Index, step: int) -> Index:
        """The least position whose spread has this remainder modulo the gap; −1 if there is none."""
        found = np.full(self.gap, -1, np.int64)
        for k in reversed(range(step)):
            found[k * self.spread % self.gap] = k
        if isinstance(residue, int):
            return int(found[residue])
        i64 = b.types.i64
        return b.load(b.pointer(b.array(found), residue, i64), i64, 8)

    def element(self, b: Builder, position: Index, tap: Index) -> Index:
        """The position in the input at which the two positions meet."""
        return b.div(b.add(b.add(b.mul(position, self.stride), b.mul(tap, self.spread)), -self.low), self.gap)

    def covered(self) -> range:
        """The result positions whose windows are entirely in the input."""
        return self.between() if self.gap == 1 else range(0)

    @property
    def single(self) -> bool:
        """Whether there is exactly one element under the window, at each position."""
        return self.window == 1 and len(self.covered()) == self.result

    def between(self) -> range:
        """The result positions whose windows lie between the first and the last element of the input, which may have
        holes there.
        """
        first = max(0, -(-self.low // self.stride))
        last = ((self.input - 1) * self.gap + self.low - (self.window - 1) * self.spread) // self.stride
        return range(first, max(first, min(last + 1, self.result)))

    @property
    def period(self) -> int:
        """Of positions in `between`, those so far apart meet elements at the same window positions."""
        return self.gap // math.gcd(self.stride, self.gap)


@dataclass(frozen=True, slots=True)
class Site:
    """A position in the result: batch within its group, group, output feature within its group, spatial positions."""

    batch: Index
    group: Index
    feature: Index
    spatial: tuple[Index, ...]

    def coordinate(self, axis: int) -> Index:
        return (self.batch, self.group, self.feature, *self.spatial)[axis]

    def moved(self, axis: int, to: Index) -> Site:
        """The site with another coordinate along one axis: 0, 1, 2 are batch, group, feature."""
        all_ = [self.batch, self.group, self.feature, *self.spatial]
        all_[axis] = to
        return Site(all_[0], all_[1], all_[2], tuple(all_[3:]))


@dataclass(frozen=True, slots=True)
class Geometry:
    """A convolution: sizes of a group, and how the dimensions slide. group_of_batch: groups divide the batch."""

    labels: ConvolutionDims
    slides: tuple[Sliding, ...]
    batch: int
    groups: int
    inputs: int
    features: int
    group_of_batch: bool

    @staticmethod
    def of(node: Node) -> Geometry:
        labels: ConvolutionDims = node.attributes["dim_labels"]
        window: Window = node.attributes.get("window", Window(()))
        lhs, rhs, out = node.inputs[0].dims, node.inputs[1].dims, node.output.dims
        slides = []
        for n, w in enumerate(window.dims):
            sizes = lhs[labels.input_spatial[n]], rhs[labels.kernel_spatial[n]], out[labels.output_spatial[n]]
            slides.append(Sliding(*sizes, w.stride, w.rhs_dilate, w.pad_low, w.lhs_dilate, w.reverse))
        of_batch = node.attributes.get("batch_group_count", 1)
        groups = max(of_batch, node.attributes.get("feature_group_count", 1))
        return Geometry(
            labels,
            tuple(slides),
            out[labels.output_batch],
            groups,
            rhs[labels.kernel_input_feature],
            rhs[labels.kernel_output_feature] // groups,
            of_batch > 1,
        )

    @property
    def is_empty(self) -> bool:
        """Whether the sums have no terms."""
        return not self.inputs or any(not (s.window and s.input) for s in self.slides)

    @property
    def extents(self) -> tuple[int, ...]:
        """Sizes along the axes of a site."""
        return self.batch, self.groups, self.features, *(s.result for s in self.slides)

    @property
    def work(self) -> int:
        return math.prod(self.extents) * self.inputs * math.prod(s.window for s in self.slides)

    def axis_of(self, d: int) -> int | None:
        """The axis that is a dimension of the result; None for the features of several groups."""
        if d == self.labels.output_batch:
            return 0
        if d == self.labels.output_feature:
            return 2 if self.groups == 1 else 1 if self.features == 1 else None
        return 3 + self.labels.output_spatial.index(d)

    def index_of(self, b: Builder, site: Site) -> tuple[Index, ...]:
        index: list[Index] = [0] * (2 + len(self.slides))
        index[self.labels.output_batch] = site.batch
        index[self.labels.output_feature] = b.add(b.mul(site.group, self.features), site.feature)
        for d, i in zip(self.labels.output_spatial, site.spatial, strict=True):
            index[d] = i
        return tuple(index)

    def site_of(self, b: Builder, index: Sequence[Index]) -> Site:
        feature = index[self.labels.output_feature]
        group: Index = b.div(feature, self.features) if self.groups > 1 else 0
        within = b.rem(feature, self.features) if self.groups > 1 else feature
        spatial = tuple(index[d] for d in self.labels.output_spatial)
        return Site(index[self.labels.output_batch], group, within, spatial)

    def factors(
        self, b: Builder, site: Site, taps: Sequence[Index], feature: Index
    ) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
        """Indices into input and kernel of the product for a window position and an input feature of the group."""
        labels = self.labels
        left: list[Index] = [0] * (2 + len(self.slides))
        right: list[Index] = [0] * (2 + len(self.slides))
        split, width = (site.batch, self.batch) if self.group_of_batch else (feature, self.inputs)
        split = b.add(b.mul(site.group, width), split)
        left[labels.input_batch] = split if self.group_of_batch else site.batch
        left[labels.input_feature] = feature if self.group_of_batch else split
        right[labels.kernel_input_feature] = feature
        right[labels.kernel_output_feature] = b.add(b.mul(site.group, self.features), site.feature)
        for n, s in enumerate(self.slides):
            left[labels.input_spatial[n]] = s.element(b, site.spatial[n], taps[n])
            right[labels.kernel_spatial[n]] = b.sub(s.window - 1, taps[n]) if s.reverse else taps[n]
        return tuple(left), tuple(right)

    def window_steps(self, node: Node) -> list[tuple[int, int]]:
        """For each dimension of the window, the distance of its positions in (input, kernel), in elements."""
        labels, (lhs, rhs) = self.labels, node.inputs[:2]
        dimensions = zip(self.slides, labels.input_spatial, labels.kernel_spatial, strict=True)
        return [(lhs.strides[i] * -(-s.spread // s.gap), rhs.strides[k]) for s, i, k in dimensions]

    def steps(self, node: Node) -> list[tuple[int, int, int]]:
        """For each axis of a site, the strides in (result, input, kernel), in elements."""
        labels = self.labels
        out, lhs, rhs = node.output.strides, node.inputs[0].strides, node.inputs[1].strides
        batch, feature = lhs[labels.input_batch], lhs[labels.input_feature]
        group = batch * self.batch if self.group_of_batch else feature * self.inputs
        f, o = out[labels.output_feature], rhs[labels.kernel_output_feature]
        found = [(out[labels.output_batch], batch, 0), (f * self.features, group, o * self.features), (f, 0, o)]
        for n, s in enumerate(self.slides):
            found.append((out[labels.output_spatial[n]], lhs[labels.input_spatial[n]] * s.stride, 0))
        return found
