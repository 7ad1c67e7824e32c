"""Which Fourier transforms are computed on blocks of rows (codegen/library/fft.py), and the memory of a block.

A block is as many rows as a vector has lanes. It holds a point of all of them in LINE bytes: their real parts, then the
imaginary ones.
"""

from __future__ import annotations

from ..dtypes import DType
from ..ir import Instruction

LINE = 64
"""Bytes of a point of a block: 8 rows of c64, or 4 of c128."""

FACTORS = (2, 3, 4, 5)
"""Lengths of the transforms that others consist of."""

LONGEST = 4096
"""Points of a complex transform from which on a block has left the cache before it is read again."""

REAL = ("RFFT", "IRFFT")


def lanes_of(dtype: DType) -> int:
    """Rows of a block; dtype: of a part of a complex number."""
    return LINE // 2 // dtype.bytes


def radices_of(points: int) -> tuple[int, ...] | None:
    """The factors of a complex transform in ascending order; None if blocks do not compute it.

    The longest factors are the last, because the last step multiplies with no roots of unity.
    """
    if not 4 <= points <= LONGEST:
        return None
    found = []
    for factor in (5, 4, 3, 2):
        while points % factor == 0:
            found.append(factor)
            points //= factor
    return tuple(sorted(found)) if points == 1 else None


def points_of(real: bool, length: int) -> int:
    """Points of the complex transform that computes one of `length` points: half for real data; 0 if there is none."""
    points = length if not real else length // 2 if length % 2 == 0 else 0
    return points if radices_of(points) is not None else 0


def block_bytes(i: Instruction) -> int:
    """Bytes of a block of the longest of an fft's transforms that blocks compute; 0 if there is none."""
    lengths = i.attributes["fft_length"]
    last = len(lengths) - 1
    points = [points_of(d == last and i.attributes["fft_type"] in REAL, n) for d, n in enumerate(lengths)]
    return LINE * (max(points) + 1) if any(points) else 0
