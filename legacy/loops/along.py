"""Dimensions that are reduced, in the order of memory: the place of each element, and what is fetched ahead of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ..core.builder import IndexValue
from ..core.view import View
from .elemental import Elemental, Index
from .fetch import LONG_RUN, fetch, streams_of
from .linear import is_linear


@dataclass(frozen=True, slots=True)
class Reduced:
    """How reduced elements lie. order: their dimensions, the slowest in memory first. dense: whether the last one is
    along memory. apart: dimensions with loops of their own; the others are one loop, if they are adjacent in memory and
    all operands are read in its order. sizes: of the loops. streams: arrays that are fetched ahead.
    """

    order: tuple[int, ...]
    dense: bool
    apart: int
    sizes: tuple[int, ...]
    streams: tuple[Instruction, ...]

    @staticmethod
    def of(view: View, operands: Sequence[Instruction], order: Sequence[int]) -> Reduced:
        source = operands[0].shape
        dims, strides = ([x[d] for d in order] for x in (source.dims, source.strides))
        dense, apart = strides[-1:] == [1], max(len(order) - 1, 0)
        while apart and strides[apart - 1] == dims[apart] * strides[apart]:
            apart -= 1
        joins = dense and apart < len(order) - 1 and all(is_linear(o, view.leaves) for o in operands)
        apart = apart if joins else len(order)
        sizes = (*dims[:apart], *([prod(dims[apart:])] if joins else []))
        long = len(sizes) == 1 or (dense and sizes[-1] * source.dtype.bytes >= LONG_RUN)
        streams = streams_of(view, operands, source) if dense and long else []
        return Reduced(tuple(order), dense, apart, sizes, tuple(streams))

    @property
    def joins(self) -> bool:
        return self.apart < len(self.order)

    @property
    def is_row(self) -> bool:
        """Whether all elements are neighbours."""
        return self.dense and len(self.sizes) == 1


class Along:
    """The places of reduced elements. kept: the place along the other dimensions."""

    def __init__(self, e: Elemental, operands: Sequence[Instruction], reduced: Reduced, kept: Index):
        self.e, self.reduced, self.source = e, reduced, operands[0].shape
        self.sizes = reduced.sizes
        self.positions: list[IndexValue] = [0] * self.source.rank
        others = [d for d in range(self.source.rank) if d not in reduced.order]
        for d, position in zip(others, kept.multi, strict=True):
            self.positions[d] = position

    def place(self, at: Sequence[IndexValue]) -> Index:
        """The index of the elements at these positions of the loops."""
        code = self.e.code
        for d, position in zip(self.reduced.order, at[: self.reduced.apart], strict=False):
            self.positions[d] = position
        if not self.reduced.joins:
            return Index.at(code, self.source, self.positions)
        return Index.flat(code, self.source, code.add(code.weighted_sum(self.positions, self.source.strides), at[-1]))

    def ahead(self, count: int) -> Callable[[Sequence[IndexValue]], None] | None:
        """What fetches ahead of `count` elements along memory, from their place; None if nothing is."""
        streams = self.reduced.streams

        def fetched(at: Sequence[IndexValue]) -> None:
            fetch(self.e, streams, self.place(at).offset(self.source), count, along=True)

        return fetched if streams else None
