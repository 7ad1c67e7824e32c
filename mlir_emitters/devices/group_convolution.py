"""Convolutions of devices: products in tiles (group_dot.py), for one position of the window after the other.

The rows of the product are positions in the images, its columns are features, its terms are input features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...codegen.options import GroupShape
from ..core.builder import Index, Value
from ..core.graph import Node
from ..loops.elemental import Elemental, Indices
from ..loops.form import Answer, fewer, fitting
from ..loops.ranges import positions_of
from ..loops.view import Subject, View
from ..products.dot import accumulator_of
from ..reductions.results import write_together
from ..reductions.windows import Geometry, Site, Sliding
from .group import Group
from .group_dot import MINIMUM_TERMS, Side, TileKernel, Tiling, side_of, tiled


def fits(view: View, subject: Subject) -> Answer:
    assert view.group is not None
    return fitting(tiling_of(subject.node, view.group))


def emit(e: Elemental, subject: Subject, tiling: Tiling, group: Group) -> None:
    ConvolutionKernel(e, tiling, group, lambda index: write_together(e, subject.results, index)).emit()


def tiling_of(node: Node, shape: GroupShape) -> Tiling | str:
    """The tiles of a convolution; why it has none."""
    if accumulator_of(node).is_complex:
        return "sums are of complex numbers"
    geometry, labels = Geometry.of(node), node.attributes["dim_labels"]
    lhs, rhs = node.inputs
    count = 0 if geometry.is_empty else geometry.inputs * math.prod(s.window for s in geometry.slides)
    if count < MINIMUM_TERMS:
        return fewer(count, "terms", MINIMUM_TERMS)
    terms = ((labels.input_feature, labels.kernel_input_feature, geometry.inputs),)
    sites_are_wide = node.output.fastest not in (None, labels.output_feature)
    across, down = (shape.across, shape.columns), (shape.down, shape.rows)
    places = tuple(node.output.dims[d] for d in _site_dimensions(node))
    left = side_of(lhs, places, (labels.input_feature,), 0, *(across if sites_are_wide else down))
    features, summed = (geometry.features,), (labels.kernel_input_feature,)
    right = side_of(rhs, features, summed, 0, *(down if sites_are_wide else across))
    return tiled(node, (left, right), sites_are_wide, (geometry.groups,), terms, shape)


def _site_dimensions(node: Node) -> list[int]:
    """The dimensions of the result but for its features, the slowest first."""
    feature = node.attributes["dim_labels"].output_feature
    return [d for d in reversed(node.output.shape.minor_to_major) if d != feature]


class ConvolutionKernel(TileKernel):
    """Emits the tile that is the group's step. Its left side is of the images, its right side of the kernel."""

    @property
    def geometry(self) -> Geometry:
        return Geometry.of(self.tiling.node)

    def count(self) -> int:
        return super().count() * math.prod(s.window for s in self.geometry.slides)

    def first_term(self, number: Index) -> Index:
        self.taps = self._taps(number)
        return self.b.rem(number, super().count())

    def _taps(self, number: Index) -> list[Index]:
        """The position in the window of the turn that begins at this number of a term."""
        return positions_of(self.b, self.b.div(number, super().count()), [s.window for s in self.geometry.slides])

    def wanted(self, number: Index) -> list[Value] | None:
        """Whether the input has elements there: what lies beside it is no term, whatever the kernel's element is."""
        if all(len(s.covered()) == s.result for s in self.geometry.slides):
            return None
        self.at_tile()
        left, taps = self.tiling.left, self._taps(number)
        return [self._inside(self._site(self.b.add(self.starts[left], n)), taps) for n in self.places(left)]

    def _inside(self, site: Site, taps: Sequence[Index]) -> Value:
        b, i64 = self.b, self.b.types.i64
        found = b.constant(1, b.types.i1)
        for slide, position, tap in zip(self.geometry.slides, site.spatial, taps, strict=True):
            place = b.materialize(_place(self, slide, position, tap))
            last = b.constant((slide.input - 1) * slide.gap, i64)
            found = b.binary("andi", found, b.compare_integers("ule", place, last))
            if slide.gap > 1:
                rest = b.binary("remui", place, slide.gap)
                found = b.binary("andi", found, b.compare_integers("eq", rest, b.constant(0, i64)))
        return found

    def _site(self, free: Index, feature: Index = 0) -> Site:
        """The position of the result with this number along the left side."""
        node, (group,) = self.tiling.node, self.batch
        labels, found = node.attributes["dim_labels"], dict[int, Index]()
        for d, position in zip(_site_dimensions(node), positions_of(self.b, free, self.tiling.left.sizes), strict=True):
            found[d] = position
        return Site(found[labels.output_batch], group, feature, tuple(found[d] for d in labels.output_spatial))

    def operand_index(self, side: Side, free: Index, term: Index) -> Indices:
        geometry, left = self.geometry, side is self.tiling.left
        if not left:
            nowhere = Site(0, self.batch[0], free, (0,) * len(geometry.slides))
            return geometry.factors(self.b, nowhere, self.taps, term)[1]
        b, site, labels = self.b, self._site(free), self.tiling.node.attributes["dim_labels"]
        index = [*geometry.factors(b, site, [0] * len(self.taps), term)[0]]
        for n, (slide, tap) in enumerate(zip(geometry.slides, self.taps, strict=True)):
            place = b.greatest(_place(self, slide, site.spatial[n], tap), 0)
            place = b.least(place, (slide.input - 1) * slide.gap)
            index[labels.input_spatial[n]] = b.div(place, slide.gap)
        return tuple(index)

    def result(self, at: dict[Side, Index]) -> Indices:
        left, right = self.tiling.left, self.tiling.right
        return self.geometry.index_of(self.b, self._site(at[left], at[right]))


def _place(kernel: TileKernel, slide: Sliding, position: Index, tap: Index) -> Index:
    """Where a position of the result meets the input through a position of the window, holes counted."""
    b = kernel.b
    return b.add(b.add(b.mul(position, slide.stride), b.mul(tap, slide.spread)), -slide.low)
