"""What a row of the opset is, and the short forms that make one: elementwise, unary, function, binary, op."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .dtypes import COMPLEX, FLOAT, INTEGER, DType

PRED = frozenset({DType.PRED})
NUMBER = FLOAT | COMPLEX | INTEGER
ANY = NUMBER | PRED
EXACT, DEFAULT_ULP = 0, 20
MANY = 1 << 30
"""The most operands of an opcode that takes any number."""


class Family(Enum):
    UNARY = "unary"
    BINARY = "binary"
    TERNARY = "ternary"
    CONVERT = "convert"
    SHAPE = "shape"
    REGION = "region"
    LINALG = "linear algebra"
    CONTROL = "control"
    RNG = "random numbers"
    ASYNC = "asynchronous"
    COLLECTIVE = "collective"
    IO = "input and output"


@dataclass(frozen=True, slots=True)
class Row:
    """The facts of one opcode. low..high: the number of operands that its text may have; shape inference may ask for
    more. required: attributes without which the text is refused. elementwise: element i of the result depends on
    element i of each operand (or on a scalar operand, for select and clamp). ulp: how far a result may lie from the
    evaluator's.
    """

    family: Family
    low: int
    high: int
    dtypes: frozenset[DType] = ANY
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    elementwise: bool = False
    ulp: int = EXACT

    @property
    def own(self) -> tuple[str, ...]:
        """Its own attributes, required and optional; COMMON of grammar.py are allowed besides."""
        return self.required + self.optional

    @property
    def arity(self) -> str:
        """`2 operands`, `1 operand or more`, for messages."""
        plural = "s" if self.low != 1 else ""
        return f"{self.low} operand{plural}" + ("" if self.low == self.high else " or more")


def elementwise(
    family: Family,
    arity: int,
    dtypes: frozenset[DType],
    *,
    attributes: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
    ulp: int = EXACT,
) -> Row:
    return Row(family, arity, arity, dtypes, attributes, optional, elementwise=True, ulp=ulp)


def unary(dtypes: frozenset[DType]) -> Row:
    return elementwise(Family.UNARY, 1, dtypes)


def function(dtypes: frozenset[DType], ulp: int = DEFAULT_ULP) -> Row:
    """A unary special function, approximated."""
    return elementwise(Family.UNARY, 1, dtypes, optional=("result_accuracy",), ulp=ulp)


def binary(dtypes: frozenset[DType], ulp: int = EXACT) -> Row:
    return elementwise(Family.BINARY, 2, dtypes, ulp=ulp)


def op(
    family: Family,
    low: int,
    high: int | None = None,
    *,
    dtypes: frozenset[DType] = ANY,
    attributes: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
    elementwise: bool = False,
    ulp: int = EXACT,
) -> Row:
    """Any other opcode. high: None for as many as `low`, MANY for any number."""
    return Row(family, low, low if high is None else high, dtypes, attributes, optional, elementwise, ulp)
