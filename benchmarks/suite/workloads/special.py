"""Functions by type: one op on a vector each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..workload import Case, Draw, Register, lax, module_text

SPECIAL = Register("special")

SIZES = {"f32": 1 << 20, "f64": 1 << 18, "bf16": 1 << 20, "f16": 1 << 20}

RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    "exponential": ((-10, 10),),
    "exponential-minus-one": ((-2, 2),),
    "log": ((0.001, 1000),),
    "log-plus-one": ((-0.9, 2),),
    "logistic": ((-10, 10),),
    "tanh": ((-5, 5),),
    "sine": ((-100, 100),),
    "cosine": ((-100, 100),),
    "tan": ((-1.5, 1.5),),
    "atan2": ((-2, 2), (-2, 2)),
    "power": ((0.1, 10), (-3, 3)),
    "sqrt": ((0.001, 1000),),
    "rsqrt": ((0.001, 1000),),
    "cbrt": ((-1000, 1000),),
    "erf": ((-4, 4),),
}
"""Op → range of each operand: where results are neither saturated nor huge."""

SHORT = {
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "log-plus-one": "log1p",
    "sine": "sin",
    "cosine": "cos",
    "power": "pow",
}
"""The usual short name of an op, where HLO's is long; numpy and torch use it too, except as in ELSEWHERE."""

ELSEWHERE: dict[str, str | None] = {"atan2": "arctan2", "pow": "power", "logistic": None, "rsqrt": None, "erf": None}
"""Short name → numpy's name of the function; None: numpy has none."""

TYPES = {
    "f32": tuple(RANGES),
    "f64": ("exponential", "log", "tanh", "sine", "power", "erf"),
    "bf16": ("exponential", "log", "tanh", "rsqrt"),
    "f16": ("exponential", "tanh", "sqrt"),
}


def _one_op(op: str, dtype: str) -> Callable[[], Case]:
    def make() -> Case:
        size, draw, name = SIZES[dtype], Draw(), SHORT.get(op, op)
        shape = f"{dtype}[{size}]{{0}}"
        parameters = [(f"x{n}", shape) for n in range(len(RANGES[op]))]
        body = f"ROOT r = {shape} {op}({', '.join(x for x, _ in parameters)})"
        inputs = tuple(draw.uniform(size, low=a, high=b, dtype=dtype) for a, b in RANGES[op])
        in_numpy = ELSEWHERE.get(name, name) if dtype in ("f32", "f64") else None
        in_torch = {"logistic": "sigmoid", "cbrt": None}.get(name, name)
        return Case(
            inputs,
            module_text(parameters, body),
            numpy=getattr(np, in_numpy) if in_numpy else None,
            torch=(lambda torch, *x: getattr(torch, in_torch)(*x)) if in_torch else None,
        )

    return make


for _dtype, _ops in TYPES.items():
    for _op in _ops:
        SPECIAL.hlo(f"{SHORT.get(_op, _op)}_{_dtype}", _one_op(_op, _dtype))


def _library(name: str, function: Callable[..., Any], low: float, high: float) -> None:
    """Declare a function that JAX composes of several ops, on 2¹⁸ f32."""
    SPECIAL.jax(f"{name}_f32")(lambda: Case((Draw().uniform(1 << 18, low=low, high=high),), function=function))


_library("lgamma", lambda x: lax.lgamma(x), 0.1, 20)
_library("digamma", lambda x: lax.digamma(x), 0.1, 20)
_library("erf_inv", lambda x: lax.erf_inv(x), -0.99, 0.99)
_library("bessel_i0e", lambda x: lax.bessel_i0e(x), 0, 20)
