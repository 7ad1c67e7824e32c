"""Sums of a few complex numbers, as vectors of both parts in turn, or integers beside each other in memory. One by one,
each waits for the one before it, and LLVM makes vectors of several rows, element by element.
"""

from __future__ import annotations

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ..core.registers import I32, Register, memory_type, shuffled
from ..core.view import View
from ..loops.along import Along, Reduced
from ..loops.elemental import Elemental
from ..loops.linear import source_of
from ..loops.memory import address

FEWEST = 3
"""Minimum complex numbers of a row for which vectors are faster."""

WORDS = {16: range(9, 16), 32: range(9, 16), 64: range(8, 16)}
"""Bits of integers: how many of a row are faster so. Of fewer and of more, and of bytes, LLVM makes good vectors."""

SUM_BYTES = 64
"""Bytes of a vector, on every processor: the order of the additions is the same on all."""


def source_of_row(view: View, operand: Instruction, reduced: Reduced) -> Instruction | None:
    """The array in memory whose row is summed so; None if elements do not lie beside each other, or are computed, or
    not of such a number.
    """
    if view.by_element or not reduced.is_row or not _is_short(view, operand.shape.dtype, reduced.sizes[0]):
        return None
    return source_of(operand, view.leaves)


def sum_of_row(e: Elemental, operand: Instruction, source: Instruction, along: Along) -> Register:
    """The sum of all elements."""
    code, dtype = e.code, operand.shape.dtype
    b, part, parts = code.b, memory_type(dtype), 2 if dtype.is_complex else 1
    add = b.fadd if dtype.is_complex else b.add
    first = address(code, e.leaves[source], dtype, along.place([0]).offset(operand.shape))
    line, left, place = SUM_BYTES // dtype.component.bytes, parts * along.sizes[0], 0
    lines: list[ir.Value] = []
    pieces: list[ir.Value] = []  # a vector of each power of two in what is left, the widest first
    while left:
        width = line if left >= line else 1 << (left.bit_length() - 1)
        at = b.gep(first, [ir.IntType(64)(place)], inbounds=True, source_etype=part)
        (lines if width == line else pieces).append(
            b.load(at, typ=ir.VectorType(part, width), align=dtype.component.bytes)
        )
        place, left = place + width, left - width
    while len(lines) > 1:
        half = len(lines) // 2
        lines = [add(x, y) for x, y in zip(lines[:half], lines[half : 2 * half], strict=True)] + lines[2 * half :]
    total = lines[0] if lines else pieces.pop(0)
    while total.type.count > parts:
        half = total.type.count // 2
        total = add(shuffled(b, total, range(half)), shuffled(b, total, range(half, 2 * half)))
        if pieces and pieces[0].type.count == half:
            total = add(total, pieces.pop(0))
    found = [b.extract_element(total, I32(k)) for k in range(parts)]
    return tuple(found) if dtype.is_complex else found[0]


def _is_short(view: View, dtype: DType, count: int) -> bool:
    if dtype.is_complex:
        return count >= FEWEST and not view.strict
    return dtype.is_integer and count in WORDS.get(dtype.bits, ())
