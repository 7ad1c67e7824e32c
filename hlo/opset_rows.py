"""Row, the type of a row of the opset, and functions that make rows: elementwise, unary, function, binary, op."""

from __future__ import annotations

from enum import Enum

from .dtypes import COMPLEX, FLOAT, INTEGER, DType
from .records import dataclass

PRED = frozenset({DType.PRED})
NUMBER = FLOAT | COMPLEX | INTEGER
ANY = NUMBER | PRED
EXACT, FUNCTION_ULP, ALGORITHM_ULP = 0, 4, 20
"""No error; that of a special function; that of one step of a transform, a factorisation or a solver."""
MANY = 1 << 30
"""The upper limit on operands of an opcode that takes any number of them."""


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
    """The facts about one opcode.

    low, high: fewest and most operands that the parser accepts; shape inference may be stricter.
    dtypes: element types that the opcode is defined for.
    required: attributes that the text must have; optional: attributes that it may have.
    elementwise: element i of the result depends on element i of each operand (or on a scalar operand, for select and
    clamp).
    ulp: largest allowed difference of a real result from the evaluator's for the same operands, in units in the last
    place; of an op that folds many elements into one, the difference that one step adds. An op that applies a
    computation adds nothing to what the computation's ops add. differential/bounds.py derives the bounds of modules.
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
        """Its own attributes, required and optional, without those of COMMON in grammar.py."""
        return self.required + self.optional

    @property
    def arity(self) -> str:
        """The number of operands in words, for messages: `2 operands`, `1 operand or more`."""
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


def function(dtypes: frozenset[DType], ulp: int = FUNCTION_ULP) -> Row:
    """A unary special function, which the stacks approximate."""
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
    """A row of any other opcode. high: None means `low`; MANY means any number."""
    return Row(family, low, low if high is None else high, dtypes, attributes, optional, elementwise, ulp)
