"""The suites of programs that the sweep knows: data, which loads when a suite is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

from ..xla_inputs import SMALL

Programs: TypeAlias = Mapping[str, Callable[[], str]]
"""Name → a function that gives HLO text."""

PLACES = 256
"""Limit of integers in inputs of programs that take them for places."""


@dataclass(frozen=True, slots=True)
class Suite:
    """modules: of this folder; the first one has PROGRAMS, to which the others may add. integers: limit in inputs."""

    about: str
    modules: tuple[str, ...]
    integers: int = SMALL

    def programs(self) -> Programs:
        loaded = [import_module(f".{name}", __package__) for name in self.modules]
        found: Programs = loaded[0].PROGRAMS
        return found


SUITES = {
    "ops": Suite(
        "one operation, or a few, at many shapes and types; half an hour",
        ("op_text", "op_forms", "op_moves", "op_orders", "op_rows", "op_values"),
    ),
    "applications": Suite("layers, losses, simulations and filters, as users write them", ("applications",), PLACES),
    "functions": Suite("functions of a matrix, with rows a power of two apart, and not", ("jax_functions",)),
    "api": Suite("functions of jax.numpy, jax.nn, jax.random, jax.scipy, jax.image", ("jax_api",), PLACES),
    "forms": Suite("small programs as users write them, in all element types", ("jax_forms",), PLACES),
}
