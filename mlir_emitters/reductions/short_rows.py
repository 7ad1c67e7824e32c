"""Sums of a few integers beside each other in memory, as vectors of one row whose halves are added up. LLVM makes
vectors of several such rows, element by element.
"""

from __future__ import annotations

from ...hlo.opcodes import Op
from ..core.builder import Builder, Pointer, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Node
from ..loops.reduced import only_op

LENGTHS, EIGHT_ROW_BITS = range(9, 16), 64
"""Row lengths that are added up so, and 8 for integers of this number of bits. Shorter rows are as fast one element at
a time, and LLVM makes vectors of longer ones.
"""

MINIMUM_INTEGER_BITS = 16
"""Bits of the integers: of bytes, LLVM adds up several rows faster."""


def takes_words(facts: Facts, node: Node, count: int) -> bool:
    """Whether a reduction is a sum of integers whose rows have a length, `count`, that is added up so."""
    dtype = node.inputs[0].dtype
    whole = dtype.is_integer and dtype.bits >= MINIMUM_INTEGER_BITS and node.output.dtype is dtype
    few = count in LENGTHS or (count == LENGTHS.start - 1 and dtype.bits == EIGHT_ROW_BITS)
    return whole and few and only_op(node) is Op.ADD and not facts.by_element


def sum_of_words(b: Builder, node: Node, first: Pointer, count: int, initial: Value) -> Value:
    """The sum of `count` adjacent integers, plus the initial value. first: the address of the first one."""
    dtype = node.inputs[0].dtype
    element = raw_type(b.types, dtype)
    pieces: list[Value] = []  # a vector of each power of two, the widest first
    place = 0
    while place < count:
        width = 1 << ((count - place).bit_length() - 1)
        at = b.pointer(first, place, element)
        pieces.append(b.load(at, b.vector(width, element), dtype.bytes))
        place += width
    total = pieces.pop(0)
    while (width := total.type.shape[0] // 2) > 0:
        total = b.op("arith.addi", *b.halves(total))
        if pieces and pieces[0].type.shape[0] == width:
            total = b.op("arith.addi", total, pieces.pop(0))
    return b.op("arith.addi", initial, b.lane(total, 0))
