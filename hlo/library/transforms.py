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
"""Minimum points of a complex transform whose block leaves the cache before it is read again."""

REAL = ("RFFT", "IRFFT")

FAR, ALIKE = 1 << 18, 512
"""Several blocks of columns are read together where the points of a column are multiples of ALIKE bytes apart, and FAR
bytes or more all together: the lines of one block alone would fall into few sets of a cache.
"""

TOGETHER, TOGETHER_BYTES = (8, 4, 2), 1 << 20
"""Blocks that may be read together, and the bytes that they may take."""


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


def blocks_together(points: int, step: int) -> int:
    """Blocks of columns that are read together. step: bytes from a point of a column to the next one."""
    if points * step < FAR or step % ALIKE:
        return 1
    return next((n for n in TOGETHER if n * points * LINE <= TOGETHER_BYTES), 1)


def block_bytes(i: Instruction) -> int:
    """Bytes of the blocks of the longest of an fft's transforms that blocks compute; 0 if there is none."""
    lengths, sizes = i.attributes["fft_length"], [0]
    shapes = (i.shape, i.operands[0].shape)
    for d, length in enumerate(lengths):
        points = points_of(d == len(lengths) - 1 and i.attributes["fft_type"] in REAL, length)
        axis = i.shape.rank - len(lengths) + d
        step = max(shape.strides[axis] * shape.dtype.bytes for shape in shapes)
        in_columns = any(shape.strides[axis] != 1 for shape in shapes)
        sizes.append(LINE * (points + 1) * (blocks_together(points, step) if in_columns else 1) if points else 0)
    return max(sizes)
