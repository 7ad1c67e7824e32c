"""Chooses the inputs that a command runs on: a file, a seed, the program's own inputs, or seed 0."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ..formats.program import Program


def choose_inputs(program: Program, file: str | None, seed: int | None) -> list[np.ndarray]:
    """Input leaves for a program, from the first that is given: the file, the seed, the program's io.npz, seed 0."""
    return choose_values(program, file, seed, expected=False)[0]


def choose_values(
    program: Program, file: str | None, seed: int | None, expected: bool = True
) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """`choose_inputs`, and the results that came with these inputs; None if none did.

    expected: read the results of the file, too.
    """
    from ..formats.program import load_io, parameter_leaves, result_leaves

    if file is not None:
        leaves = result_leaves(program.module) if expected else None
        arrays, results = load_io(Path(file), parameter_leaves(program.module), leaves)
        return list(arrays), None if results is None else list(results)
    if seed is None and program.inputs is not None:
        return list(program.inputs), None if program.expected is None else list(program.expected)
    from ..differential.fake_inputs import fake_inputs

    return fake_inputs(program.module, seed or 0), None
