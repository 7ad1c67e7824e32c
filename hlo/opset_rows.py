"""What a row of the opset is, and the short forms that make one: unary, function, binary, typed, op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .dtypes import COMPLEX, FLOAT, INTEGER, DType

PRED = frozenset({DType.PRED})
NUMBER = FLOAT | COMPLEX | INTEGER
ANY = NUMBER | PRED
EXACT, DEFAULT_ULP = 0, 20


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


class Form(Enum):
    """How a row's reference is called."""

    NUMPY = "(*arrays) -> array, in working precision; the evaluator widens and rounds"
    TYPED = "(instruction, *arrays) -> array of the result's dtype; arrays may broadcast against each other"
    RULE = "(instruction, operands, context) -> value"


@dataclass(frozen=True, slots=True)
class Row:
    """The facts of one opcode. `arity` is (least, most) operands that its text may have, most None for any number;
    shape inference may ask for more. required: attributes without which the text is refused.
    """

    family: Family
    arity: tuple[int, int | None]
    dtypes: frozenset[DType] = ANY
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    form: Form = Form.RULE
    reference: Callable[..., Any] | None = None
    ulp: int = EXACT
    precise: bool = False
    reason: str = ""

    @property
    def elementwise(self) -> bool:
        """Each result element depends on the operands' elements in the same place."""
        return self.form is not Form.RULE


def elementwise(
    family: Family,
    arity: int,
    dtypes: frozenset[DType],
    reference: Callable[..., Any],
    ulp: int,
    precise: bool = False,
    optional: tuple[str, ...] = (),
) -> Row:
    """An elementwise opcode whose reference is called with arrays alone."""
    return Row(family, (arity, arity), dtypes, (), optional, Form.NUMPY, reference, ulp, precise)


def unary(dtypes: frozenset[DType], reference: Callable[..., Any], ulp: int = EXACT) -> Row:
    return elementwise(Family.UNARY, 1, dtypes, reference, ulp)


def function(dtypes: frozenset[DType], reference: Callable[..., Any], ulp: int = DEFAULT_ULP) -> Row:
    """A unary special function of real numbers, computed in a wider type than its own; complex in its own type."""
    return elementwise(Family.UNARY, 1, dtypes, reference, ulp, precise=True, optional=("result_accuracy",))


def binary(dtypes: frozenset[DType], reference: Callable[..., Any], ulp: int = EXACT, precise: bool = False) -> Row:
    return elementwise(Family.BINARY, 2, dtypes, reference, ulp, precise)


def typed(
    family: Family,
    arity: int,
    dtypes: frozenset[DType],
    reference: Callable[..., Any],
    required: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
) -> Row:
    """An elementwise opcode whose reference looks at the instruction."""
    return Row(family, (arity, arity), dtypes, required, optional, Form.TYPED, reference)


def op(
    family: Family,
    least: int,
    most: int | None = -1,
    reference: Callable[..., Any] | None = None,
    *,
    dtypes: frozenset[DType] = ANY,
    attributes: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
    ulp: int = EXACT,
    reason: str = "",
) -> Row:
    """Any other opcode. most -1: as many as `least`; None: any number."""
    return Row(
        family,
        (least, least if most == -1 else most),
        dtypes,
        attributes,
        optional,
        Form.RULE,
        reference,
        ulp,
        reason=reason,
    )
