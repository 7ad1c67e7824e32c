"""The contract of kernels: how large the passes may make one, and so what every code-generation stack must take.

Passes stay within these limits, and nothing else in passes/ describes an emitter. A stack takes at least this much,
says by itself how, and imports nothing from here. tests/migration/test_kernel_forms.py brings both stacks, and the
passes, to each limit. Further promises stand in rows.py (rows), in planning/plan.py (arguments, operands overwritten)
and in planning/scratch.py (scratch memory).
"""

from __future__ import annotations

from ..ir import Instruction

MOST_OPERANDS = 60
"""Arrays that a kernel reads."""

MOST_RESULTS = 12
"""Arrays that a kernel writes."""

MOST_TOKENS = 12
"""Index expressions at which a kernel reads one value that it computes. A stack computes it once for each of them, not
once for each way that leads to it.
"""

ELEMENT_REDUCTION = 8
"""Row kernels: elements of a reduction that makes one element of a row."""

ROW_BYTES = 1 << 18
"""Row kernels: bytes of a row whose expensive values are wanted by two walks over it. A stack computes them once."""

SHORTEST_COLUMNS = 8
"""Column kernels: elements of the fastest dimension, which is kept, from which reductions may share a kernel."""

COLUMN_REDUCTIONS = 8
"""Column kernels: reductions in one. A stack reads what they share once."""

EPILOGUE_DEPTH = 2048
"""Products: contracted elements of a dot in one kernel with elementwise ops behind it. A stack applies them to sums
that it has just made, without storing the product.
"""

CHAINED = 256
"""Chains: elements of expensive operands up to which they are computed in the kernel of a reduction that runs along
memory. There each result waits for the one before; larger operands are made by a kernel that may use vectors.
"""

ABREAST = 4
"""Concatenations that end a kernel: operands of one element each, of up to 8 bytes, along the fastest dimension. A
stack computes what several of them share once, as if all were read at one index.
"""


def is_abreast(concatenation: Instruction) -> bool:
    """Whether a concatenation is such a one."""
    (axis,), shape = concatenation.dimensions, concatenation.shape
    if shape.dims[axis] > ABREAST or shape.dtype.bytes > 8:
        return False
    single = all(o.shape.dims[axis] == 1 for o in concatenation.operands)
    return single and next((d for d in shape.minor_to_major if shape.dims[d] != 1), None) == axis
