"""Blocks of an array that are transposed in registers."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..core.builder import Code
from ..core.registers import shuffled


def transposed(code: Code, block: Sequence[ir.Value]) -> list[ir.Value]:
    """Transpose a square block of vectors by exchanging corners of increasing size (log2(lanes) steps)."""
    rows, lanes = list(block), len(block)
    step = 1
    while step < lanes:
        upper = [j if not j & step else lanes + j - step for j in range(lanes)]
        lower = [j + step if not j & step else lanes + j for j in range(lanes)]
        for i in range(lanes):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i], rows[i + step] = shuffled(code.b, a, upper, b), shuffled(code.b, a, lower, b)
        step *= 2
    return rows
