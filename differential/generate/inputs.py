"""The arrays that a generated program is run on: for each parameter a kind of numbers and a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ...hlo.dtypes import DType
from ...hlo.shapes import Shape
from .values import limits

FLOAT_KINDS = (
    *("moderate", "small integers", "special", "bits", "moderate", "spread", "halves", "special", "same", "iota"),
    "zeros",
)
INTEGER_KINDS = ("small integers", "bits", "special", "small integers", "places", "iota", "zeros", "special")
LONG_KINDS = ("same", "moderate")
"""Of what a long sum adds up: where all terms are alike, a chain of additions drifts."""
WHOLE = 3
"""The largest magnitude of the small integers."""
HALVES = 9
"""The largest number of halves, whose roundings are ties."""
LEAST_POWER = 12
"""Numbers of many magnitudes are down to two to minus this: there sums with 1 cancel."""
PLACES = 9
"""Indices of arrays are up to this, many at the ends of the dimensions that are drawn."""


@dataclass(frozen=True)
class Input:
    """kind: of FLOAT_KINDS or INTEGER_KINDS; seed: of its numbers."""

    kind: str
    seed: int


def known_of(given: Input, dtype: DType) -> dict[str, Any]:
    """What is known of an input's numbers, as arguments of Body.keep."""
    if given.kind == "zeros" and (dtype.is_float or dtype.is_complex):
        return {"most": 1.0}  # of either sign, and so no whole numbers
    if given.kind in ("small integers", "zeros"):
        return {"whole": True, "most": float(WHOLE)}
    if given.kind == "halves":
        return {"most": HALVES / 2}
    if given.kind in ("moderate", "spread", "same") and (dtype.is_float or dtype.is_complex):
        return {"most": 1.0}
    return {}


def array_of(given: Input, shape: Shape) -> np.ndarray:
    """The array of an input for a parameter of this shape."""
    draw = np.random.Generator(np.random.PCG64(given.seed))
    dtype, dims = shape.dtype, shape.dims
    if dtype.is_complex:
        made = np.empty(dims, dtype.numpy)
        made.real, made.imag = (_real(given.kind, dtype.component, dims, draw) for _ in range(2))
        return made
    return _real(given.kind, dtype, dims, draw)


def _real(kind: str, dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(_KINDS[kind](dtype, dims, draw)).astype(dtype.numpy)


def _zeros(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    return np.where(draw.random(dims) < 0.5, -0.0, 0.0)


def _moderate(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    return draw.uniform(-1, 1, dims)


def _same(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    return np.full(dims, draw.uniform(-1, 1))


def _halves(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    return draw.integers(-HALVES, HALVES, dims, endpoint=True) / 2


def _spread(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    return draw.uniform(-1, 1, dims) * np.exp2(-draw.uniform(0, LEAST_POWER, dims))


def _places(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    least, most = _range(dtype)
    return draw.integers(max(least, -1), min(most, PLACES), dims, endpoint=True)


def _iota(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    least, most = _range(dtype)
    count = np.arange(math.prod(dims)).reshape(dims)
    return count % (most - least + 1) + least if most < 1 << 32 else count


def _small(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    least, most = _range(dtype)
    return draw.integers(max(least, -WHOLE), min(most, WHOLE), dims, endpoint=True)


def _bits(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Any bits of the type; of 64-bit floats and narrower ones those of every exponent."""
    if dtype.is_integer or dtype is DType.PRED:
        least, most = _range(dtype)
        return draw.integers(least, most, dims, np.int64 if least < 0 else np.uint64, endpoint=True)
    raw = draw.integers(0, (1 << dtype.bits) - 1, dims, np.uint64, endpoint=True)
    return raw.astype(f"u{dtype.bytes}").view(dtype.numpy).reshape(dims)


def _special(dtype: DType, dims: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Special values among moderate ones."""
    values = special_values(dtype)
    return np.where(draw.random(dims) < 0.5, draw.choice(values, dims), _small(dtype, dims, draw).astype(dtype.numpy))


def special_values(dtype: DType) -> np.ndarray:
    """The ends of a type and what lies beside them: zeros, NaN, infinities, subnormals, largest numbers."""
    if dtype.is_float:
        info = ml_dtypes.finfo(dtype.numpy)
        tiny, least, most = float(info.smallest_normal), float(info.smallest_subnormal), float(info.max)
        wanted = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, most, -most, tiny, -tiny, least, -least, 0.5]
        with np.errstate(all="ignore"):
            return np.array(wanted).astype(dtype.numpy)
    least_int, most_int = _range(dtype)
    edges = {least_int, least_int + 1, most_int - 1, most_int, -1, 0, 1, dtype.bits - 1, dtype.bits, dtype.bits + 1}
    return np.array([v for v in sorted(edges) if least_int <= v <= most_int], object).astype(dtype.numpy)


def _range(dtype: DType) -> tuple[int, int]:
    if dtype is DType.PRED:
        return 0, 1
    if not dtype.is_integer:
        return -(1 << 32), 1 << 32
    return limits(dtype)


_KINDS: dict[str, Callable[[DType, tuple[int, ...], np.random.Generator], np.ndarray]] = {
    "zeros": _zeros,
    "moderate": _moderate,
    "same": _same,
    "halves": _halves,
    "spread": _spread,
    "places": _places,
    "iota": _iota,
    "small integers": _small,
    "bits": _bits,
    "special": _special,
}
