"""Scratch memory: bytes that a kernel may write and read while it runs, and that hold nothing before or after.

The Plan states an upper bound for every code-generation stack; each of them decides how much it uses and how that is
laid out. A bound above ON_STACK bytes is offered as an argument of the kernel. Otherwise the kernel has no such
argument and takes what it uses, ON_STACK bytes at most, from its call stack.
"""

from __future__ import annotations

from collections.abc import Callable

from ..hlo.analysis.sorted_parts import is_cut
from ..hlo.ir import Instruction
from ..hlo.library.calls import LIBRARY
from ..hlo.library.foreign import work_bytes
from ..hlo.opcodes import Op
from .allocation import POOL_ALIGNMENT

ON_STACK = 4096
"""Bytes up to which the Plan offers no scratch memory."""

COUNTED = 2
"""Least elements of a row beside which a sort may use more memory, if its comparator is one comparison: to count how
often digits of its keys occur, or for several rows side by side.
"""

COUNTS = 1 << 15
"""Bytes of this memory; of short rows COUNTS_AN_ELEMENT times their elements."""

COUNTS_AN_ELEMENT = 128


def sort_bound(instruction: Instruction, cut: bool = False) -> int:
    """A place for one row of each operand, so that rows can be merged to and fro between the result and this place; one
    more where the result's rows are not adjacent elements. Each place is rounded up to POOL_ALIGNMENT bytes.

    cut: the results are parts of rows, so no row lies in a result.
    """
    dimension, total = instruction.dimensions[0], 0
    for _, shape in instruction.shape.leaves():
        row = -(-shape.dims[dimension] * shape.dtype.bytes // POOL_ALIGNMENT) * POOL_ALIGNMENT
        total += 2 * row if cut or shape.strides[dimension] != 1 else row
    return total


def sort_counts(instruction: Instruction) -> int:
    """Room beside rows that may be sorted by digits, or several at once."""
    length = instruction.operands[0].shape.dims[instruction.dimensions[0]]
    counted = length >= COUNTED and instruction.attributes["to_apply"].root.opcode is Op.COMPARE
    return min(COUNTS, COUNTS_AN_ELEMENT * length) if counted else 0


SCRATCH: dict[Op, Callable[[Instruction], int]] = {
    **dict.fromkeys(LIBRARY, work_bytes),
    Op.SORT: sort_bound,
}
"""Upper bound, by opcode, of the bytes that the kernel of an unnested op uses; other ops use none."""

COUNTING: dict[Op, Callable[[Instruction], int]] = {Op.SORT: sort_counts}
"""Bytes behind those of SCRATCH, by opcode."""


def scratch_bound(instruction: Instruction) -> int:
    """The most bytes that the kernel of an unnested op or of a fusion uses, in the argument or on its stack.

    The ops of a fusion that use some run one after the other, in the same bytes.
    """
    if instruction.opcode is Op.FUSION:
        body = instruction.called()[0]
        if SCRATCH.keys().isdisjoint(body.opcodes):
            return 0
        sorts = [i for i in body.instructions if i.opcode is Op.SORT and is_cut(i, body)]
        whole = [scratch_bound(i) for i in body.instructions]
        return max(whole + [sort_bound(i, cut=True) + _counts(i) for i in sorts])
    row = SCRATCH.get(instruction.opcode)
    if row is None or not any(shape.is_array and shape.size for _, shape in instruction.shape.leaves()):
        return 0
    return row(instruction) + _counts(instruction)


def _counts(instruction: Instruction) -> int:
    row = COUNTING.get(instruction.opcode)
    return row(instruction) if row is not None else 0


def scratch_bytes(instruction: Instruction) -> int:
    """Bytes of scratch memory that the Plan offers to the kernel of an instruction; 0 where it offers none."""
    bound = scratch_bound(instruction)
    return bound if bound > ON_STACK else 0
