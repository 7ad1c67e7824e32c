"""What the programs of numerics.py are made of: HLO text, inputs, and the exact result.

Each is a function of the size n (a power of two, the elements of its largest array, at least 1,024) and of a generator.
Exact results are computed in f64 (complex: c128) with sums by `math.fsum` of pieces, from the inputs as rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

BF16, F16, F32, C64 = ml_dtypes.bfloat16, np.float16, np.float32, np.complex64


@dataclass(frozen=True)
class Case:
    """A program of one size. exact: its result in f64 or c128. whole: errors count relative to the result's largest
    magnitude instead of to each element.
    """

    text: str
    inputs: tuple[np.ndarray, ...]
    exact: Callable[[], np.ndarray]
    whole: bool = False


Make = Callable[[int, np.random.Generator], Case]


@dataclass(frozen=True)
class LongProgram:
    """most: log2 of the largest size that takes seconds, or whose result its dtype can hold. in_order: the program
    itself fixes an order of steps, so that its error is known only beside XLA's.
    """

    name: str
    make: Make
    most: int = 27
    in_order: bool = False


SQUARE = "v = {s} multiply(x, x)"
"""HLO that squares `x` of shape {s}, for str.format."""


class LongPrograms(dict[str, LongProgram]):
    """Programs by name."""

    def add(self, name: str, *, most: int = 27, in_order: bool = False) -> Callable[[Make], Make]:
        """A decorator that adds a program."""

        def add(make: Make) -> Make:
            self[name] = LongProgram(name, make, most, in_order)
            return make

        return add


def module_text(body: str, *dtypes: str) -> str:
    """An HLO module. body: the entry's lines. Regions add_T, mul_T and max_T exist for each T of dtypes (f32)."""
    regions = [
        f"{name}_{t} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = {t}[] {op}(a, b)\n}}\n"
        for t in dtypes or ("f32",)
        for name, op in (("add", "add"), ("mul", "multiply"), ("max", "maximum"))
        if not (op == "maximum" and t.startswith("c"))
    ]
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return "HloModule long\n\n" + "\n".join(regions) + f"\nENTRY e {{\n{lines}\n}}\n"


def uniform(g: np.random.Generator, *shape: int) -> np.ndarray:
    return g.random(shape, np.float32)


def complex_uniform(g: np.random.Generator, *shape: int) -> np.ndarray:
    return (uniform(g, *shape) + 1j * uniform(g, *shape)).astype(C64)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


PIECE = 1 << 20


def total(f: Callable[..., np.ndarray], *arrays: np.ndarray) -> float:
    """Σ f(…) over the elements of arrays of one size, in f64, piece by piece."""
    flat = [a.reshape(-1) for a in arrays]
    pieces = (f(*(wide(a[k : k + PIECE]) for a in flat)) for k in range(0, flat[0].size, PIECE))
    return math.fsum(float(np.sum(p)) for p in pieces)


def column_totals(f: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Σ f(…) over the first dimension, in f64, piece by piece."""
    height = max(1, PIECE // arrays[0][0].size)
    pieces = [f(*(wide(a[k : k + height]) for a in arrays)).sum(0) for k in range(0, len(arrays[0]), height)]
    return np.sum(pieces, 0)


def row_totals(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Σ f(x) over the last dimension of a matrix, in f64, row by row."""
    return np.array([total(f, row) for row in x])


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a · b of [m,k] and [k,n] in f64 or c128, piece by piece."""
    k = a.shape[1]
    return sum(
        (wide(a[:, i : i + PIECE]) @ wide(b[i : i + PIECE]) for i in range(0, k, PIECE)),
        np.zeros((len(a), b.shape[1]), wide(a[:1, :1]).dtype),
    )


def same(x: np.ndarray) -> np.ndarray:
    return x


def square_shape(n: int) -> tuple[int, int]:
    rows = 1 << (n.bit_length() - 1) // 2
    return rows, n // rows
