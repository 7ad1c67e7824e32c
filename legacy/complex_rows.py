"""Sums of a few complex numbers beside each other in memory, as vectors of both parts in turn. One by one, each part
waits for the one before it, and LLVM makes vectors of several rows, element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from .along import Along
from .elemental import Elemental
from .memory import address
from .registers import I32, memory_type, poison

FEWEST = 3
"""Numbers of a row from which on vectors are faster."""

LINE = 64
"""Bytes of a vector, on every processor: the order of the additions is the same on all."""


def sum_of_row(e: Elemental, operand: Instruction, along: Along) -> tuple[ir.Value, ir.Value] | None:
    """The parts of the sum of all elements; None if they do not lie beside each other, or are computed."""
    code, dtype = e.code, operand.shape.dtype
    if code.strict or code.by_element or not along.dense or len(along.sizes) != 1 or along.sizes[0] < FEWEST:
        return None
    source = _stored(e, operand)
    if source is None:
        return None
    b, part = code.b, memory_type(dtype)
    first = address(code, e.leaves[source], dtype, along.place([0]).offset(operand.shape))
    line, left, place = LINE // dtype.component.bytes, 2 * along.sizes[0], 0
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
        lines = [b.fadd(x, y) for x, y in zip(lines[:half], lines[half : 2 * half], strict=True)] + lines[2 * half :]
    total = lines[0] if lines else pieces.pop(0)
    while total.type.count > 2:
        half = total.type.count // 2
        total = b.fadd(_lanes(b, total, range(half)), _lanes(b, total, range(half, 2 * half)))
        if pieces and pieces[0].type.count == half:
            total = b.fadd(total, pieces.pop(0))
    return b.extract_element(total, I32(0)), b.extract_element(total, I32(1))


def _stored(e: Elemental, operand: Instruction) -> Instruction | None:
    """What is in memory with the same elements in the same order."""
    while operand not in e.leaves:
        if operand.opcode not in (Op.RESHAPE, Op.BITCAST) or operand.operands[0].shape.dtype is not operand.shape.dtype:
            return None
        (before,) = operand.operands
        if not (operand.shape.is_row_major and before.shape.is_row_major):
            return None
        operand = before
    return operand


def _lanes(b: ir.IRBuilder, vector: ir.Value, lanes: Sequence[int]) -> ir.Value:
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
    return b.shuffle_vector(vector, poison(vector.type), mask)
