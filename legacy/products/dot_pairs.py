"""Products of complex numbers as real ones of twice the columns and twice the depth.

A row of A is its real and imaginary parts in turn, as it lies in memory, and so is a row of C. In front of them, an
element (re, im) of B stands for the rows (re, im) and (-im, re) of a panel: their products with (a, b) add up to the
two parts of the complex product, so that the tiles of real products serve.
"""

from __future__ import annotations

from llvmlite import ir

from ...hlo.dtypes import DType
from ..core.builder import Code, IndexValue
from ..core.registers import flatten, memory_type, shuffled
from ..loops.memory import Pointer, address, load

PARTS = 2
"""Real numbers of an element."""


def put(code: Code, dtype: DType, panel: Pointer, columns: int, k: IndexValue, j: IndexValue, value: ir.Value) -> None:
    """Store an element of B, in row k and column j, to a panel of `columns` real ones. dtype: of a part."""
    re, im = value
    first = code.add(code.multiply(k, PARTS * columns), code.multiply(j, PARTS))
    for n, part in ((0, re), (1, im), (columns, code.b.fneg(im)), (columns + 1, re)):
        code.b.store(part, address(code, panel, dtype, code.add(first, n)), align=dtype.bytes)


def put_row(code: Code, dtype: DType, source: ir.Value, panel: Pointer, columns: int, k: IndexValue) -> None:
    """Store row k of B, whose elements are neighbours from an address on, to a panel of `columns` real ones."""
    b, vector = code.b, ir.VectorType(memory_type(dtype), columns)
    row = b.load(source, typ=vector, align=dtype.bytes)
    swapped = shuffled(b, row, [n + columns * (n & 1) for n in (k ^ 1 for k in range(columns))], b.fneg(row))
    first = code.multiply(k, PARTS * columns)
    for offset, value in ((0, row), (columns, swapped)):
        b.store(value, address(code, panel, dtype, code.add(first, offset)), align=dtype.bytes)


def put_left(code: Code, dtype: DType, target: Pointer, first: IndexValue, value: ir.Value) -> None:
    """Store an element of A as two neighbours."""
    for n, part in enumerate(value):
        code.b.store(part, address(code, target, dtype, code.add(first, n)), align=dtype.bytes)


def part_of(code: Code, values: ir.Value, n: int) -> ir.Value:
    """Part n of each of the complex numbers in a vector."""
    return shuffled(code.b, values, range(n, values.type.count, PARTS))


def pair(code: Code, dtype: DType, first: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The element whose parts are neighbours from an address on."""
    re, im = flatten(tuple(load(code, Pointer(first), dtype, n) for n in range(PARTS)))
    return re, im
