"""Access maps: for each array that results read, how it runs along their dimensions. A map is made once for the results
that are emitted together; forms ask it, and walk no graph for that question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from .graph import Buffer, Node, reachable, visited

AT_PLACE = ELEMENTWISE - {Op.BITCAST_CONVERT, Op.STOCHASTIC_CONVERT}
"""Ops whose elements are made of those at their own place of each operand that is no scalar."""


@dataclass(frozen=True, slots=True)
class Run:
    """How what is read runs along a dimension of the results: at position i there, it is at `first` + `step` · i."""

    dimension: int
    first: int = 0
    step: int = 1

    def moved(self, first: int, step: int = 1) -> Run:
        """Of an operand that is read at `first` + `step` times the position of what reads it."""
        return Run(self.dimension, first + step * self.first, step * self.step)


Runs = tuple[Run | None, ...]
"""For each dimension of what is read; None: it follows no single dimension of the results."""


@dataclass(frozen=True, slots=True)
class Access:
    """An array in memory, or what a node that moves no elements computes."""

    buffer: Buffer
    runs: Runs

    @property
    def places(self) -> tuple[int | None, ...]:
        """For each dimension of the buffer, that of the results which runs along it."""
        return tuple(None if run is None else run.dimension for run in self.runs)

    def strides(self, rank: int) -> list[int]:
        """How many elements of the buffer a step along each dimension of the results is."""
        found = [0] * rank
        for run, stride in zip(self.runs, self.buffer.strides, strict=True):
            if run is not None:
                found[run.dimension] += run.step * stride
        return found

    def is_whole(self, dims: Sequence[int]) -> bool:
        """Whether it is read from the first to the last element along each dimension. dims: of the results."""
        ends = zip(self.runs, self.buffer.dims, strict=True)
        return all(run is not None and run == Run(run.dimension) and size == dims[run.dimension] for run, size in ends)

    def follows(self, dimension: int) -> bool:
        """Whether neighbours along a dimension of the results are neighbours in memory."""
        fast = self.buffer.fastest
        return fast is not None and self.places[fast] == dimension


@dataclass(frozen=True, slots=True)
class AccessMap:
    """What results of one shape and layout read through elementwise ops and movement, each access once. leaves: of
    these, the arrays in memory that are read from the first to the last element along each of their dimensions.
    """

    results: tuple[Buffer, ...]
    accesses: tuple[Access, ...]
    leaves: tuple[Access, ...]

    @staticmethod
    def of(results: Sequence[Buffer]) -> AccessMap:
        found = tuple(x for x in visited(reversed(wholes(results)), _read) if not _moves(x))
        leaves = (x for x in found if x.buffer.writer is None and x.is_whole(results[0].dims))
        return AccessMap(tuple(results), found, tuple(leaves))

    @property
    def transposed(self) -> Access | None:
        """The array that a single result is a pure transposition of, of numbers that are not complex."""
        if len(self.results) != 1 or self.results[0].dtype.is_complex or len(self.accesses) != 1:
            return None
        pure = all(node.opcode in (Op.COPY, Op.TRANSPOSE) for node in reachable(self.results))
        return self.leaves[0] if pure and self.leaves else None

    def crossing(self, least: int) -> tuple[int, int] | None:
        """(The results' dimension along which an array is contiguous, the results' own), if they differ and neither is
        shorter than `least`.
        """
        dims, own = self.results[0].dims, self.results[0].fastest
        if own is None or dims[own] < least:
            return None
        found = (x.places[x.buffer.order[-1]] for x in self.leaves if x.buffer.order and own in x.places)
        return next(((d, own) for d in found if d is not None and d != own and dims[d] >= least), None)

    def across(self, sides: tuple[int, int]) -> list[Access]:
        """The arrays that are contiguous along the first of the two dimensions, and run along the other, too."""
        return [x for x in self.leaves if sides[1] in x.places and x.follows(sides[0])]

    @property
    def alike(self) -> list[Buffer]:
        """The arrays that lie in memory as the results do."""
        first = self.results[0]
        own = tuple(range(len(first.dims)))
        return [x.buffer for x in self.leaves if x.places == own and x.buffer.strides == first.strides]

    @property
    def varying(self) -> set[int]:
        """The dimensions of the results along which their elements may differ."""
        found: set[int] = set()
        for access in self.accesses:
            node, kept = access.buffer.writer, list(range(len(access.runs)))
            if node is not None and node.opcode is Op.IOTA:
                kept = [node.attributes["iota_dimension"]]
            runs = (access.runs[d] for d in kept if access.buffer.dims[d] != 1)
            found.update(run.dimension for run in runs if run is not None)
        return found


def wholes(results: Sequence[Buffer]) -> list[Access]:
    """The results as they are written."""
    return [Access(result, tuple(map(Run, range(len(result.dims))))) for result in results]


# What moves elements: the operands of a node whose own runs are these ------------------------------------------------

Sources = list[tuple[Buffer, Runs]]


def sources(node: Node, runs: Runs) -> Sources | None:
    """What a node reads at its operands' places; None if it moves no elements so, or reads several."""
    if node.opcode in AT_PLACE:
        return [(x, runs) for x in node.inputs if x.dims]
    rule = _MOVES.get(node.opcode)
    return None if rule is None else [(node.inputs[0], rule(node, runs))]


def _broadcast(node: Node, runs: Runs) -> Runs:
    return tuple(runs[d] for d in node.attributes.get("dimensions", ()))


def _transpose(node: Node, runs: Runs) -> Runs:
    moved = dict(zip(node.attributes["dimensions"], runs, strict=True))
    return tuple(moved[d] for d in range(len(runs)))


def _slice(node: Node, runs: Runs) -> Runs:
    pairs = zip(runs, node.attributes["slice"], strict=True)
    return tuple(None if run is None else run.moved(s.start, s.stride) for run, s in pairs)


def _reverse(node: Node, runs: Runs) -> Runs:
    flipped, dims = node.attributes["dimensions"], node.output.dims
    return tuple(run.moved(dims[d] - 1, -1) if run is not None and d in flipped else run for d, run in enumerate(runs))


_MOVES: Mapping[Op, Callable[[Node, Runs], Runs]] = {
    Op.BROADCAST: _broadcast,
    Op.REVERSE: _reverse,
    Op.SLICE: _slice,
    Op.TRANSPOSE: _transpose,
}
"""Ops that read one element of their operand at a place that follows from the result's."""


def _moves(access: Access) -> bool:
    node = access.buffer.writer
    return node is not None and (node.opcode in AT_PLACE or node.opcode in _MOVES)


def _read(access: Access) -> Iterable[Access]:
    node = access.buffer.writer
    found = None if node is None else sources(node, access.runs)
    return (Access(*x) for x in found or ())
