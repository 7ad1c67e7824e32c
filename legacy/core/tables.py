"""Constant tables in the emitted module: 2^e · 2/π modulo 4, for angles too large for a product with 2/π."""

from __future__ import annotations

import functools
from fractions import Fraction

from llvmlite import ir

from ...hlo.records import dataclass
from .builder import Code
from .registers import DOUBLE, I64, real_constant, table


@dataclass(frozen=True, slots=True)
class AngleTable:
    """Row k is 2^(first + step·k) · 2/π modulo 4 as the sum of `parts` doubles; the row after the last is zero."""

    name: str
    first: int
    step: int
    rows: int
    parts: int


SINGLE = AngleTable("two_over_pi.single", 22, 1, 83, 2)
"""For floats m · 2^e from 2^45 on, with m below 2^24."""

DOUBLE_TABLE = AngleTable("two_over_pi.double", -16, 16, 62, 4)
"""For doubles m · 2^e from 2^45 on; m includes the exponents between two rows."""


@functools.cache
def two_over_pi(bits: int) -> int:
    """The first `bits` fractional bits of 2/π, with π by Machin's formula."""
    guard = bits + 64
    pi = 4 * (4 * _arctangent_of_inverse(5, guard) - _arctangent_of_inverse(239, guard))
    return (2 << (2 * guard)) // pi >> 64


def _arctangent_of_inverse(n: int, bits: int) -> int:
    """atan(1/n) · 2^bits."""
    term = total = (1 << bits) // n
    k, sign = 1, 1
    while term:
        term //= n * n
        k, sign = k + 2, -sign
        total += sign * (term // k)
    return total


@functools.cache
def _values(table: AngleTable) -> tuple[tuple[float, ...], ...]:
    """The columns of a table."""
    bits = max(0, table.first + table.step * table.rows) + 64 * table.parts + 64
    columns: list[list[float]] = [[] for _ in range(table.parts)]
    for row in range(table.rows):
        exponent = table.first + table.step * row
        value = Fraction(two_over_pi(bits) * 2 ** max(exponent, 0), 2 ** (bits - min(exponent, 0))) % 4
        for column in columns:
            column.append(float(value))
            value -= Fraction(column[-1])
    return tuple((*column, 0.0) for column in columns)


def angle_row(code: Code, table_: AngleTable, row: ir.Value) -> list[ir.Value]:
    """The parts of a row. row: an i64."""
    b = code.b
    constants = [[real_constant(DOUBLE, v) for v in values] for values in _values(table_)]
    names = (f"{table_.name}.{k}" for k in range(table_.parts))
    type_ = ir.ArrayType(DOUBLE, table_.rows + 1)
    arrays = [table(code.module, name, type_, values) for name, values in zip(names, constants, strict=True)]
    return [b.load(b.gep(a, [row], inbounds=True, source_etype=DOUBLE), typ=DOUBLE, align=8) for a in arrays]


def index_type(code: Code, value: ir.Value) -> ir.Value:
    """A non-negative i32 as a row number."""
    return code.b.zext(value, I64)
