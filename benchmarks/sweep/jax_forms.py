"""Small programs as users of JAX write them, in all the element types that they use, against XLA:CPU.

Run: .venv/bin/python -m testbed.benchmarks.sweep forms [--only REGEX]; 10 minutes.
Names begin with the element type: `--only ^bf16`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from . import jax_form_layers, jax_form_moves
from .jax_form_layers import Forms
from .jax_text import hlo_text

FLOATS = ("f32", "bf16", "f16", "f64")
INTEGERS = ("u8", "s8", "s16", "u16", "s32", "u32", "s64", "u64")
LIMIT = 256
"""Of integers in inputs: places in tables are taken modulo smaller numbers."""


def _like(np: Any, number: int, x: Any) -> Any:
    return np.asarray(number, x.dtype)


def _rotated(jax: Any, np: Any, x: Any) -> Any:
    return jax.lax.shift_left(x, _like(np, 3, x)) | jax.lax.shift_right_logical(x, _like(np, 5, x))


def _hash(jax: Any, np: Any, x: Any) -> Any:
    y = (x ^ (x >> 3)) * _like(np, 27, x)
    return (y ^ (y >> 4)) * _like(np, 45, x)


def _product(jax: Any, np: Any, x: Any, y: Any) -> Any:
    return jax.lax.dot(x, y, preferred_element_type=np.int32) if x.dtype.itemsize < 8 else x @ y


LINE = "T 262144"
OF_INTEGERS: Forms = {
    "population count": (lambda jax, np, x: jax.lax.population_count(x), (LINE,)),
    "leading zeros": (lambda jax, np, x: jax.lax.clz(x), (LINE,)),
    "parity": (lambda jax, np, x: jax.lax.population_count(x) & _like(np, 1, x), (LINE,)),
    "Hamming distances": (
        lambda jax, np, x, y: jax.lax.population_count(x[:, None] ^ y[None]).astype(np.int32).sum(-1),
        ("T 128,16", "T 128,16"),
    ),
    "rotated bits": (_rotated, (LINE,)),
    "hash": (_hash, (LINE,)),
    "average": (lambda jax, np, x, y: (x & y) + ((x ^ y) >> 1), (LINE, LINE)),
    "clip": (lambda jax, np, x: np.clip(x, 3, 100), (LINE,)),
    "absolute difference": (lambda jax, np, x, y: np.where(x > y, x - y, y - x), (LINE, LINE)),
    "halves of bytes": (lambda jax, np, x: np.stack([x & 15, x >> 4], -1).reshape(-1), ("T 131072",)),
    "mean of rows": (lambda jax, np, x: x.astype(np.float32).mean(1), ("T 512,512",)),
    "cumsum of rows": (lambda jax, np, x: np.cumsum(x, 1), ("T 256,512",)),
    "maximum of rows": (lambda jax, np, x: x.max(1), ("T 512,512",)),
    "argmax of rows": (lambda jax, np, x: x.argmax(1), ("T 512,512",)),
    "sum of columns": (lambda jax, np, x: x.sum(0), ("T 512,512",)),
    "sort of rows": (lambda jax, np, x: np.sort(x, 1), ("T 256,64",)),
    "order of rows": (lambda jax, np, x: np.argsort(x, 1), ("T 256,64",)),
    "table of bytes": (lambda jax, np, x, i: x[i.astype(np.int32)], ("T 256", "u8 65536")),
    "normalised image": (
        lambda jax, np, x, m: (x.astype(np.float32) / 255 - m) / 0.25,
        ("T 128,128,3", "f32 3"),
    ),
    "product": (_product, ("T 64,256", "T 256,64")),
}


def _quaternions(jax: Any, np: Any, x: Any, y: Any) -> Any:
    (a, b, c, d), (e, f, g, h) = x.T, y.T
    parts = a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g
    return np.stack([*parts, a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e], 1)


def _homogeneous(jax: Any, np: Any, m: Any, x: Any) -> Any:
    y = np.concatenate([x, np.ones_like(x[:, :1])], 1) @ m.T
    return y[:, :3] / np.sqrt(1 + y[:, 3:] ** 2)


def _viterbi(jax: Any, np: Any, t: Any, e: Any) -> Any:
    def step(s: Any, e: Any) -> Any:
        paths = s[:, None] + t
        return paths.max(0) + e, paths.argmax(0)

    return jax.lax.scan(step, e[0], e[1:])


def _alphas(jax: Any, np: Any, e: Any) -> Any:
    def step(a: Any, e: Any) -> Any:
        a = np.logaddexp(a, np.concatenate([a[:1], a[:-1]])) + e
        return a, a

    return jax.lax.scan(step, e[0], e[1:])


def _life(jax: Any, np: Any, x: Any) -> Any:
    places = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    n = sum(np.roll(x, place, (0, 1)) for place in places)
    return ((n == 3) | ((n == 2) & (x > 0))).astype(np.int32)


MATRIX, LINE_F32 = "f32 512,512", "f32 262144"
OTHERS: Forms = {
    "bits apart": (lambda jax, np, x: np.unpackbits(x), ("u8 32768",)),
    "grey of colours": (
        lambda jax, np, x: (x.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)).astype(np.uint8),
        ("u8 256,256,3",),
    ),
    "s4 to f32": (lambda jax, np, x: x.astype(np.float32), ("s4 512,512",)),
    "u4 to s8": (lambda jax, np, x: x.astype(np.int8), ("u4 512,512",)),
    "s8 to s4": (lambda jax, np, x: x.astype("int4"), ("s8 512,512",)),
    "product of f8e4m3fn": (
        lambda jax, np, x, y: jax.lax.dot(x, y, preferred_element_type=np.float32),
        ("f8e4m3fn 64,256", "f8e4m3fn 256,64"),
    ),
    "f8e4m3fn to f8e5m2": (lambda jax, np, x: x.astype(np.float8_e5m2), ("f8e4m3fn 512,512",)),
    "c64 product": (
        lambda jax, np, a, b: (a[:, None] + 1j * a[:, :1].T) @ (b + 1j * b),
        ("f32 64,64", "f32 64,64"),
    ),
    "c64 matrix times vector": (
        lambda jax, np, a, b: jax.lax.complex(a, a) @ jax.lax.complex(b, b),
        ("f32 256,256", "f32 256"),
    ),
    "c64 batch of products 2": (
        lambda jax, np, a, b: jax.lax.complex(a, a) @ jax.lax.complex(b, b),
        ("f32 8192,2,2", "f32 8192,2,2"),
    ),
    "c64 square of magnitudes": (lambda jax, np, a, b: np.abs(jax.lax.complex(a, b)) ** 2, (LINE_F32, LINE_F32)),
    "c64 exp of i x": (lambda jax, np, a: np.exp(1j * a), (LINE_F32,)),
    "c64 sums of rows": (lambda jax, np, a, b: jax.lax.complex(a, b).sum(1), (MATRIX, MATRIX)),
    "c64 cumprod of rows": (
        lambda jax, np, a, b: np.cumprod(jax.lax.complex(a, b), 1),
        ("f32 256,128", "f32 256,128"),
    ),
    "quaternions": (_quaternions, ("f32 16384,4", "f32 16384,4")),
    "points turned": (lambda jax, np, r, x: np.einsum("nij,nj->ni", r, x), ("f32 16384,3,3", "f32 16384,3")),
    "points moved": (lambda jax, np, x, r, t: x @ r.T + t, ("f32 65536,3", "f32 3,3", "f32 3")),
    "points projected": (_homogeneous, ("f32 4,4", "f32 16384,3")),
    "bilinear form": (lambda jax, np, x, a: np.einsum("ni,ij,nj->n", x, a, x), ("f32 4096,16", "f32 16,16")),
    "logaddexp of neighbours": (lambda jax, np, x: np.logaddexp(x[:, :-1], x[:, 1:]), ("f32 512,513",)),
    "Viterbi": (_viterbi, ("f32 32,32", "f32 64,32")),
    "alphas of CTC": (_alphas, ("f32 128,64",)),
    "recursion": (
        lambda jax, np, e: jax.lax.fori_loop(0, 64, lambda i, a: a.at[i].set(a[i - 1] * 0.9 + e[i]), e),
        ("f32 64",),
    ),
    "game of life": (_life, ("s32 256,256",)),
    "numbers times": (lambda jax, np, x: np.arange(65536, dtype=np.float32) * x, ("f32 ",)),
    "linspace": (lambda jax, np, x: np.linspace(0, x, 65536), ("f32 ",)),
    "identity times": (lambda jax, np, x: np.eye(512) * x, ("f32 ",)),
    "small triangle solved": (
        lambda jax, np, a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
        ("f32 16,16", "f32 16,4"),
    ),
    "inverses 3x3": (lambda jax, np, a: np.linalg.inv(a), ("f32 1024,3,3",)),
}


def _of(dtype: str, forms: Forms) -> Forms:
    """The forms with a dtype for `T`; their names begin with it."""
    return {
        f"{dtype} {name}": (f, tuple(dtype + shape[1:] if shape[0] == "T" else shape for shape in shapes))
        for name, (f, shapes) in forms.items()
    }


FORMS: Forms = dict(OTHERS)
for _dtype in FLOATS:
    FORMS |= _of(_dtype, jax_form_layers.FORMS) | _of(_dtype, jax_form_moves.FORMS)
for _dtype in INTEGERS:
    FORMS |= _of(_dtype, OF_INTEGERS)

PROGRAMS = {name: partial(hlo_text, f, shapes) for name, (f, shapes) in FORMS.items()}
