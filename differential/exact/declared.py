"""Rewrites of passes that hold for real numbers, and not for elements of a field, by pass and rule, with the reasons.

Such a rewrite must still hold for ordinary floats, within the bounds of the module (passes.py compares them).
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why elements differ. ORDERED: on draws whose twist keeps integers in order they must be equal. COMPLEX: real
    numbers must be equal.
    """

    SQUARED = "a square is not negative"
    ROUNDED = "a folded constant is rounded"
    NAMED = "an identity of a function that is known by its name only"
    COMPLEX = "an identity of a function of complex numbers that is known by its name only"
    ORDERED = "the order of integers as floats"


EACH = ""
"""In place of a rule's name: each rewrite of the pass."""

DECLARED: dict[tuple[str, str], Reason] = {
    ("algebra", "abs_of_what_is_not_negative"): Reason.SQUARED,
    ("algebra", "abs_of_negated"): Reason.COMPLEX,
    ("algebra", "divide_minus_one"): Reason.COMPLEX,
    ("algebra", "divide_one"): Reason.COMPLEX,
    ("algebra", "divide_power_of_two"): Reason.COMPLEX,
    ("algebra", "idempotent"): Reason.COMPLEX,
    ("algebra", "multiply_negated"): Reason.COMPLEX,
    ("algebra", "negated_factor"): Reason.COMPLEX,
    ("algebra", "power_half"): Reason.NAMED,
    ("algebra", "power_small"): Reason.NAMED,
    ("algebra", "power_complex"): Reason.NAMED,
    ("algebra", "power_zero_or_one"): Reason.NAMED,
    ("algebra", "rounded_integer"): Reason.NAMED,
    ("algebra", "rounded_twice"): Reason.NAMED,
    ("counted-compares", EACH): Reason.ORDERED,
    ("fold-constants", EACH): Reason.ROUNDED,
}
"""(Pass, rule of `algebra`) → why the value over a field changes with it."""
