"""Parts of sorted rows: slices of a sort along its dimension (top-k).

A kernel of such slices sorts each row in scratch memory and writes only the sliced part, so that the sorted arrays
themselves are never stored.
"""

from __future__ import annotations

from ..ir import Computation, Instruction
from ..opcodes import Op
from ..records import dataclass


@dataclass(frozen=True, slots=True)
class SortedPart:
    """The elements from `start` onwards in each row of result `number` of a sort."""

    sort: Instruction
    number: int
    start: int


def part_of_sort(i: Instruction) -> SortedPart | None:
    """The part that a slice takes of all rows of a sort, or of a fusion whose root is a sort; None for other
    instructions, and for a slice that leaves out some rows.
    """
    if i.opcode is not Op.SLICE or i.shape.size == 0:
        return None
    source, number = i.operands[0], 0
    if source.opcode is Op.GET_TUPLE_ELEMENT:
        source, number = source.operands[0], source.attributes["index"]
    sort = sort_of(source)
    if sort is None or i.shape.minor_to_major != i.operands[0].shape.minor_to_major:
        return None
    dims, dimension = i.operands[0].shape.dims, sort.dimensions[0]
    along = i.attributes["slice"][dimension]
    whole = all(size == dims[d] for d, size in enumerate(i.shape.dims) if d != dimension)
    return SortedPart(source, number, along.start) if whole and along.stride == 1 else None


def sort_of(i: Instruction) -> Instruction | None:
    """The instruction itself if it is a sort, or the root of a fusion if that is one; else None."""
    root = i.called()[0].root if i.opcode is Op.FUSION else i
    return root if root.opcode is Op.SORT else None


def is_cut(sort: Instruction, body: Computation) -> bool:
    """Whether some result of a fusion is a part of `sort`, an instruction of its body."""
    roots = body.root.operands if body.root.opcode is Op.TUPLE else (body.root,)
    parts = [part_of_sort(root) for root in roots]
    return any(part is not None and part.sort is sort for part in parts)
