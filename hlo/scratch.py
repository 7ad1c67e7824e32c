"""Scratch memory: bytes that a kernel writes and reads while it runs, and that hold nothing before or after.

A few KiB had better be an alloca of the kernel: only what is too large for the stack goes through the Plan.
"""

from __future__ import annotations

from collections.abc import Callable

from .ir import Instruction
from .library_calls import LIBRARY, work_bytes
from .opcodes import Op
from .plan import POOL_ALIGNMENT
from .sorted_parts import is_cut

ON_STACK = 4096
"""Bytes up to which a kernel keeps its scratch memory on the stack."""

SHORT_ROW = 16
"""Elements of a row up to which a sort needs no second place for it."""


def sort_scratch(instruction: Instruction, cut: bool = False) -> int:
    """For each operand in order one row, and one more where the result's rows are not adjacent elements; each row
    rounded up to 64 bytes. Nothing for short rows, and what fits the stack. cut: the results are parts of rows, which
    are sorted in two rows of scratch memory, however short.
    """
    total = sort_row_bytes(instruction, cut)
    return total if total > ON_STACK else 0


def sort_row_bytes(instruction: Instruction, cut: bool = False) -> int:
    """As `sort_scratch`, wherever it lies."""
    dimension, total = instruction.dimensions[0], 0
    for _, shape in instruction.shape.leaves():
        length = shape.dims[dimension]
        if length > SHORT_ROW or cut:
            row = -(-length * shape.dtype.bytes // POOL_ALIGNMENT) * POOL_ALIGNMENT
            total += 2 * row if cut or shape.strides[dimension] != 1 else row
    return total


def _work_space(instruction: Instruction) -> int:
    needed = work_bytes(instruction)
    return needed if needed > ON_STACK else 0


SCRATCH: dict[Op, Callable[[Instruction], int]] = {
    **dict.fromkeys(LIBRARY, _work_space),
    Op.SORT: sort_scratch,
}
"""Bytes that the kernel of an unnested op needs, by opcode; others need none."""


def scratch_bytes(instruction: Instruction) -> int:
    """Bytes of scratch memory that the kernel of an unnested op or of a fusion needs; 0 for none.

    The ops of a fusion that need some run one after the other, in the same bytes.
    """
    if instruction.opcode is Op.FUSION:
        body = instruction.called()[0]
        if SCRATCH.keys().isdisjoint(body.opcodes):
            return 0
        sorts = [i for i in body.instructions if i.opcode is Op.SORT and is_cut(i, body)]
        return max([scratch_bytes(i) for i in body.instructions] + [sort_scratch(i, cut=True) for i in sorts])
    row = SCRATCH.get(instruction.opcode)
    if row is None or not any(shape.is_array and shape.size for _, shape in instruction.shape.leaves()):
        return 0
    return row(instruction)
