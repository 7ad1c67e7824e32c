"""Elements narrower than a byte: one a byte in our arrays, packed in the buffers of handlers, as XLA has them.

The first element has the lowest bits of its byte. Elements follow each other in the order of memory.
"""

from __future__ import annotations

import numpy as np

from ..hlo.dtypes import DType


def packed_bytes(count: int, dtype: DType) -> int:
    """Bytes of `count` packed elements."""
    return -(-count * dtype.bits // 8)


def pack(elements: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements, in the order of memory, as packed bytes."""
    per_byte = 8 // dtype.bits
    values = np.zeros(packed_bytes(elements.size, dtype) * per_byte, np.uint8)
    values[: elements.size] = elements.reshape(-1).view(np.uint8) & mask(dtype)
    shifts = np.arange(per_byte, dtype=np.uint8) * dtype.bits
    return np.bitwise_or.reduce(values.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8)


def unpack(data: np.ndarray, count: int, dtype: DType) -> np.ndarray:
    """The first `count` elements of packed bytes, in an array of numpy's type for them."""
    shifts = np.arange(8 // dtype.bits, dtype=np.uint8) * dtype.bits
    values = (data[:, None] >> shifts) & np.uint8(mask(dtype))
    return values.reshape(-1)[:count].astype(np.uint8).view(dtype.numpy)


def mask(dtype: DType) -> int:
    """The bits of one element in a byte."""
    return (1 << dtype.bits) - 1
