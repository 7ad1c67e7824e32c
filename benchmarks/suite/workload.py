"""What a workload is: a name, a group, and a function that makes its program and its inputs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A program with its inputs: HLO text, or a JAX function that is lowered to it (exactly one of the two).

    inputs: one array per parameter; for a function, any trees of arrays. x64: lower the function with 64-bit types.
    numpy, torch: the same computation on the inputs, for those columns; torch's gets the module `torch` first.
    exact: the results from the inputs in f64 or c128, where the evaluator would take too long.
    """

    inputs: tuple[Any, ...]
    text: str | None = None
    function: Callable[..., Any] | None = None
    x64: bool = False
    numpy: Callable[..., Any] | None = None
    torch: Callable[..., Any] | None = None
    exact: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Workload:
    """make: builds the case; called in the child process that measures it. needs_jax: the case has a function.

    path: of a MODULE that a user gave, instead of a case.
    """

    name: str
    group: str
    make: Callable[[], Case] | None = None
    needs_jax: bool = False
    path: str = ""


class Register:
    """Collects the workloads of one group in the order in which they are declared."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.workloads: list[Workload] = []

    def hlo(self, name: str, make: Callable[[], Case]) -> None:
        """Declare a workload that carries its HLO text: it runs without jaxlib."""
        self.workloads.append(Workload(name, self.group, make))

    def jax(self, name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
        """Declare the decorated function, which makes a case with a JAX function, as a workload."""

        def declare(make: Callable[[], Case]) -> Callable[[], Case]:
            self.workloads.append(Workload(name, self.group, make, needs_jax=True))
            return make

        return declare


class Later:
    """A module that is imported when an attribute is first read, so that declarations do not need it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


jax: Any = Later("jax")
jnp: Any = Later("jax.numpy")
lax: Any = Later("jax.lax")

NUMPY_TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "s8": np.int8,
    "s32": np.int32,
    "c64": np.complex64,
}


def numpy_type(dtype: str) -> np.dtype:
    """The numpy type of an HLO type's name."""
    if dtype == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(NUMPY_TYPES[dtype])


class Draw:
    """Inputs from a seed."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def uniform(self, *shape: int, low: float = -1.0, high: float = 1.0, dtype: str = "f32") -> np.ndarray:
        """Floats, or complex numbers whose parts are such floats, in [low, high)."""

        def part() -> np.ndarray:
            x = self.random.random(shape, np.float32 if dtype != "f64" else np.float64)
            x *= high - low
            x += low
            return x

        return (part() + 1j * part() if dtype == "c64" else part()).astype(numpy_type(dtype), copy=False)

    def normal(self, *shape: int, scale: float = 1.0, dtype: str = "f32") -> np.ndarray:
        x = self.random.standard_normal(shape, np.float32 if dtype != "f64" else np.float64)
        x *= scale
        return x.astype(numpy_type(dtype), copy=False)

    def integers(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
        return self.random.integers(low, high, shape, dtype=np.int64).astype(dtype)


def shape_text(dtype: str, dims: Sequence[int]) -> str:
    """An HLO shape with the row-major layout, such as f32[2,3]{1,0}."""
    order = ",".join(str(d) for d in reversed(range(len(dims))))
    return f"{dtype}[{','.join(map(str, dims))}]" + (f"{{{order}}}" if dims else "")


def module_text(parameters: Sequence[tuple[str, str]], body: str, computations: str = "") -> str:
    """HLO text. parameters: (name, shape) each. body: the entry's lines after them. computations: the others."""
    lines = [f"  {name} = {shape} parameter({n})" for n, (name, shape) in enumerate(parameters)]
    lines += [f"  {line.strip()}" for line in body.strip().splitlines()]
    return "\n".join(["HloModule workload", computations, "ENTRY e {", *lines, "}", ""])


def fold_text(name: str, dtype: str, op: str) -> str:
    """HLO text of a computation that combines two scalars with an op."""
    return f"""
{name} {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] {op}(a, b)
}}
"""
