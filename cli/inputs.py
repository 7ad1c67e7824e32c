"""Chooses the inputs that a command runs on: a file, a seed, the program's own inputs, or seed 0."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ..formats.program import Program


def choose_inputs(program: Program, file: str | None, seed: int | None) -> list[np.ndarray]:
    """Input leaves for a program, from the first that is given: the file, the seed, the program's io.npz, seed 0."""
    from ..formats.program import load_io, parameter_leaves

    if file is not None:
        return list(load_io(Path(file), parameter_leaves(program.module), None)[0])
    if seed is None and program.inputs is not None:
        return list(program.inputs)
    from ..differential.fake_inputs import fake_inputs

    return fake_inputs(program.module, seed or 0)
