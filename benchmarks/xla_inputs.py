"""Inputs for kernels of XLA's, and the distance of results in representable values."""

from __future__ import annotations

import numpy as np

from ..formats.program import parameter_leaves
from ..hlo.ir import Module

SMALL = 8
"""Integers are in [0, SMALL): most indices of a program are in range, and XLA clamps the others."""


def drawn_inputs(module: Module, seed: int = 0, integers: int = SMALL) -> list[np.ndarray]:
    """An array for each leaf of the parameters: floats in [-1, 1), integers in [0, `integers`), pred at even odds."""
    random = np.random.default_rng(seed)
    found = []
    for shape in parameter_leaves(module):
        kind, dtype = np.dtype(shape.dtype.numpy).kind, shape.dtype.numpy
        if kind == "b":
            found.append(random.integers(0, 2, shape.dims).astype(dtype))
        elif kind in "iu":
            found.append(random.integers(0, integers, shape.dims).astype(dtype))
        elif kind == "c":
            found.append((random.uniform(-1, 1, shape.dims) + 1j * random.uniform(-1, 1, shape.dims)).astype(dtype))
        else:
            found.append(random.uniform(-1, 1, shape.dims).astype(dtype))
    return [np.asarray(x) for x in found]


def ulp_distance(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How many representable values lie between the elements of two arrays of one float type."""
    return np.abs(_ordinals(actual) - _ordinals(expected))


def _ordinals(x: np.ndarray) -> np.ndarray:
    """Numbers in the order of the values; both zeros are 0."""
    bits = 8 * x.dtype.itemsize
    raw = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").astype(np.float64)
    sign = raw >= 2.0 ** (bits - 1)
    return np.where(sign, 2.0 ** (bits - 1) - raw, raw)
