"""Blocks of elements that are transposed in vector registers."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ..core.builder import Builder, Value

MLIR_BLOCK = (16, 4)
"""The side, and bytes of an element, for which MLIR has shuffles."""

LANE_BYTES = 16
"""Bytes in which one instruction interleaves two vectors."""


def square_turned(b: Builder, rows: Sequence[Value], size: int) -> list[Value]:
    """The columns of a square block. size: bytes of an element."""
    return _by_mlir(b, rows) if (len(rows), size) == MLIR_BLOCK else _turned(b, rows, LANE_BYTES // size)


def _by_mlir(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square block, by MLIR's lowering of vector.transpose."""
    side, element = len(rows), ir.VectorType(rows[0].type).element_type
    square = ir.VectorType.get([side, side], element)
    zeros = ir.Attribute.parse(f"dense<0{'.0' if b.is_float(element) else ''}> : {square}")
    block = b.vector_constant(zeros, square, ("zero", str(square)))
    for k, row in enumerate(rows):
        block = b.op("vector.insert", row, block, type=square, attributes=_position(k))
    block = b.op("vector.transpose", block, attributes={"permutation": ir.DenseI64ArrayAttr.get([1, 0])})
    return [b.op("vector.extract", block, type=rows[0].type, attributes=_position(k)) for k in range(side)]


def _position(k: int) -> dict[str, ir.Attribute]:
    return {"static_position": ir.DenseI64ArrayAttr.get([k])}


def _turned(b: Builder, rows: Sequence[Value], lane: int) -> list[Value]:
    """The columns of a square block. lane: neighbours in which one instruction interleaves two vectors.

    First, small blocks within 128 bits by unpack instructions; then these blocks change places.
    """
    side, found = len(rows), list(rows)
    for first in range(0, side, lane):
        found[first : first + lane] = unpacked(b, found[first : first + lane], 1, lane)
    step = lane
    while step < side:
        for k in (k for k in range(side) if not k & step):
            low, high = found[k], found[k + step]
            found[k] = b.shuffled([j if not j & step else side + j - step for j in range(side)], low, high)
            found[k + step] = b.shuffled([j + step if not j & step else side + j for j in range(side)], low, high)
        step *= 2
    return found


def unpacked(b: Builder, rows: Sequence[Value], width: int, lane: int) -> list[Value]:
    """Transpose the blocks of `lane` rows by as many elements: neighbours are joined, then pairs of them.

    width: elements that are together already.
    """
    if len(rows) == 1:
        return list(rows)
    lows, highs = [], []
    for k in range(0, len(rows), 2):
        lows.append(_interleaved(b, rows[k], rows[k + 1], width, lane, 0))
        highs.append(_interleaved(b, rows[k], rows[k + 1], width, lane, lane // 2))
    return [*unpacked(b, lows, 2 * width, lane), *unpacked(b, highs, 2 * width, lane)]


def _interleaved(b: Builder, first: Value, second: Value, width: int, lane: int, half: int) -> Value:
    """`width` elements of one vector and of the other by turns, of the lower or the upper half of each lane."""
    side = ir.VectorType(first.type).shape[0]
    mask = []
    for start in range(half, side, lane):
        for at in range(start, start + lane // 2, width):
            mask += [*range(at, at + width), *range(side + at, side + at + width)]
    return b.shuffled(mask, first, second)
