"""Replaces math.* operations without an LLVM instruction by calls of private functions, which are built once per module
and inlined by LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlir import ir

from ...codegen.field.element import active
from ...codegen.field.names import function_name
from ..core.builder import Builder, Value
from . import math_arctangent, math_exp, math_log, math_power, math_special, math_trigonometry

Expansion = Callable[..., Value]

EXPANSIONS: Mapping[str, Expansion] = {
    "math.acos": math_arctangent.acos,
    "math.acosh": math_log.acosh,
    "math.asin": math_arctangent.asin,
    "math.asinh": math_log.asinh,
    "math.atan2": math_arctangent.atan2,
    "math.atanh": math_log.atanh,
    "math.cbrt": math_special.cbrt,
    "math.cos": math_trigonometry.cos,
    "math.cosh": math_exp.cosh,
    "math.exp": math_exp.exp,
    "math.expm1": math_exp.expm1,
    "math.log": math_log.log,
    "math.rsqrt": math_special.rsqrt,
    "math.sin": math_trigonometry.sin,
    "math.sinh": math_exp.sinh,
    "math.tan": math_trigonometry.tan,
    "math.tanh": math_exp.tanh,
}
"""Operations that are expanded for f32 and f64."""

BY_TYPE: Mapping[str, Mapping[str, Expansion]] = {
    "math.erf": {"f32": math_special.erf_f32, "f64": math_special.erf_f64},
    "math.log1p": {"f32": math_log.log1p, "f64": math_log.log1p_as_xla},
    "math.powf": {"f32": math_power.pow_f32, "f64": math_power.pow_f64},
}
"""Operations with different expansions for f32 and f64."""


def expand(b: Builder) -> None:
    """Replace the math operations that `Builder.math` has created. Those with an LLVM intrinsic stay."""
    calls, b.math_calls = b.math_calls, []
    for operation in calls:
        name = operation.name
        if name not in EXPANSIONS and name not in BY_TYPE:
            continue
        type = operation.results[0].type
        symbol = _function(b, name, type, len(operation.operands))
        b.ip = ir.InsertionPoint(operation)
        result = b.call(symbol, type, list(operation.operands))
        operation.results[0].replace_all_uses_with(result)
        operation.erase()


def _function(b: Builder, name: str, type: ir.Type, arity: int) -> str:
    """The symbol of the private function for an operation; it is built on first use."""
    if active() is not None:
        return b.external(function_name(name.removeprefix("math."), str(type)), [type] * arity, type, pure=True)
    symbol = f"{name}.{type}"
    if symbol not in b.functions:
        attributes: dict[str, ir.Attribute] = {
            "sym_visibility": ir.StringAttr.get("private"),
            "llvm.linkage": b.types.internal,
            "always_inline": b.types.unit,
        }
        expansion = BY_TYPE[name][str(type)] if name in BY_TYPE else EXPANSIONS[name]
        with b.function(symbol, [type] * arity, [type], attributes) as arguments, b.exact():
            b.give(expansion(b, *arguments))
    return symbol
