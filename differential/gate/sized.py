"""Programs of a row's op alone, of sizes about the limits of the forms; also of types that are not drawn for it."""

from __future__ import annotations

import random
from collections.abc import Callable

from ...hlo.dtypes import DType
from ...migration.units import CLASSES, ELEMENTAL
from .. import row_programs as rows
from ..generate.program import FORM_LIMITS, MOST_ELEMENTS, near

SIZES = (1, *near(FORM_LIMITS))
SMALL_SIZES = tuple(n for n in SIZES if n <= 33)
MOST_PRODUCTS = 1 << 18
"""Of a product or convolution."""


def sized(unit: str, dtypes: str, seed: int) -> str:
    """A program of a seed."""
    draw = random.Random(seed)
    dtype = draw.choice(sorted(CLASSES[dtypes], key=lambda d: d.value))
    return _SIZED[unit](dtype, draw)


def _matrix(draw: random.Random, most: int = MOST_ELEMENTS) -> tuple[int, int]:
    """Sides of a matrix, one of any size."""
    one = draw.choice([n for n in SIZES if n <= most])
    other = draw.choice([n for n in SIZES if n * one <= max(most, one)])
    return (one, other) if draw.random() < 0.5 else (other, one)


def _product(t: DType, draw: random.Random) -> str:
    a, b = _matrix(draw)
    c = draw.choice([n for n in SIZES if a * b * n <= max(MOST_PRODUCTS, a * b)])
    m, k, n = draw.sample((a, b, c), 3)
    return rows.product_of(t, m, k, n, draw.randrange(3))


def _convolution(t: DType, draw: random.Random) -> str:
    a, b = _matrix(draw, 256)
    channels, features = (draw.choice([n for n in SMALL_SIZES if n < 18]) for _ in range(2))
    return rows.convolved_of(t, a, b, channels, features)


def _elements(t: DType, draw: random.Random) -> str:
    """As `elemental` of row_programs, with any of its ops."""
    return rows.elemental(t, draw.randrange(512))


_SIZED: dict[str, Callable[[DType, random.Random], str]] = {
    ELEMENTAL: _elements,
    "concatenate": lambda t, d: rows.joined_of(t, *_matrix(d), d.randrange(2)),
    "convolution": _convolution,
    "dot": _product,
    "dynamic-update-slice": lambda t, d: rows.updated_of(t, *_matrix(d)),
    "reduce": lambda t, d: rows.reduction_of(t, d.randrange(4), *_matrix(d), d.choice(("0", "1", "0,1"))),
    "reduce-window": lambda t, d: rows.windowed_of(t, d.randrange(4), *_matrix(d), stride=d.choice((1, 1, 2, 3))),
    "scatter": lambda t, d: rows.scattered_of(t, d.randrange(4), *_matrix(d, 1024), d.choice(SMALL_SIZES)),
    "sort": lambda t, d: rows.sorted_of(t, *_matrix(d)),
    "transpose": lambda t, d: rows.transposed_of(t, *_matrix(d, 2048)),
}
