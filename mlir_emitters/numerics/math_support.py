"""Common parts of the files math_*.py: the two precisions, polynomials, and small helpers.

Their functions are built once per module as private functions that LLVM inlines. So that loops over them vectorise,
they are straight-line code with selects instead of branches and with polynomials in fma. They never contract by
themselves. Coefficients are minimax fits (Remez exchange with 60 digits); the error on the interval is stated beside
each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from ...hlo.records import dataclass
from ..core.builder import Builder, Value


@dataclass(frozen=True, slots=True)
class Precision:
    """Parameters of f32 or f64 for the math functions.

    ln2_high has trailing zeros, so that n·ln2_high is exact. exp_poly: (eʳ − 1 − r)/r² on ±ln2/2; the error of eʳ is
    below the unit roundoff. expm1_poly: the same for eʳ − 1. decay_poly: (1 − e⁻ˢ − s)/s² there; error 2^-26.1 (f32)
    after multiplication by s.
    """

    bits: int
    mantissa: int
    bias: int
    ln2_high: float
    ln2_low: float
    exp_poly: tuple[float, ...]
    expm1_poly: tuple[float, ...]
    decay_poly: tuple[float, ...]
    exp_overflow: float  # eˣ is infinite above
    exp_underflow: float  # eˣ is zero below
    expm1_floor: float  # eˣ − 1 rounds to −1 below
    tanh_one: float  # tanh rounds to 1 above
    least_normal: float

    @property
    def magic(self) -> float:
        """Adding it rounds a number to an integer, which is then in the low mantissa bits."""
        return 1.5 * 2.0**self.mantissa


SINGLE = Precision(
    32,
    23,
    127,
    0.693359375,
    -2.12194440e-4,
    (0.4999999403953552, 0.16666428744792938, 0.041668012738227844, 0.008374322205781937, 0.0013843486085534096),
    (0.5, 0.1666666716337204, 0.04166645556688309, 0.00833328440785408, 0.0013934544986113906, 0.0001990886958083138),
    (-0.5, 0.1666654199361801, -0.04166628047823906, 0.008366641588509083, -0.001394655671902001),
    89.0,
    -104.0,
    -18.0,
    10.0,
    2.0**-126,
)
DOUBLE_EXP = (
    0.5000000000000006,
    0.16666666666666588,
    0.041666666666576826,
    0.008333333333389517,
    0.0013888888931539592,
    0.00019841269719057518,
    2.4801505306148133e-05,
    2.7557407527441436e-06,
    2.7626024341067825e-07,
    2.505376846316476e-08,
)
DOUBLE = Precision(
    64,
    52,
    1023,
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
    DOUBLE_EXP,
    DOUBLE_EXP,
    tuple(-c * (-1) ** k for k, c in enumerate(DOUBLE_EXP)),
    710.0,
    -746.0,
    -40.0,
    20.0,
    2.0**-1022,
)


def precision_of(b: Builder, x: Value) -> Precision:
    return SINGLE if x.type == b.types.f32 else DOUBLE


def integer_type(b: Builder, p: Precision) -> ir.Type:
    return b.types.i32 if p is SINGLE else b.types.i64


def float_type(b: Builder, p: Precision) -> ir.Type:
    return b.types.f32 if p is SINGLE else b.types.f64


def as_integer(b: Builder, x: Value) -> Value:
    return b.bitcast(x, integer_type(b, precision_of(b, x)))


def horner(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """coefficients[0] + coefficients[1]·x + … by Horner's rule."""
    result = b.like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        result = b.fma(result, x, b.like(coefficient, x))
    return result


def in_pairs(b: Builder, x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """As `horner`, two terms at once: half as many operations wait for each other."""
    pairs = [horner(b, x, coefficients[k : k + 2]) for k in range(0, len(coefficients), 2)]
    result = pairs.pop()
    while pairs:
        result = b.fma(result, square, pairs.pop())
    return result


def scale(b: Builder, x: Value, factor: float) -> Value:
    return b.mulf(x, b.like(factor, x))


def offset(b: Builder, x: Value, amount: float) -> Value:
    return b.addf(x, b.like(amount, x))


def select_if(b: Builder, predicate: str, x: Value, bound: float, chosen: float | Value, other: Value) -> Value:
    """`chosen` if x <predicate> bound, otherwise `other`."""
    picked = b.like(chosen, other) if isinstance(chosen, float | int) else chosen
    return b.select(b.compare(predicate, x, b.like(bound, x)), picked, other)


def through_f64(function: Callable[..., Value]) -> Callable[..., Value]:
    """An f32 function that is computed in f64 and rounded once."""

    def wrapped(b: Builder, *operands: Value) -> Value:
        if operands[0].type != b.types.f32:
            return function(b, *operands)
        return b.truncate(function(b, *(b.extend(x) for x in operands)), b.types.f32)

    return wrapped
