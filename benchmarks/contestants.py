"""A program on one stack, ready to be timed: compiled, inputs in place, result arrays reused between runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formats.program import Program
from ..migration.stacks import prepare


@dataclass(frozen=True)
class Contestant:
    """run: performs one execution and returns its results; on our stacks they are the same arrays each time."""

    run: Callable[[], Sequence[Any]]
    compile_seconds: float


def contestant(stack: str, program: Program, inputs: Sequence[np.ndarray]) -> Contestant:
    """Compile a program for a stack. `run` of the result performs one execution; it reuses the result arrays."""
    prepared = prepare(stack, program)
    if stack == "xla":
        arrays = prepared.executable.put(inputs)
        return Contestant(lambda: prepared.executable.run(arrays), prepared.seconds)
    if prepared.executable is None:
        return Contestant(lambda: prepared.run(inputs), prepared.seconds)
    results = prepared.executable.execute(inputs)
    bounds = [leaf.shape.dims for leaf in prepared.executable.outputs]  # a dynamic result may be smaller than these
    outputs = [r if r.shape == bound else None for r, bound in zip(results, bounds, strict=True)]
    return Contestant(lambda: prepared.executable.execute(inputs, outputs=outputs), prepared.seconds)
