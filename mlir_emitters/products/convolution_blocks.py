"""How a convolution is split: the axis of its lanes and the one whose positions share what is read, the size of a tile,
and blocks of products. Each kind of tiles (convolution_tiles.py and others) has its own sizes.
"""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.records import dataclass, replace
from ..core.facts import Facts
from ..core.graph import Node
from ..reductions.windows import Geometry
from .dot import accumulator_of

BLOCK_LANES = 512
"""Results along the lane axis that are computed together."""

REUSE_POSITIONS = 4
"""Positions that share loaded values: their factors, with UNROLL products each, fit in 16 registers."""

CHAIN_PRODUCTS = 256
"""In a chain: at most a fiftieth of their time goes into additions to the total."""

ALONE_PRODUCTS = 64
"""The same with one input feature, where few sums are long and XLA's are as exact as dots."""

FEW_CHAINS = 16
"""Chains whose sum in f32 is as exact as they are."""

MINIMUM_WORK = 1 << 14
"""Multiplications below which the smallest code is fastest: by a quarter at 14,000, with AVX2."""

CLOSE_ELEMENTS = 4
"""Largest distance of lanes that are loaded together: two vectors are shuffled."""

BATCH, FEATURE, SPATIAL = 0, 2, 3
"""Axes of a Site."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """lanes, reuse: axes of a Site, reuse if there is one; width: lanes of a tile; tile: its positions along the reuse
    axis; apart: the distance of these. unit: accumulators of a position are a multiple; vector_lanes: of a vector.

    totals: whether sums are added to totals, wide: in f64; level: the dimension of the window (behind the last: the
    features) along which blocks of products begin; group: how many steps along it. places: accumulators.

    panel: elements of a copy of a run of the kernel's features, or 0; calls: whether a function that kernels share
    computes the products; over: whether the last tile lies over another, where what would be left is less work.
    """

    lanes: int
    reuse: int | None
    width: int
    tile: int
    apart: int = 1
    unit: int = 1
    vector_lanes: int = 1
    totals: bool = False
    wide: bool = False
    level: int = 0
    group: int = 1
    places: int = 0
    panel: int = 0
    calls: bool = False
    over: bool = False

    def pitch(self, width: int) -> int:
        """The accumulators between two positions of a tile of `width` lanes."""
        return -(-width // self.unit) * self.unit

    @property
    def vectors(self) -> int:
        """At a position."""
        return self.pitch(self.width) // self.vector_lanes

    def products(self, node: Node) -> int:
        """Multiply-adds of vectors in a whole tile, between two additions to totals."""
        geometry = Geometry.of(node)
        counts = [*(-(-s.window // s.gap) for s in geometry.slides), geometry.inputs]
        products = math.prod(counts)
        if self.totals:
            products = min(products, self.group * math.prod(counts[self.level + 1 :]))
        return products * self.tile * self.vectors


def in_chains(facts: Facts, node: Node, blocks: Blocks, long: int) -> Blocks:
    """With blocks of products. long: the most of them in a chain of additions."""
    geometry, wide = Geometry.of(node), accumulator_of(node)
    counts = [*(s.window for s in geometry.slides), geometry.inputs]
    is_float = wide.component in (DType.F32, DType.F64)
    level = next(d for d in range(len(counts)) if math.prod(counts[d + 1 :]) <= long)
    return replace(
        blocks,
        totals=is_float and not facts.strict and math.prod(counts) > long,
        wide=math.prod(counts) > FEW_CHAINS * long,
        level=level,
        group=max(1, long // math.prod(counts[level + 1 :])),
        places=blocks.tile * blocks.pitch(blocks.width),
    )


def chain_of(geometry: Geometry) -> int:
    """The most products in a chain of additions."""
    return CHAIN_PRODUCTS if geometry.inputs > 1 else ALONE_PRODUCTS


def lane_axis(node: Node) -> int | None:
    """The axis with the closest neighbours in the result, of those long enough and with close ones in both operands."""
    geometry = Geometry.of(node)
    if geometry.is_empty:
        return None
    steps = geometry.steps(node)
    close = [
        (out, axis)
        for axis, (out, *reads) in enumerate(steps)
        if geometry.extents[axis] > 1 and max(reads) <= CLOSE_ELEMENTS
    ]
    long = [(out, axis) for out, axis in close if geometry.extents[axis] >= 8]
    return min(long or close, default=(0, None))[1]


def reuse_axis(node: Node, lanes: int, holes: bool = False) -> int | None:
    """The axis of which several positions share what is loaded. holes: whether they may have others between them."""
    g = Geometry.of(node)
    if lanes >= SPATIAL:
        return FEATURE if g.features > 1 else None
    inside = [len(s.between()) // s.period if holes else len(s.covered()) for s in g.slides]
    inner = [(out, SPATIAL + n, inside[n]) for n, (out, _, _) in enumerate(g.steps(node)[3:])]
    long = [(out, axis) for out, axis, covered in inner if covered >= REUSE_POSITIONS]
    if not long and lanes != BATCH and g.batch >= REUSE_POSITIONS:
        return BATCH
    some = [(out, axis) for out, axis, covered in inner if covered]
    return min(long or some, default=(0, None))[1]


def inside_of(geometry: Geometry, reuse: int | None, holes: bool) -> tuple[range, int]:
    """(The positions of whole tiles, the distance of those of one)."""
    if reuse is None or reuse < SPATIAL:
        return range(1 if reuse is None else geometry.extents[reuse]), 1
    slide = geometry.slides[reuse - SPATIAL]
    return (slide.between(), slide.period) if holes else (slide.covered(), 1)


def tile_blocks(facts: Facts, node: Node, lanes: int) -> Blocks:
    """Of sums on the stack."""
    geometry = Geometry.of(node)
    tile = REUSE_POSITIONS if geometry.work >= MINIMUM_WORK else 1
    blocks = Blocks(lanes, reuse_axis(node, lanes), min(BLOCK_LANES, geometry.extents[lanes]), tile)
    return in_chains(facts, node, blocks, chain_of(geometry))
