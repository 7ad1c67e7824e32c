"""The names by which kernels over a field call what they do not compute: functions, and conversions to integers.

A function is opaque: its value is drawn from its name and its operands, so that the same function of the same elements
is the same element on every stack.
"""

from __future__ import annotations

import math
import zlib

from ...hlo.opcodes import Op

PREFIX = "testbed.exact."

NAMES = {
    "cos": "cosine",
    "exp": "exponential",
    "expm1": "exponential-minus-one",
    "log1p": "log-plus-one",
    "log_plus_one": "log-plus-one",
    "powf": "power",
    "pow": "power",
    "sin": "sine",
}
"""Names in the stacks and in LLVM, where they differ from the opcode's."""

OPAQUE_COMPLEX = frozenset(
    {
        *(Op.ABS, Op.ACOS, Op.ACOSH, Op.ASIN, Op.ASINH, Op.ATANH, Op.CBRT, Op.COSINE, Op.COSH, Op.EXPONENTIAL),
        *(Op.EXPONENTIAL_MINUS_ONE, Op.LOG, Op.LOG_PLUS_ONE, Op.LOGISTIC, Op.RSQRT, Op.SIGN, Op.SINE, Op.SINH),
        *(Op.SQRT, Op.TAN, Op.TANH, Op.ATAN2, Op.DIVIDE, Op.POWER),
    }
)
"""Opcodes of complex numbers that are called by name: they scale, and choose by magnitude."""


def function_name(name: str, type: str, part: str = "") -> str:
    """The symbol of a function on operands of a type: f32, f64. part: re or im, of a function of complex numbers."""
    return f"{PREFIX}{NAMES.get(name, name)}{'.' * bool(part)}{part}.{type}"


def integer_name(target: str, type: str) -> str:
    """The symbol of a conversion to an integer type of HLO."""
    return f"{PREFIX}to.{target}.{type}"


def float_name(is_signed: bool, source: str, type: str) -> str:
    """The symbol of a conversion of an integer, with the bits of its register, to a float type."""
    return f"{PREFIX}from.{'s' if is_signed else 'u'}.{source}.{type}"


def value_name(type: str) -> str:
    """The symbol of what gives a constant, which no builder of instructions then computes with as a float."""
    return f"{PREFIX}value.{type}"


def number_of(name: str) -> int:
    """What stands for a function's name where its values are drawn."""
    return zlib.crc32(name.encode())


INF, NAN = math.inf, math.nan
LIMITS = {
    "asinh": (INF, -INF),
    "acosh": (INF, NAN),
    "cbrt": (INF, -INF),
    "ceil": (INF, -INF),
    "cosh": (INF, INF),
    "erf": (1.0, -1.0),
    "exponential": (INF, 0.0),
    "exponential-minus-one": (INF, -1.0),
    "floor": (INF, -INF),
    "log": (INF, NAN),
    "log-plus-one": (INF, NAN),
    "nearbyint": (INF, -INF),
    "rint": (INF, -INF),
    "round": (INF, -INF),
    "roundeven": (INF, -INF),
    "rsqrt": (0.0, NAN),
    "sinh": (INF, -INF),
    "sqrt": (INF, NAN),
    "tanh": (1.0, -1.0),
    "trunc": (INF, -INF),
}
"""Values at +infinity and -infinity; NaN for other functions."""
