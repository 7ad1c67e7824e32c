"""Convolutions in vectors whose sums are the results as they are: they go from registers into the result's memory."""

from __future__ import annotations

from contextlib import ExitStack

from ..core.builder import Index, Unroll, Value
from ..core.graph import Node
from ..loops.elemental import Elemental
from ..loops.lanewise import Lanewise
from ..reductions.long_sums import MAXIMUM_REGISTER_CHAINS
from ..reductions.windows import Site
from .convolution_blocks import Blocks
from .convolution_tiles import Write
from .convolution_vectors import Sums, VectorTiles


class PlainTiles(VectorTiles):
    """Runs of features that fill their vectors are stored without a loop over lanes."""

    def __init__(self, e: Elemental, node: Node, blocks: Blocks, write: Write, behind: Lanewise):
        """behind: what makes the kernel's result of the convolution's."""
        super().__init__(e, node, blocks, write)
        self.behind, self.result = behind, behind.result

    def _tile(self, site: Site, count: int, start: Index, width: int, shares: bool) -> None:
        b, sums, wide, totals = self.b, Sums(self, site, count, start, width, shares), self.wide, self.totals
        kernel = sums.kernel
        if width % self.vector_lanes or self.node.output.dtype is not wide:
            super()._tile(site, count, start, width, shares)
            return
        index = self.geometry.index_of(b, site.moved(self.lanes, start))
        first, feature = self.e.offset(self.result, index), index[self.behind.column]
        apart = 0 if self.reuse is None else self.geometry.steps(self.node)[self.reuse][0] * self.apart

        def store(value: Value, position: Index, v: int) -> None:
            place = b.add(b.add(first, b.mul(position, apart)), v * kernel.lanes)
            value = self.behind.value(self.e, value, place, b.add(feature, v * kernel.lanes))
            b.store(value, b.pointer(self.e.pointers[self.result.argument], place, self.element), wide.bytes)

        unroll = Unroll.DONE
        if totals is not None:
            self._start(count * width)
            self._window(site, [], count, start, width, shares)
            unroll = Unroll.DONE if count * width > MAXIMUM_REGISTER_CHAINS else self.between
        elif self.computes_apart(count):
            sums.call([], sums.reach(0))
        else:
            for number, value in enumerate(sums.over([], sums.zeros())):
                store(value, *divmod(number, kernel.vectors))
            return
        lower, upper = self.unwritten(), self.positions(count)
        with ExitStack() as stack:
            position: Index = 0
            if (lower, upper) != (0, 1):
                position = stack.enter_context(b.loop(lower, upper, unroll=unroll)).index
            for v in range(kernel.vectors):
                slot = b.add(b.mul(position, width), v * kernel.lanes)
                if totals is not None:
                    store(totals.finished(slot, kernel.lanes), position, v)
                else:
                    store(b.load(b.pointer(self.space, slot, self.element), kernel.vector, wide.bytes), position, v)
