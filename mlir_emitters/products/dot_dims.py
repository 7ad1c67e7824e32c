"""Dimensions of a product: batch, rows, columns and contracting ones. Contiguous dimensions are merged."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.records import dataclass, replace
from ..core.builder import Builder, Index
from ..core.graph import Node
from .dot import dimension_numbers


@dataclass(frozen=True, slots=True)
class Dimension:
    """A loop of a product: its size, and its strides in lhs, rhs and result (0 if it does not occur there).

    places: the dimensions of the result that it runs over, outermost first, with their sizes.
    """

    size: int
    lhs: int
    rhs: int
    out: int
    places: tuple[tuple[int, int], ...] = ()

    def flipped(self) -> Dimension:
        """The same dimension if the operands are exchanged."""
        return replace(self, lhs=self.rhs, rhs=self.lhs)

    def split(self, b: Builder, index: Index) -> dict[int, Index]:
        """The counter of the loop as coordinates of the result."""
        found: dict[int, Index] = {}
        for d, size in reversed(self.places[1:]):
            found[d], index = b.rem(index, size), b.div(index, size)
        for d, _ in self.places[:1]:
            found[d] = index
        return found


def dimensions_of(node: Node) -> tuple[list[Dimension], list[Dimension], list[Dimension], list[Dimension]]:
    """(batch, rows, columns, contracting) dimensions, without those of size 1."""
    lhs, rhs, out = node.inputs[0], node.inputs[1], node.output
    lhs_batch, rhs_batch, lhs_contract, rhs_contract = dimension_numbers(node)
    place = iter(enumerate(out.strides))

    def found(size: int, left: int, right: int) -> Dimension:
        d, stride = next(place)
        return Dimension(size, left, right, stride, ((d, size),))

    batch = [found(lhs.dims[a], lhs.strides[a], rhs.strides[c]) for a, c in zip(lhs_batch, rhs_batch, strict=True)]
    rows = [found(lhs.dims[d], lhs.strides[d], 0) for d in range(len(lhs.dims)) if d not in (*lhs_batch, *lhs_contract)]
    columns = [
        found(rhs.dims[d], 0, rhs.strides[d]) for d in range(len(rhs.dims)) if d not in (*rhs_batch, *rhs_contract)
    ]
    contracted = [
        Dimension(lhs.dims[a], lhs.strides[a], rhs.strides[c], 0)
        for a, c in zip(lhs_contract, rhs_contract, strict=True)
    ]
    return _merged(batch), _merged(rows), _merged(columns), _merged(contracted)


def _merged(group: Sequence[Dimension]) -> list[Dimension]:
    """Drop dimensions of size 1, and merge neighbours that are one dimension in memory."""
    result: list[Dimension] = []
    for inner in group:
        if inner.size == 1:
            continue
        if result:
            outer = result[-1]
            if all(
                o == i * inner.size for o, i in ((outer.lhs, inner.lhs), (outer.rhs, inner.rhs), (outer.out, inner.out))
            ):
                both = outer.places + inner.places
                result[-1] = Dimension(outer.size * inner.size, inner.lhs, inner.rhs, inner.out, both)
                continue
        result.append(inner)
    return result
