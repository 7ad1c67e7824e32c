"""A program on one stack, ready to be timed: compiled, inputs in place, results recycled from run to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formats.program import Program
from ..migration.stacks import prepare


@dataclass(frozen=True)
class Contestant:
    """run: one execution; its results, on our stacks always in the same arrays."""

    run: Callable[[], Sequence[Any]]
    compile_seconds: float


def contestant(stack: str, program: Program, inputs: Sequence[np.ndarray]) -> Contestant:
    """Compile a program for a stack; the returned `run` does one execution and leaves the results where they were."""
    prepared = prepare(stack, program)
    if stack == "xla":
        arrays = prepared.executable.put(inputs)
        return Contestant(lambda: prepared.executable.run(arrays), prepared.seconds)
    if prepared.executable is None:
        return Contestant(lambda: prepared.run(inputs), prepared.seconds)
    results = prepared.executable.execute(inputs)
    bounds = [leaf.shape.dims for leaf in prepared.executable.outputs]  # of which a dynamic result may be a part
    outputs = [r if r.shape == bound else None for r, bound in zip(results, bounds, strict=True)]
    return Contestant(lambda: prepared.executable.execute(inputs, outputs=outputs), prepared.seconds)
