"""Functions as users of JAX write them, on f32 matrices with rows a power of two apart, and not, against XLA:CPU.

Run: .venv/bin/python -m testbed.benchmarks.sweep functions [--only REGEX]; 5 minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from . import jax_text

SIDES = (1000, 1024, 2000, 2048)

Function = Callable[[Any, Any, Any], Any]
"""(jax, jax.numpy, a matrix) → the result."""


def _mean_and_scale(np: Any, x: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


FUNCTIONS: dict[str, Function] = {
    # along rows and columns
    "cumsum of columns": lambda jax, np, x: np.cumsum(x, 0),
    "cumsum of rows": lambda jax, np, x: np.cumsum(x, 1),
    "cumprod of rows": lambda jax, np, x: np.cumprod(x, 1),
    "running maximum of columns": lambda jax, np, x: jax.lax.cummax(x, 0),
    "sort of columns": lambda jax, np, x: np.sort(x, 0),
    "argmax of columns": lambda jax, np, x: np.argmax(x, 0),
    "softmax of columns": lambda jax, np, x: jax.nn.softmax(x, 0),
    "variance of columns": lambda jax, np, x: np.var(x, 0),
    "norm of columns": lambda jax, np, x: _mean_and_scale(np, x.T).T,
    "deviation of rows": lambda jax, np, x: np.std(x, 1),
    "logsumexp of columns": lambda jax, np, x: jax.nn.logsumexp(x, 0),
    "median of columns": lambda jax, np, x: np.median(x[:256], 0),
    "maximum of columns": lambda jax, np, x: x.max(0),
    "product of columns": lambda jax, np, x: x.prod(0),
    "any of columns": lambda jax, np, x: (x > 1).any(0),
    "sum of squares": lambda jax, np, x: (x * x).sum(),
    "differences of columns": lambda jax, np, x: np.diff(x, axis=0),
    "differences of rows": lambda jax, np, x: np.diff(x, axis=1),
    # a matrix and its transpose
    "x + xT": lambda jax, np, x: x + x.T,
    "(2 x + xT) x": lambda jax, np, x: (x * 2 + x.T) * x,
    "symmetric of a triangle": lambda jax, np, x: np.triu(x) + np.triu(x, 1).T,
    "select by a sign": lambda jax, np, x: np.where(x > 0, x, x.T),
    "column sums of x + xT": lambda jax, np, x: (x + x.T).sum(0),
    "row sums of x xT": lambda jax, np, x: (x * x.T).sum(1),
    "row maxima of x - xT": lambda jax, np, x: (x - x.T).max(1),
    "sum of x xT": lambda jax, np, x: (x * x.T).sum(),
    "softmax of x + xT": lambda jax, np, x: jax.nn.softmax(x + x.T, 1),
    "norm of x xT": lambda jax, np, x: _mean_and_scale(np, x * x.T),
    "argmax of x xT": lambda jax, np, x: np.argmax(x * x.T, 1),
    "windows of x xT": lambda jax, np, x: jax.lax.reduce_window(x * x.T, -np.inf, jax.lax.max, (2, 2), (2, 2), "VALID"),
    "einsum ij,ji->i": lambda jax, np, x: np.einsum("ij,ji->i", x, x),
    # movement
    "roll of columns": lambda jax, np, x: np.roll(x, 7, 0),
    "roll of rows": lambda jax, np, x: np.roll(x, 7, 1),
    "reversal": lambda jax, np, x: x[::-1, ::-1],
    "turn by a quarter": lambda jax, np, x: np.rot90(x),
    "pad by one": lambda jax, np, x: np.pad(x, ((1, 1), (1, 1))),
    "each third column": lambda jax, np, x: x[:, np.arange(0, x.shape[1], 3)],
    "each third row": lambda jax, np, x: x[np.arange(0, x.shape[0], 3)],
    "stack of two": lambda jax, np, x: np.stack([x, x], -1),
    "rows of two beside each other": lambda jax, np, x: np.concatenate([x, x], 1),
    "interleaved": lambda jax, np, x: np.stack([x, x + 1], 2).reshape(x.shape[0], -1),
    "even and odd columns": lambda jax, np, x: x[:, ::2] + x[:, 1::2],
    "even and odd rows": lambda jax, np, x: x[::2] + x[1::2],
    "heads of eight": lambda jax, np, x: x.reshape(x.shape[0], -1, 8).transpose(1, 0, 2),
    "eight parts of columns": lambda jax, np, x: x.reshape(8, -1, x.shape[1]).transpose(1, 2, 0),
    "added diagonal": lambda jax, np, x: x + np.diag(x[0]),
    "one of many": lambda jax, np, x: jax.nn.one_hot(np.argmax(x, 1), x.shape[1]),
    "sums of segments": lambda jax, np, x: jax.ops.segment_sum(x, np.arange(x.shape[0]) % 16, 16),
    "histogram": lambda jax, np, x: np.zeros(64).at[(np.abs(x[0]) * 10).astype(np.int32) % 64].add(1.0),
    "to eight bits": lambda jax, np, x: np.round(x * 127).clip(-128, 127).astype(np.int8),
    "largest eight of columns": lambda jax, np, x: jax.lax.top_k(x[:256].T, 8)[0],
    # windows
    "stencil of five": lambda jax, np, x: x[1:-1, 1:-1] * 4 - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:],
    "pool of two": lambda jax, np, x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (2, 2), (2, 2), "VALID"),
    "pool of three rows": lambda jax, np, x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (3, 1), (1, 1), "SAME"),
    "average of nine": lambda jax, np, x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (3, 3), (1, 1), "SAME"),
    # products and transforms
    "outer product": lambda jax, np, x: np.outer(x[0], x[1]),
    "matrix times vector": lambda jax, np, x: x @ x[0],
    "transpose times vector": lambda jax, np, x: x.T @ x[0],
    "three columns": lambda jax, np, x: x @ x[:, :3],
    "five columns times all": lambda jax, np, x: x[:, :5].T @ x,
    "distances": lambda jax, np, x: ((x[:64, None, :64] - x[None, :, :64]) ** 2).sum(-1),
    "fft of columns": lambda jax, np, x: np.fft.fft(x, axis=0).real,
    "rfft of rows": lambda jax, np, x: np.abs(np.fft.rfft(x, axis=1)),
    "fft of both": lambda jax, np, x: np.fft.fft2(x).real,
}


def hlo_text(function: Function, side: int) -> str:
    """HLO of a function of one matrix of f32[side,side]."""
    return jax_text.hlo_text(function, [f"f32 {side},{side}"])


PROGRAMS = {f"{name} {side}": partial(hlo_text, f, side) for name, f in FUNCTIONS.items() for side in SIDES}
