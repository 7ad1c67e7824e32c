"""Custom calls that no library here computes: a handler of the user's does. Layouts, aliased operands, memory for them.

A handler knows dimensions and no layouts: its operands lie as `operand_layout_constraints` say, row-major without them,
and its results as their shapes say. Elements narrower than a byte are packed for it.
"""

from __future__ import annotations

from ..dtypes import DType
from ..ir import Instruction
from ..layouts import same_bytes
from ..records import replace
from ..shapes import Shape
from . import calls
from .calls import is_foreign

ALIGNMENT = 64


def wanted_shapes(i: Instruction) -> tuple[Shape, ...]:
    """The shape of each operand with the layout that the handler sees."""
    given = i.attributes.get("operand_layout_constraints")
    if given is None:
        return tuple(o.shape.without_layout() for o in i.operands)
    return tuple(replace(o.shape, layout=g.layout) if o.shape.is_array else o.shape for o, g in zip(i.operands, given))


def aliases(i: Instruction) -> dict[int, int]:
    """Operand → the result leaf that is the same memory for the handler."""
    leaves = [index for index, _ in i.shape.leaves()]
    rows = i.attributes.get("output_to_operand_aliasing", ())
    return {row.operand: leaves.index(row.output) for row in rows if not row.operand_index}


def in_place(i: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf) pairs whose bytes may lie in one buffer."""
    wanted = wanted_shapes(i)
    return tuple((n, leaf) for n, leaf in aliases(i).items() if same_bytes(i.operands[n].shape, wanted[n]))


def is_packed(shape: Shape) -> bool:
    """Whether handlers see several elements of an array in each byte."""
    return shape.is_array and shape.dtype.bits < 8 and shape.dtype not in (DType.PRED, DType.TOKEN)


def moved(i: Instruction) -> dict[int, int]:
    """Operand that lies otherwise than the handler wants, or unpacked → its offset in the scratch memory, in bytes."""
    found, offset, aliased = {}, 0, aliases(i)
    for n, (o, wanted) in enumerate(zip(i.operands, wanted_shapes(i), strict=True)):
        if n in aliased or not o.shape.is_array or not o.shape.size:
            continue
        if is_packed(o.shape) or not same_bytes(o.shape, wanted):
            found[n] = offset
            offset += -(-o.shape.bytes // ALIGNMENT) * ALIGNMENT
    return found


def scratch_bytes(i: Instruction) -> int:
    """Bytes of scratch memory for the operands that are moved."""
    found = moved(i)
    return sum(-(-i.operands[n].shape.bytes // ALIGNMENT) * ALIGNMENT for n in found)


def work_bytes(i: Instruction) -> int:
    """Bytes of work space that the kernel of a call needs, of a library's routine or of a handler; 0 for other ops."""
    return scratch_bytes(i) if is_foreign(i) else calls.work_bytes(i)


def taken_over(i: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf) pairs: the call reads the operand and writes the leaf in the same memory."""
    return in_place(i) if is_foreign(i) else calls.taken_over(i)
