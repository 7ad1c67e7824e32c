"""concatenate, one element: of the operand that holds it; or, where all operands are pieces of one array (a rotation,
wrapped edges), of that array at a place that is selected; or of a stack of arrays, from which a gather picks, the
elements of all of them, and one is selected.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Index
from ..core.elements import flatten, scalar_types, unflatten
from ..core.graph import Buffer, Node, reachable
from ..core.index_arithmetic import limits_of
from ..loops.elemental import Elemental, Indices, Reads

MAXIMUM_PIECES = 4
"""Pieces of one array among which a place is selected: each costs a comparison, of all elements."""


def concatenate(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    (d,) = node.attributes["dimensions"]
    starts, start = [], 0
    for buffer in node.inputs:
        starts.append(start)
        start += buffer.dims[d]
    first, last = 0, len(starts)
    known = limits_of(index[d])
    if known is not None:
        first, last = (sum(s <= at for s in starts) for at in (known[0], known[1] - 1))
        first -= 1
    pieces = [_piece(buffer, d) for buffer in node.inputs[first:last]]
    if 1 < len(pieces) <= MAXIMUM_PIECES and all(piece.is_beside(pieces[0]) for piece in pieces):
        return (yield from _moved(e, pieces, starts[first:last], d, index, raw))
    return (yield from _pick(e, node, starts, first, last, d, index, raw))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of an array, with all neighbours along the dimension of a concatenation.

    low: its first place there. others: first place and stride along each other dimension.
    """

    array: Buffer
    low: int
    others: tuple[tuple[int, int], ...]

    def is_beside(self, other: _Piece) -> bool:
        """Whether both differ in their place along the dimension only."""
        return self.array is other.array and self.others == other.others


def _piece(operand: Buffer, d: int) -> _Piece:
    writer, rank = operand.writer, len(operand.dims)
    if writer is None or writer.opcode is not Op.SLICE or writer.attributes["slice"][d].stride != 1:
        return _Piece(operand, 0, ((0, 1),) * (rank - 1))
    bounds = [(s.start, s.stride) for s in writer.attributes["slice"]]
    return _Piece(writer.inputs[0], bounds[d][0], tuple(bounds[:d] + bounds[d + 1 :]))


def _moved(e: Elemental, pieces: Sequence[_Piece], starts: Sequence[int], d: int, index: Indices, raw: bool) -> Reads:
    """One read, at a selected distance: loops around branches are not vectorised."""
    b = e.b
    position = b.materialize(index[d])
    *before, distance = (b.constant(p.low - s, b.types.i64) for p, s in zip(pieces, starts, strict=True))
    for own, end in zip(reversed(before), reversed(starts[1:]), strict=True):
        below = b.compare_integers("slt", position, b.constant(end, b.types.i64))
        distance = b.select(below, own, distance)
    others = iter(pieces[0].others)
    place: list[Index] = []
    for n, i in enumerate(index):
        start, stride = (0, 1) if n == d else next(others)
        place.append(b.add(position, distance) if n == d else b.add(b.mul(i, stride), start))
    return (yield pieces[0].array, tuple(place), raw)


def _pick(
    e: Elemental, node: Node, starts: list[int], first: int, last: int, d: int, index: Indices, raw: bool
) -> Reads:
    """The element, which is in one of the operands first … last − 1. Branches by bisection."""
    if last - first == 1:
        at = (*index[:d], e.b.sub(index[d], starts[first]), *index[d + 1 :])
        return (yield node.inputs[first], at, raw)
    middle = (first + last) // 2
    b = e.b
    lower = b.compare_integers("slt", b.materialize(index[d]), b.constant(starts[middle], b.types.i64))
    branch = b.branch(lower, scalar_types(b.types, node.output.dtype, raw))
    for side, (low, high) in enumerate(((first, middle), (middle, last))):
        with branch.side(side) as results:
            results += flatten((yield from _pick(e, node, starts, low, high, d, index, raw)))
    return unflatten(branch.values, node.output.dtype)


def is_small_stack(node: Node) -> bool:
    """Whether a concatenation is of few arrays of one place each, whose elements are all cheap."""
    (d,) = node.attributes["dimensions"]
    if len(node.inputs) > MAXIMUM_PIECES or any(x.dims[d] != 1 for x in node.inputs):
        return False
    return not any(
        x.bodies or x.opcode in EXPENSIVE or x.opcode in (Op.CONVOLUTION, Op.DOT) for x in reachable(node.inputs)
    )


def picked(e: Elemental, node: Node, index: Indices, raw: bool) -> Reads:
    """The element of a small stack at a place that data decides: branches on data are mispredicted, and no vectors."""
    b, dtype = e.b, node.output.dtype
    (d,) = node.attributes["dimensions"]
    found = flatten((yield node.inputs[-1], (*index[:d], 0, *index[d + 1 :]), raw))
    for k in reversed(range(len(node.inputs) - 1)):
        value = flatten((yield node.inputs[k], (*index[:d], 0, *index[d + 1 :]), raw))
        here = b.compare_integers("sle", b.materialize(index[d]), b.constant(k, b.types.i64))
        found = [b.select(here, x, y) for x, y in zip(value, found, strict=True)]
    return unflatten(found, dtype)
