"""Inputs of one kind for every parameter: ones, zeros, 0, 1, 2, …, NaN, or random ones (fake_inputs.py)."""

from __future__ import annotations

import numpy as np

from ..hlo.dtypes import DType
from ..hlo.ir import Module
from ..hlo.shapes import Shape
from .fake_inputs import each_leaf, fake_inputs

KINDS = ("ones", "iota", "random", "nan", "zeros")


def filled_inputs(module: Module, kind: str, seed: int = 0) -> list[np.ndarray]:
    """One array per array leaf of the entry parameters.

    kind: of KINDS. iota counts 0, 1, 2, … in row-major order, as the type holds it: integers wrap around, floats are
    rounded, preds alternate. nan is for floats and complex numbers; what holds no NaN is drawn from the seed, as with
    random.
    """
    if kind == "random":
        return fake_inputs(module, seed)
    if kind == "nan":
        leaves = [leaf for p in module.entry.parameters for _, leaf in p.shape.leaves() if leaf.is_array]
        drawn = iter([] if all(map(_holds_nan, leaves)) else fake_inputs(module, seed))
        return each_leaf(module, lambda _p, _index, shape: _nans(shape, next(drawn, None)))
    return each_leaf(module, lambda _p, _index, shape: _fill(shape, kind))


def _fill(shape: Shape, kind: str) -> np.ndarray:
    if kind == "iota":
        return _count(shape.size, shape.dtype).reshape(shape.dims)
    with np.errstate(all="ignore"):
        value = np.array(1.0 if kind == "ones" else 0.0).astype(shape.dtype.numpy)
    return np.full(shape.dims, value, shape.dtype.numpy)


def _holds_nan(shape: Shape) -> bool:
    dtype = shape.dtype
    with np.errstate(all="ignore"):
        return dtype.is_complex or (dtype.is_float and bool(np.isnan(np.array(np.nan).astype(dtype.numpy))))


def _nans(shape: Shape, drawn: np.ndarray | None) -> np.ndarray:
    """NaN everywhere, or what was drawn for a type that holds none."""
    if not _holds_nan(shape):
        assert drawn is not None
        return drawn
    return np.full(shape.dims, complex(np.nan, np.nan) if shape.dtype.is_complex else np.nan, shape.dtype.numpy)


def _count(size: int, dtype: DType) -> np.ndarray:
    numbers = np.arange(size)
    if dtype is DType.PRED:
        return numbers % 2 == 1
    if dtype.is_integer and dtype.bits < 8:  # NumPy's types of these take a byte, and do not wrap by themselves
        low = -(1 << dtype.bits - 1) if dtype.is_signed else 0
        numbers = (numbers - low) % (1 << dtype.bits) + low
    return numbers.astype(dtype.numpy)
