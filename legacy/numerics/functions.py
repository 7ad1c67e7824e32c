"""Functions of real numbers by their names in math_f32 and math_f64, or calls by name over a field (docs/exact.md)."""

from __future__ import annotations

from collections.abc import Callable

from ...codegen.field.element import active
from ...codegen.field.names import function_name
from ..core.registers import V
from . import math_f32, math_f64
from .real import Real


def library(name: str) -> Callable[..., V]:
    """The function `name` of math_f32 or math_f64, by the width of its operands."""
    functions = {32: getattr(math_f32, name), 64: getattr(math_f64, name)}
    return lambda r, *values: functions[r.bits](r, *values) if active() is None else _named(r, name, values)


def _named(r: Real, name: str, values: tuple[V, ...]) -> V:
    if name == "logistic":  # it has a formula
        one = r.c(1.0)
        return r.div(one, r.add(one, _named(r, "exp", (r.neg(values[0]),))))
    return r.code.intrinsic(function_name(name, r.suffix), r.type, values)


def named_complex(r: Real, name: str, operands: tuple[tuple[V, V], ...], real: bool) -> V | tuple[V, V]:
    """A function of complex numbers that is called by name: of all their parts, one call for each part of the result.
    real: the result has one part.
    """
    parts = [part for operand in operands for part in operand]
    made = [
        r.code.intrinsic(function_name(name, r.suffix, part), r.type, parts)
        for part in (("re",) if real else ("re", "im"))
    ]
    return made[0] if real else (made[0], made[1])
