"""What kernels fetch ahead of large arrays that they read in the order of memory.

Hardware does so, too, but too late, and not from one piece of a row to that of the next row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ...hlo.opcodes import Op
from ..core.builder import Index
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Buffer, visited
from ..numerics.elementwise import EMIT
from .elemental import Elemental

MAXIMUM_STREAMS = 2
"""Arrays that are fetched ahead together, at most."""

DISTANCE_BYTES = 8192
"""Bytes that a loop along memory is ahead of what it reads."""

LONG_RUN_BYTES = 4 * DISTANCE_BYTES
"""Bytes between jumps: where they are fewer, most of what is fetched does not follow."""


def streams(facts: Facts, operands: Iterable[Buffer], source: Buffer) -> list[Buffer]:
    """The arrays of which elementwise values at the same places are made; none if the second cache holds them, or they
    are many.

    source: a buffer by whose strides they are read.
    """

    def inputs(buffer: Buffer) -> Sequence[Buffer]:
        node = buffer.writer
        return node.inputs if node and (node.opcode in EMIT or node.opcode in (Op.RESHAPE, Op.BITCAST)) else ()

    read = (x for x in visited(operands, inputs) if x.writer is None and x.argument >= 0)
    found = [x for x in read if _has_offsets_of(x, source)]
    large = any(math.prod(x.dims) * x.dtype.bytes >= facts.processor.second_cache_bytes for x in found)
    return found if large and len(found) <= MAXIMUM_STREAMS and not any(x.dtype.is_complex for x in found) else []


def _has_offsets_of(buffer: Buffer, source: Buffer) -> bool:
    if buffer.dims == source.dims and buffer.strides == source.strides:
        return True
    same = math.prod(buffer.dims) == math.prod(source.dims)
    return same and buffer.shape.is_row_major and source.shape.is_row_major


def fetch(e: Elemental, buffers: Sequence[Buffer], offset: Index, count: int, distance: int = 0) -> None:
    """Ask for `count` neighbours of each buffer from an offset, `distance` bytes further on."""
    b = e.b
    for buffer in buffers:
        first, type = b.add(offset, distance // buffer.dtype.bytes), raw_type(b.types, buffer.dtype)
        line = max(1, b.processor.line_bytes // buffer.dtype.bytes)
        # Addresses that are one and a constant: LLVM takes long to find that out of sums of indices.
        run = b.row(e.pointers[buffer.argument], first, type, count)
        for k in range(0, count, line):
            b.prefetch(b.pointer(run, k, type))
