"""Inputs for tests, made from a seed for a module's parameters: ordinary ones, and ones with special values."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ...differential.bounds import bounds_of
from ...formats.program import parameter_leaves
from ...hlo.dtypes import DType
from ...hlo.ir import Module
from ...hlo.opcodes import Op

ALGORITHMS = frozenset({Op.FFT, Op.CHOLESKY, Op.TRIANGULAR_SOLVE, Op.CUSTOM_CALL})
"""What a library makes of NaN and infinities is not fixed, and a factorisation of them may not end."""
ORDERING = frozenset({Op.SORT, Op.TOPK})
"""A comparator that is no strict order of NaN or of both zeros leaves several right permutations."""


def make_inputs(module: Module, seed: int = 0, *, special: bool = False) -> list[np.ndarray]:
    """Floats uniform in [-1, 1), integers -3 to 4 (unsigned: 0 to 4), preds of both kinds.

    special: the first elements of each array are special values in an order by the seed, as many as the module allows.
    """
    rng = np.random.default_rng(seed)
    kinds = Kinds(module)
    made = []
    for shape in parameter_leaves(module):
        x = _ordinary(rng, shape.dtype, shape.dims)
        if special:
            values = rng.permutation(kinds.values(shape.dtype))[: x.size]
            x.reshape(-1)[: len(values)] = values
        made.append(x)
    return made


def _ordinary(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    if dtype is DType.PRED:
        return np.asarray(rng.integers(0, 2, dims)).astype(np.bool_)
    if dtype.is_integer:
        info = ml_dtypes.iinfo(dtype.numpy)
        return np.asarray(rng.integers(max(-3, int(info.min)), min(4, int(info.max)), dims, endpoint=True)).astype(
            dtype.numpy
        )
    if dtype.is_complex:
        return np.asarray(rng.uniform(-1, 1, dims) + 1j * rng.uniform(-1, 1, dims)).astype(dtype.numpy)
    return np.asarray(rng.uniform(-1, 1, dims)).astype(dtype.numpy)


class Kinds:
    """Which special values a module takes."""

    def __init__(self, module: Module) -> None:
        ops = module.opcodes
        self.exact = all(not b.ulp and not b.scaled for b in bounds_of(module))
        self.extreme_integers = Op.WHILE not in ops
        self.no_number = not ops & ALGORITHMS
        self.unordered = not ops & ORDERING

    def values(self, dtype: DType) -> np.ndarray:
        if dtype is DType.PRED:
            return np.array([False, True])
        if dtype.is_integer:
            return self._integers(dtype)
        if dtype.is_complex:
            return self._complex(dtype)
        return self._floats(dtype)

    def _integers(self, dtype: DType) -> np.ndarray:
        """Without the extremes where they may be the number of a loop's iterations."""
        info = ml_dtypes.iinfo(dtype.numpy)
        least, most = int(info.min), int(info.max)
        wanted = {-1, 0, 1, 2} | ({least, least + 1, most, most - 1} if self.extreme_integers else set())
        return np.array([dtype.numpy.type(v) for v in sorted(wanted) if least <= v <= most], dtype.numpy)

    def _floats(self, dtype: DType) -> np.ndarray:
        """Where sums may be made in another order, without the largest (the order decides on overflow) and without the
        smallest (whether they are flushed decides on 0·inf)."""
        info = ml_dtypes.finfo(dtype.numpy)
        tiny, least, most = float(info.smallest_normal), float(info.smallest_subnormal), float(info.max)
        wanted = [0.0, -0.0] if self.unordered else [0.0]
        wanted += [1.0, -1.0]
        if self.no_number:
            wanted += [np.inf, -np.inf] + ([np.nan] if self.unordered else [])
        if self.exact:
            wanted += [most, -most, tiny, -tiny, least, -least]
        with np.errstate(all="ignore"):
            return np.array(wanted).astype(dtype.numpy)

    def _complex(self, dtype: DType) -> np.ndarray:
        """Infinite ones where nothing is computed: no two libraries agree on the parts of an infinite product."""
        parts = [0.0, -0.0, 1.0, -1.0] + ([np.inf, -np.inf, np.nan] if self.exact and self.no_number else [])
        real, imag = np.meshgrid(parts, parts)
        out = np.empty(real.size, dtype.numpy)
        out.real, out.imag = real.reshape(-1), imag.reshape(-1)
        return out
