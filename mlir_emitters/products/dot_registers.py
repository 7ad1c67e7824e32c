"""How large the register tile of a matrix product is, by the number of vector registers."""

from __future__ import annotations

import functools

from ...hlo.dtypes import DType

MINIMUM_VECTOR_BYTES = 16
"""Bytes of a vector."""

CONSTANT_REGISTERS = 8
"""Registers that the conversion of a narrow float takes."""

FEW_REGISTERS = 16
"""Registers: with as few, no step has time for a fetch besides conversions."""


@functools.cache
def best_tile(registers: int, converting: bool = False, narrow: bool = False, parts: int = 1) -> tuple[int, int]:
    """(rows, vectors of columns) of the tile with the most multiply-adds per load, among those that fit in registers.

    Registers hold the sums, the vectors of B and one factor of A, and two more for factors that are converted: without
    these, LLVM keeps sums on the stack, which takes four times as long. The number of vectors is a power of two,
    because most products have a multiple of one as columns. narrow: of 8 bits and less, whose conversions have more
    constants, which LLVM keeps in registers all the time, where there are many. parts: factors of A in an element.
    """
    registers -= CONSTANT_REGISTERS if narrow and registers > CONSTANT_REGISTERS * 2 else 2 if converting else 0
    tiles = [((registers - vectors - 1) // (vectors * parts), vectors) for vectors in (1, 2, 4, 8)]
    return max(tiles, key=lambda tile: parts * tile[0] * tile[1] / (parts * tile[0] + tile[1]))


def flat_tile(registers: int, rows: int, most: int, parts: int = 1) -> tuple[int, int]:
    """(rows, vectors of columns) of a tile of all rows, for few of them, or of a part of at most `most` factors: as
    wide as registers allow. parts: factors in an element.
    """
    tiles = -(-rows * parts // min(most, registers - 2))
    height = -(-rows // tiles)
    vectors = (registers - 2) // (height * parts)
    return height, 1 << (vectors.bit_length() - 1)


def lanes_of(vector_bits: int, wide: DType, columns: int) -> int:
    """The lanes of a tile's vectors: shorter ones where all columns are one of these, which is read in place then.
    columns: 0 if they are packed in any case.
    """
    lanes = vector_bits // (8 * wide.bytes)
    short = columns & -columns
    return short if short == columns and short * wide.bytes >= MINIMUM_VECTOR_BYTES and short < lanes else lanes
