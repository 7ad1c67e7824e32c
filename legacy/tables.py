"""Constant tables in the emitted module."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from llvmlite import ir

from .function import Code
from .registers import DOUBLE, I32, I64, real_constant

TWO_OVER_PI_BITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee8",
    16,
)
"""The first 456 bits of 2/π behind the point."""

FIRST_ROW = 172
"""The biased exponent of the smallest float that the table serves (2^45)."""


@functools.cache
def _two_over_pi() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each biased exponent E from FIRST_ROW to 255: 2^(E - 150) · 2/π modulo 4 in two doubles; zero for 255."""
    high, low = [], []
    bits = 456
    for exponent in range(FIRST_ROW, 255):
        shifted = TWO_OVER_PI_BITS << (exponent - 150)
        value = Fraction(shifted % (4 << bits), 1 << bits)
        high.append(float(value))
        low.append(float(value - Fraction(high[-1])))
    return (*high, 0.0), (*low, 0.0)


def two_over_pi_table(code: Code, row: ir.Value) -> list[ir.Value]:
    """(high, low) for a biased exponent, an i32 from FIRST_ROW to 255."""
    b = code.b
    position = b.zext(b.sub(row, I32(FIRST_ROW)), I64)
    return [
        b.load(b.gep(_doubles(code, name, values), [position], inbounds=True, source_etype=DOUBLE), typ=DOUBLE, align=8)
        for name, values in zip(("two_over_pi.high", "two_over_pi.low"), _two_over_pi(), strict=True)
    ]


def _doubles(code: Code, name: str, values: tuple[float, ...]) -> ir.GlobalVariable:
    found = code.module.globals.get(name)
    if found is None:
        type_ = ir.ArrayType(DOUBLE, len(values))
        found = ir.GlobalVariable(code.module, type_, name)
        found.initializer = ir.Constant(type_, [real_constant(DOUBLE, v) for v in values])
        found.linkage, found.global_constant, found.align = "private", True, 64
    return found


assert math.isclose(TWO_OVER_PI_BITS / 2**456, 2 / math.pi)
