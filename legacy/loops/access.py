"""Where arrays are read for an element of a result: the map that forms ask, and the dimensions of arrays in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...hlo.shapes import Shape
from ..core.view import View
from ..numerics.elementwise import EMIT

Place: TypeAlias = tuple[int, int | None] | None
"""(A dimension of the result along which positions run, what is added to them; None if that is not one number). None:
along no dimension.
"""


def live_dimensions(shape: Shape) -> list[int]:
    """The dimensions of more than one element, the fastest in memory first."""
    return [d for d in shape.minor_to_major if shape.dims[d] != 1]


def fastest_dimension(shape: Shape) -> int | None:
    """The dimension along which elements are adjacent in memory; None for a single element."""
    return next(iter(live_dimensions(shape)), None)


@dataclass(frozen=True, slots=True)
class Access:
    """A value whose element is read for an element of a result. places: for each of its dimensions. shifted: whether
    positions may change on the way, or lie outside.
    """

    value: Instruction
    places: tuple[Place, ...]
    shifted: bool = False

    @property
    def roles(self) -> tuple[int, ...]:
        """For each dimension that of the result that it follows; -1 for none."""
        return tuple(-1 if place is None else place[0] for place in self.places)

    @property
    def across(self) -> int:
        """The dimension of the result along which neighbours in memory are read; -1 if there is none."""
        fast = fastest_dimension(self.value.shape)
        return -1 if fast is None else self.roles[fast]

    @property
    def exact(self) -> bool:
        """Whether all positions are those of the result."""
        return not self.shifted and None not in self.places


def accesses(view: View, root: Instruction) -> tuple[Access, ...]:
    """How arrays in memory are read, as far as they can be followed from a root."""
    if root not in view.accesses:
        view.accesses[root] = tuple(a for a in values_of(view, [root], _FOLLOWED) if a.value in view.leaves)
    return view.accesses[root]


def crossings_of(view: View, root: Instruction, least: int) -> list[Access]:
    """Those of arrays of `least` elements whose neighbours in memory lie along a dimension of the root."""
    return [a for a in accesses(view, root) if a.across >= 0 and a.value.shape.size >= least]


def at_root(root: Instruction) -> Access:
    return Access(root, tuple((d, 0) for d in range(root.shape.rank)))


def values_of(
    view: View, roots: Sequence[Instruction], through: Collection[Op], follow: Follow | None = None
) -> Iterator[Access]:
    """The roots and what they are made of, each value once for each place. through: opcodes whose operands are visited;
    follow: which of them, if not all.
    """
    stack = [at_root(root) for root in roots]
    seen = set(stack)
    while stack:
        yield (access := stack.pop())
        if access.value.opcode in through and access.value not in view.leaves:
            new = [operand for operand in (follow or operands_of)(access) if operand not in seen]
            seen.update(new)
            stack += new


Follow: TypeAlias = Callable[[Access], list[Access]]


def operands_of(access: Access) -> list[Access]:
    """The operands of an operation on elements, or of one that moves them, and where they are read. Scalars are left
    out.
    """
    i, places, op = access.value, access.places, access.value.opcode
    if op is Op.CONCATENATE:
        axis, found, start = i.dimensions[0], [], 0
        for operand in i.operands:
            moved = tuple(_plus(p, -start) if d == axis else p for d, p in enumerate(places))
            found.append(Access(operand, moved, shifted=True))
            start += operand.shape.dims[axis]
        return found
    if op in _PLACES:
        return [Access(i.operands[0], tuple(_PLACES[op](i, places)), access.shifted or op in _SHIFTING)]
    return [replace(access, value=o) for o in i.operands if o.shape.dims == i.shape.dims]


def _plus(place: Place, distance: int | None) -> Place:
    if place is None:
        return None
    dimension, offset = place
    return dimension, None if offset is None or distance is None else offset + distance


def _transposed(i: Instruction, places: Sequence[Place]) -> list[Place]:
    found = dict(zip(i.dimensions, places, strict=True))
    return [found[d] for d in range(len(places))]


_PLACES: dict[Op, Callable[[Instruction, Sequence[Place]], list[Place]]] = {
    Op.BROADCAST: lambda i, places: [places[d] for d in i.dimensions],
    Op.DYNAMIC_SLICE: lambda i, places: [_plus(p, None) for p in places],
    Op.PAD: lambda i, places: [_plus(p, -q.low) for p, q in zip(places, i.attributes["padding"])],
    Op.REVERSE: lambda i, places: [_plus(p, None if d in i.dimensions else 0) for d, p in enumerate(places)],
    Op.SLICE: lambda i, places: [
        _plus(p, s.start if s.stride == 1 else None) for p, s in zip(places, i.attributes["slice"])
    ],
    Op.TRANSPOSE: _transposed,
}
"""Where an operation that moves elements reads its first operand."""

_SHIFTING = frozenset({Op.SLICE, Op.REVERSE, Op.DYNAMIC_SLICE, Op.PAD})
"""Opcodes that keep the order of dimensions but change positions."""

_FOLLOWED = EMIT.keys() | _PLACES.keys()
