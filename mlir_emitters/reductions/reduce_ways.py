"""How one element of a reduction, or of a dot, is computed wherever it is read: decided by its node and the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum

from ...hlo.records import dataclass
from ..core.builder import Index
from ..core.facts import Code, Facts
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental, Indices, Linear
from ..loops.fetch import DISTANCE_BYTES, LONG_RUN_BYTES, fetch, streams
from ..loops.linear import is_linear
from ..loops.reduced import full_index, operands_of, reduced_dimensions
from .complex_sums import outer_of_runs
from .extremum import extremum_of, takes_three
from .extremum_run import run_of
from .long_extremum import is_in_lanes
from .long_sums import are_float_sums, is_long
from .short_rows import takes_words
from .sum_run import MINIMUM_RUN_ELEMENTS, Addends, addends_of, is_run, stored_of
from .tails import FETCHED_ELEMENTS, lanes_of


@dataclass(frozen=True, slots=True)
class Along:
    """The reduced dimensions of a node in its operand's memory order, without those of size 1. The last ones are joined
    if they are adjacent in memory and everything is read at its own offset.

    apart: how many are not joined; sizes: of the loops over them; dense: whether the last one lies along memory.
    """

    node: Node
    order: tuple[int, ...]
    apart: int
    sizes: tuple[int, ...]
    dense: bool

    @staticmethod
    def of(node: Node, joins: bool = True) -> Along:
        """joins: whether dimensions may be joined."""
        operand = node.inputs[0]
        order = [d for d in operand.order if d in reduced_dimensions(node)]
        apart = max(len(order) - 1, 0)
        while apart and operand.strides[order[apart - 1]] == operand.dims[order[apart]] * operand.strides[order[apart]]:
            apart -= 1
        dense = bool(order) and operand.strides[order[-1]] == 1
        if not (joins and dense and apart < len(order) - 1 and is_linear(operands_of(node))):
            apart = len(order)
        dims = [operand.dims[d] for d in order]
        sizes = [*dims[:apart], *([math.prod(dims[apart:])] if apart < len(order) else [])]
        return Along(node, tuple(order), apart, tuple(sizes), dense)

    @property
    def joins(self) -> bool:
        return self.apart < len(self.order)

    @property
    def is_run(self) -> bool:
        """Whether the elements of a result are one run in memory."""
        return self.dense and len(self.sizes) == 1

    def place(self, e: Elemental, index: Indices, at: Sequence[Index]) -> Indices:
        """The index of the elements at a place along the dimensions, of the result at `index`."""
        reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(self.node), 0)
        reduced |= zip(self.order, at[: self.apart], strict=False)
        full = full_index(self.node, index, reduced)
        if not self.joins:
            return full
        return Linear((e.b.add(e.offset(self.node.inputs[0], full), at[-1]),))

    def fetched(self, facts: Facts) -> list[Buffer]:
        """What is fetched ahead of elements."""
        operand = self.node.inputs[0]
        long = len(self.sizes) == 1 or self.sizes[-1] * operand.dtype.bytes >= LONG_RUN_BYTES
        return streams(facts, operands_of(self.node), operand) if self.dense and long else []

    def ahead(self, e: Elemental, index: Indices) -> Callable[[Sequence[Index], int], None] | None:
        """What fetches ahead of elements, from their place and their number."""
        buffers = self.fetched(e.b.facts)

        def fetched(at: Sequence[Index], count: int) -> None:
            fetch(e, buffers, e.offset(self.node.inputs[0], self.place(e, index, at)), count, DISTANCE_BYTES)

        return fetched if buffers else None


class Kind(Enum):
    """Of an element's code: sums of complex numbers along memory; a call that adds up a run; sums in blocks; a call
    that finds the extremum of a run; that in lanes, of what is fetched; a word of a few integers; vectors whose last
    one overlaps; loops.
    """

    COMPLEX_RUN = "complex_run"
    SUM_RUN = "sum_run"
    BLOCKS = "blocks"
    EXTREMUM_RUN = "extremum_run"
    LANES = "lanes"
    WORD = "word"
    TAILS = "tails"
    LOOPS = "loops"


@dataclass(frozen=True, slots=True)
class Way:
    """addends: of SUM_RUN; source: the array in memory of EXTREMUM_RUN and WORD; lanes: of TAILS."""

    kind: Kind
    along: Along
    addends: Addends | None = None
    source: Buffer | None = None
    lanes: int = 0

    @property
    def code(self) -> Code:
        long = self.kind in (Kind.TAILS, Kind.LOOPS) and math.prod(self.along.sizes) >= MINIMUM_RUN_ELEMENTS
        shares = self.kind in (Kind.SUM_RUN, Kind.EXTREMUM_RUN)
        return Code(shares=shares, walks=long or self.kind is Kind.BLOCKS)


def way_of(facts: Facts, node: Node) -> Way:
    """How an element of a reduction is computed."""
    sums, along = are_float_sums(node), Along.of(node)
    if sums and len(node.outputs) == 1 and outer_of_runs(facts, [(node.inputs[0], along.order)]) is not None:
        return Way(Kind.COMPLEX_RUN, along)
    if sums and _is_in_blocks(facts, node, along):
        single = node.inputs[0].shape.size == math.prod(along.sizes)
        run = len(node.outputs) == 1 and along.is_run and is_run(facts, along.sizes[0], single)
        addends = addends_of(node.inputs[0]) if run else None
        return Way(Kind.BLOCKS if addends is None else Kind.SUM_RUN, along, addends)
    return (
        _way_of_extremum(facts, node, along)
        or _way_in_vectors(facts, node, along)
        or Way(Kind.LOOPS, Along.of(node, joins=False) if sums else along)
    )


def is_long_sum(facts: Facts, node: Node) -> bool:
    """Whether a reduction is a sum of floats that is long enough for blocks."""
    sizes = [node.inputs[0].dims[d] for d in reduced_dimensions(node)]
    return is_long(facts, sizes) and are_float_sums(node)


def _is_in_blocks(facts: Facts, node: Node, along: Along) -> bool:
    """Whether a sum of floats is long, or is the only one of a kernel and its elements in memory are enough for a
    function to add them up, or dimensions that are one run in memory make it long enough for that.
    """
    operand = node.inputs[0]
    if is_long(facts, [operand.dims[d] for d in reduced_dimensions(node)]):
        return True
    if (
        node.output.shape.size == 1
        and is_run(facts, operand.shape.size, single=True)
        and addends_of(operand) is not None
    ):
        return True
    joined = len(along.order) > 1 and len(along.sizes) == 1 and not facts.strict
    return joined and is_run(facts, along.sizes[0], single=False)


def _way_of_extremum(facts: Facts, node: Node, along: Along) -> Way | None:
    """Of a maximum or minimum along the memory of a large array."""
    if not takes_three(node) or extremum_of(node) is None:
        return None
    source = run_of(facts, node.inputs[0], along.sizes[0]) if along.is_run else None
    if source is not None:
        return Way(Kind.EXTREMUM_RUN, along, source=source)
    return Way(Kind.LANES, along) if is_in_lanes(along.sizes) and along.fetched(facts) else None


def _way_in_vectors(facts: Facts, node: Node, along: Along) -> Way | None:
    """Of a few integers of a row in memory (word_rows.py), or of rows that are whole vectors (tails.py)."""
    source = stored_of(node.inputs[0]) if along.is_run else None
    if source is not None and takes_words(facts, node, along.sizes[0]):
        return Way(Kind.WORD, along, source=source)
    if not along.dense:
        return None
    fetches = along.sizes[-1] in FETCHED_ELEMENTS and bool(along.fetched(facts))
    lanes = lanes_of(facts, node, along.sizes, along.joins, fetches)
    return None if lanes is None else Way(Kind.TAILS, along, lanes=lanes)
