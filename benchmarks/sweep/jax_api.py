"""Functions of jax.numpy, jax.nn, jax.random, jax.scipy and jax.image with everyday arguments, against XLA:CPU.

Run: .venv/bin/python -m testbed.benchmarks.sweep api [--only REGEX]; 10 minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from .jax_text import hlo_text

Function = Callable[..., Any]
"""(jax, jax.numpy, arrays …) → the result."""

Shapes = tuple[str, ...]
"""Of the arguments, as 'f32 16,128'."""

SQUARE: Shapes = ("f32 512,512",)
ROWS: Shapes = ("f32 4096,64",)
LINE: Shapes = ("f32 65536",)
PAIR: Shapes = ("f32 65536", "f32 65536")
SEED: Shapes = ("u32 2",)
COUNTS: Shapes = ("s32 65536",)


def _key(jax: Any, seed: Any) -> Any:
    return jax.random.wrap_key_data(seed)


def _positive(np: Any, x: Any) -> Any:
    """A symmetric positive definite matrix of the size of x."""
    return x @ x.T / x.shape[0] + np.eye(x.shape[0])


ARRAYS: dict[str, tuple[Function, Shapes]] = {
    "interp": (lambda jax, np, x, a, b: np.interp(x, np.sort(a), b), ("f32 65536", "f32 100", "f32 100")),
    "searchsorted": (lambda jax, np, a, x: np.searchsorted(np.sort(a), x), ("f32 1000", "f32 65536")),
    "digitize": (lambda jax, np, x: np.digitize(x, np.linspace(-2, 2, 17)), LINE),
    "bincount": (lambda jax, np, x: np.bincount(x % 100, length=100), COUNTS),
    "histogram": (lambda jax, np, x: np.histogram(x, bins=50, range=(-3, 3))[0], LINE),
    "unique": (lambda jax, np, x: np.unique(x % 1000, size=1000, fill_value=-1), COUNTS),
    "nonzero": (lambda jax, np, x: np.nonzero(x > 0, size=65536)[0], LINE),
    "percentile": (lambda jax, np, x: np.percentile(x, np.array([5.0, 50.0, 95.0]), axis=1), ("f32 256,1000",)),
    "nanmedian": (lambda jax, np, x: np.nanmedian(x, 1), ("f32 256,1000",)),
    "nanmean": (lambda jax, np, x: np.nanmean(x, 1), ROWS),
    "nanvar": (lambda jax, np, x: np.nanvar(x, 0), ROWS),
    "nancumsum": (lambda jax, np, x: np.nancumsum(x), LINE),
    "nanargmax": (lambda jax, np, x: np.nanargmax(x, 1), ROWS),
    "ptp": (lambda jax, np, x: np.ptp(x, 1), ROWS),
    "average": (lambda jax, np, x, w: np.average(x, 0, w), ("f32 4096,64", "f32 4096")),
    "cov": (lambda jax, np, x: np.cov(x, rowvar=False), ROWS),
    "corrcoef": (lambda jax, np, x: np.corrcoef(x, rowvar=False), ROWS),
    "convolve": (lambda jax, np, x, w: np.convolve(x, w, "same"), ("f32 65536", "f32 33")),
    "correlate": (lambda jax, np, x, w: np.correlate(x, w, "valid"), ("f32 16384", "f32 100")),
    "cross": (lambda jax, np, a, b: np.cross(a, b), ("f32 65536,3", "f32 65536,3")),
    "kron": (lambda jax, np, a, b: np.kron(a, b), ("f32 32,32", "f32 16,16")),
    "tensordot": (lambda jax, np, a, b: np.tensordot(a, b, ([1, 2], [0, 1])), ("f32 64,16,16", "f32 16,16,128")),
    "einsum bij,bjk->bik": (lambda jax, np, a, b: np.einsum("bij,bjk->bik", a, b), ("f32 32,64,64", "f32 32,64,64")),
    "einsum bhqd,bkhd->bhqk": (
        lambda jax, np, a, b: np.einsum("bhqd,bkhd->bhqk", a, b),
        ("f32 2,8,128,32", "f32 2,128,8,32"),
    ),
    "einsum i,j,k->ijk": (lambda jax, np, a, b, c: np.einsum("i,j,k->ijk", a, b, c), ("f32 64", "f32 64", "f32 64")),
    "einsum ijk,ijk->i": (lambda jax, np, a, b: np.einsum("ijk,ijk->i", a, b), ("f32 64,64,64", "f32 64,64,64")),
    "einsum ii->": (lambda jax, np, a: np.einsum("ii->", a), SQUARE),
    "trace of batch": (lambda jax, np, a: np.trace(a, axis1=1, axis2=2), ("f32 1024,16,16",)),
    "trapezoid": (lambda jax, np, x: np.trapezoid(x, dx=0.1), ROWS),
    "gradient": (lambda jax, np, x: np.gradient(x), SQUARE),
    "unwrap": (lambda jax, np, x: np.unwrap(x), ROWS),
    "polyval": (lambda jax, np, c, x: np.polyval(c, x), ("f32 8", "f32 65536")),
    "vander": (lambda jax, np, x: np.vander(x, 8), LINE),
    "meshgrid": (lambda jax, np, a, b: sum(np.meshgrid(a, b)), ("f32 512", "f32 512")),
    "tile": (lambda jax, np, x: np.tile(x, (4, 4)), ("f32 128,100",)),
    "repeat": (lambda jax, np, x: np.repeat(x, 3, 1), ROWS),
    "repeat by counts": (
        lambda jax, np, x, n: np.repeat(x, n % 3, total_repeat_length=8192),
        ("f32 8192", "s32 8192"),
    ),
    "tril": (lambda jax, np, x: np.tril(x), SQUARE),
    "block": (lambda jax, np, x: np.block([[x, -x], [2 * x, x]]), ("f32 256,200",)),
    "pad reflect": (lambda jax, np, x: np.pad(x, 8, "reflect"), SQUARE),
    "pad wrap": (lambda jax, np, x: np.pad(x, 8, "wrap"), SQUARE),
    "pad edge": (lambda jax, np, x: np.pad(x, 8, "edge"), SQUARE),
    "flip": (lambda jax, np, x: np.flip(x), SQUARE),
    "rollaxis": (lambda jax, np, x: np.moveaxis(x, 0, -1) + 1, ("f32 3,256,256",)),
    "channels first": (lambda jax, np, x: np.moveaxis(x, -1, 0) + 1, ("f32 256,256,3",)),
    "lexsort": (lambda jax, np, a, b: np.lexsort((a, b % 10)), ("f32 16384", "s32 16384")),
    "argsort of rows": (lambda jax, np, x: np.argsort(x, 1), ROWS),
    "partition": (lambda jax, np, x: np.partition(x, 10), LINE),
    "argpartition": (lambda jax, np, x: np.argpartition(x, 10), ("f32 16384",)),
    "sort bf16": (lambda jax, np, x: np.sort(x), ("bf16 256,512",)),
    "sort f16": (lambda jax, np, x: np.sort(x), ("f16 65536",)),
    "top_k of rows": (lambda jax, np, x: jax.lax.top_k(x, 5), ("f32 1024,1000",)),
    "argmin": (lambda jax, np, x: np.argmin(x), LINE),
    "count_nonzero": (lambda jax, np, x: np.count_nonzero(x > 0, axis=1), ROWS),
    "all of rows": (lambda jax, np, x: (x > -3).all(1), ROWS),
    "isclose": (lambda jax, np, a, b: np.isclose(a, b), PAIR),
    "allclose": (lambda jax, np, a, b: np.allclose(a, b), PAIR),
    "take": (lambda jax, np, x, at: np.take(x, at % 4096, 0), ("f32 4096,64", "s32 8192")),
    "take of columns": (lambda jax, np, x, at: np.take(x, at % 64, 1), ("f32 4096,64", "s32 32")),
    "take_along_axis": (lambda jax, np, x, at: np.take_along_axis(x, at % 64, 1), ("f32 4096,64", "s32 4096,8")),
    "at add": (lambda jax, np, x, at, u: x.at[at % 4096].add(u), ("f32 4096,64", "s32 8192", "f32 8192,64")),
    "at set": (lambda jax, np, x, at, u: x.at[at % 65536].set(u), ("f32 65536", "s32 8192", "f32 8192")),
    "at max": (lambda jax, np, x, at, u: x.at[at % 4096].max(u), ("f32 4096", "s32 65536", "f32 65536")),
    "at of pairs": (lambda jax, np, x, i, j: x[i % 512, j % 512], ("f32 512,512", "s32 65536", "s32 65536")),
    "segment_max": (lambda jax, np, x, s: jax.ops.segment_max(x, s % 100, 100), ("f32 65536", "s32 65536")),
    "choose": (lambda jax, np, i, x: np.choose(i % 4, [x, x + 1, x * 2, -x], mode="clip"), ("s32 65536", "f32 65536")),
    "select": (lambda jax, np, x: np.select([x < -1, x < 0, x < 1], [x, x * x, -x], 0.0), LINE),
    "piecewise": (lambda jax, np, x: np.piecewise(x, [x < 0, x >= 1], [lambda v: -v, lambda v: v * v, 0.5]), LINE),
    "floor_divide": (lambda jax, np, a, b: a // b, PAIR),
    "floor_divide s32": (lambda jax, np, a, b: a // (b % 100 + 1), ("s32 65536", "s32 65536")),
    "mod": (lambda jax, np, a: a % 1.5, LINE),
    "mod s32": (lambda jax, np, a: a % 7, COUNTS),
    "divmod s32": (lambda jax, np, a: np.divmod(a, 10), COUNTS),
    "gcd": (lambda jax, np, a, b: np.gcd(a, b), ("s32 4096", "s32 4096")),
    "round": (lambda jax, np, x: np.round(x, 2), LINE),
    "modf": (lambda jax, np, x: np.modf(x), LINE),
    "frexp": (lambda jax, np, x: np.frexp(x), LINE),
    "ldexp": (lambda jax, np, x, n: np.ldexp(x, n % 16), ("f32 65536", "s32 65536")),
    "hypot": (lambda jax, np, a, b: np.hypot(a, b), PAIR),
    "logaddexp": (lambda jax, np, a, b: np.logaddexp(a, b), PAIR),
    "sinc": (lambda jax, np, x: np.sinc(x), LINE),
    "heaviside": (lambda jax, np, x: np.heaviside(x, 0.5), LINE),
    "float_power": (lambda jax, np, x: np.abs(x) ** 1.7, LINE),
    "integer power": (lambda jax, np, x: x**5, LINE),
    "power s32": (lambda jax, np, x: (x % 10) ** 3, COUNTS),
    "angle": (lambda jax, np, a, b: np.angle(a + 1j * b), PAIR),
    "complex product": (lambda jax, np, a, b: ((a + 1j * b) * (b - 1j * a)).real, PAIR),
    "packbits": (lambda jax, np, x: np.packbits(x > 0), LINE),
    "bitwise_count": (lambda jax, np, x: np.bitwise_count(x), COUNTS),
    "nan_to_num": (lambda jax, np, x: np.nan_to_num(x / (x > 0)), LINE),
    "apply_along_axis": (lambda jax, np, x: np.apply_along_axis(lambda r: r - r.mean(), 0, x), ROWS),
    "cumsum s32": (lambda jax, np, x: np.cumsum(x), COUNTS),
    "cumsum of a mask": (lambda jax, np, x: np.cumsum(x > 0), LINE),
    "cummax": (lambda jax, np, x: jax.lax.cummax(x), LINE),
    "cumlogsumexp": (lambda jax, np, x: jax.lax.cumlogsumexp(x, 1), ROWS),
    "ediff1d": (lambda jax, np, x: np.ediff1d(x), LINE),
    "union1d": (lambda jax, np, a, b: np.union1d(a, b, size=8192), ("s32 4096", "s32 4096")),
    "isin": (lambda jax, np, a, b: np.isin(a, b), ("s32 16384", "s32 64")),
    "tri": (lambda jax, np, x: x * np.tri(512), SQUARE),
    "diagonal": (lambda jax, np, x: np.diagonal(x) * 2, SQUARE),
    "diag": (lambda jax, np, x: np.diag(x), ("f32 1000",)),
    "outer difference": (lambda jax, np, x: x[:, None] - x, ("f32 1000",)),
    "pairwise distances": (lambda jax, np, x: np.linalg.norm(x[:, None] - x, axis=-1), ("f32 256,3",)),
    "polyfit": (lambda jax, np, x, y: np.polyfit(x, y, 3), ("f32 1000", "f32 1000")),
    "roots of quadratics": (lambda jax, np, a, b: (-b + np.sqrt(np.abs(b * b - 4 * a))) / (2 * a), PAIR),
}

NETWORKS: dict[str, tuple[Function, Shapes]] = {
    **{
        f"nn.{name}": (lambda jax, np, x, name=name: getattr(jax.nn, name)(x), LINE)
        for name in (
            *("relu", "relu6", "gelu", "silu", "elu", "selu", "celu", "softplus", "log_sigmoid", "sigmoid", "mish"),
            *("hard_tanh", "hard_swish", "soft_sign", "squareplus", "leaky_relu", "glu", "log1mexp"),
        )
    },
    **{
        f"nn.{name} gradient": (
            lambda jax, np, x, name=name: jax.grad(lambda v: getattr(jax.nn, name)(v).sum())(x),
            LINE,
        )
        for name in ("gelu", "silu", "elu", "softplus", "log_sigmoid", "sigmoid", "mish", "squareplus", "relu6")
    },
    **{
        f"nn.{name} {shape}": (lambda jax, np, x, name=name: getattr(jax.nn, name)(x), (shape,))
        for name in ("softmax", "log_softmax", "standardize", "logsumexp")
        for shape in ("f32 4096,10", "f32 1024,100", "f32 64,1000", "f32 16,32000", "bf16 1024,128", "f32 8,12,128,128")
    },
    "softmax gradient": (
        lambda jax, np, x: jax.grad(lambda v: (jax.nn.softmax(v) ** 2).sum())(x),
        ("f32 1024,100",),
    ),
    "layer norm gradient": (
        lambda jax, np, x: jax.grad(lambda v: (jax.nn.standardize(v) ** 3).sum())(x),
        ("f32 1024,256",),
    ),
    "rms norm": (lambda jax, np, x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6), ("f32 512,1024",)),
    "group norm": (
        lambda jax, np, x: jax.nn.standardize(x.reshape(8, 1024, 8, 8), (1, 3)).reshape(x.shape),
        ("f32 8,32,32,64",),
    ),
    "instance norm NCHW": (lambda jax, np, x: jax.nn.standardize(x, (2, 3)), ("f32 8,64,32,32",)),
    "batch norm NHWC": (lambda jax, np, x: jax.nn.standardize(x, (0, 1, 2)), ("f32 8,32,32,64",)),
    "batch norm NCHW": (lambda jax, np, x: jax.nn.standardize(x, (0, 2, 3)), ("f32 8,64,32,32",)),
    "attention": (lambda jax, np, q, k, v: jax.nn.dot_product_attention(q, k, v), ("f32 2,128,8,64",) * 3),
    "attention causal": (
        lambda jax, np, q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        ("f32 2,128,8,64",) * 3,
    ),
    "one_hot": (lambda jax, np, x: jax.nn.one_hot(x % 100, 100), ("s32 4096",)),
    "dropout": (
        lambda jax, np, x, seed: np.where(jax.random.bernoulli(_key(jax, seed), 0.9, x.shape), x / 0.9, 0),
        ("f32 256,1024", "u32 2"),
    ),
    "dense relu": (lambda jax, np, x, w, b: jax.nn.relu(x @ w + b), ("f32 128,784", "f32 784,256", "f32 256")),
    "embedding bag": (lambda jax, np, t, i: t[i % 10000].mean(1), ("f32 10000,64", "s32 128,20")),
    "avg pool NHWC": (
        lambda jax, np, x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4,
        ("f32 8,32,32,64",),
    ),
    "max pool NCHW": (
        lambda jax, np, x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME"),
        ("f32 8,32,32,32",),
    ),
    "max pool gradient": (
        lambda jax, np, x: jax.grad(
            lambda v: (jax.lax.reduce_window(v, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum()
        )(x),
        ("f32 8,32,32,32",),
    ),
    "mean of images": (lambda jax, np, x: x.mean((1, 2)), ("f32 32,14,14,256",)),
    "depth to space": (
        lambda jax, np, x: x.reshape(4, 32, 32, 2, 2, 16).transpose(0, 1, 3, 2, 4, 5).reshape(4, 64, 64, 16),
        ("f32 4,32,32,64",),
    ),
    "patches": (
        lambda jax, np, x: x.reshape(4, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(4, 196, 768),
        ("f32 4,224,224,3",),
    ),
    "conv 1d": (
        lambda jax, np, x, w: jax.lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        ("f32 8,1024,32", "f32 5,32,64"),
    ),
    "conv transpose": (
        lambda jax, np, x, w: jax.lax.conv_transpose(x, w, (2, 2), "SAME"),
        ("f32 4,16,16,64", "f32 3,3,64,32"),
    ),
    "conv dilated": (
        lambda jax, np, x, w: jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", rhs_dilation=(2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        ("f32 2,32,32,32", "f32 3,3,32,32"),
    ),
    "conv NCHW": (
        lambda jax, np, x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        ("f32 4,32,28,28", "f32 64,32,3,3"),
    ),
    "conv 3d": (
        lambda jax, np, x, w: jax.lax.conv_general_dilated(
            x, w, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
        ),
        ("f32 1,16,16,16,8", "f32 3,3,3,8,16"),
    ),
    "conv gradients": (
        lambda jax, np, x, w: jax.grad(
            lambda a, b: (
                jax.lax.conv_general_dilated(a, b, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2
            ).sum(),
            (0, 1),
        )(x, w),
        ("f32 4,16,16,16", "f32 3,3,16,32"),
    ),
    "image resize bilinear": (lambda jax, np, x: jax.image.resize(x, (224, 224, 3), "bilinear"), ("f32 180,200,3",)),
    "image resize cubic": (lambda jax, np, x: jax.image.resize(x, (112, 112, 3), "cubic"), ("f32 180,200,3",)),
    "image resize nearest": (lambda jax, np, x: jax.image.resize(x, (4, 64, 64, 16), "nearest"), ("f32 4,32,32,16",)),
    "adam": (
        lambda jax, np, w, g, m, v: (
            w - 0.01 * (0.9 * m + 0.1 * g) / (np.sqrt(0.99 * v + 0.01 * g * g) + 1e-8),
            0.9 * m + 0.1 * g,
            0.99 * v + 0.01 * g * g,
        ),
        ("f32 256,1024",) * 4,
    ),
    "clip by norm": (lambda jax, np, g: g * np.minimum(1, 1 / np.sqrt((g * g).sum())), ("f32 512,512",)),
}

SPECIAL: dict[str, tuple[Function, Shapes]] = {
    **{
        f"special.{name}": (lambda jax, np, x, name=name: getattr(jax.scipy.special, name)(np.abs(x)), LINE)
        for name in (
            *("digamma", "gammaln", "gamma", "erfinv", "ndtr", "log_ndtr", "i0", "i0e", "i1", "i1e", "entr", "expit"),
            *("factorial", "spence", "erfc", "exp1"),
        )
    },
    "special.ndtri": (lambda jax, np, x: jax.scipy.special.ndtri(jax.nn.sigmoid(x)), LINE),
    "special.logit": (lambda jax, np, x: jax.scipy.special.logit(jax.nn.sigmoid(x)), LINE),
    "special.xlogy": (lambda jax, np, a, b: jax.scipy.special.xlogy(a, np.abs(b)), PAIR),
    "special.xlog1py": (lambda jax, np, a, b: jax.scipy.special.xlog1py(a, np.abs(b)), PAIR),
    "special.betaln": (lambda jax, np, a, b: jax.scipy.special.betaln(np.abs(a) + 1, np.abs(b) + 1), PAIR),
    "special.kl_div": (lambda jax, np, a, b: jax.scipy.special.kl_div(np.abs(a), np.abs(b)), PAIR),
    "special.zeta": (lambda jax, np, x: jax.scipy.special.zeta(np.abs(x) + 1.5, 1.0), ("f32 4096",)),
    "special.polygamma": (lambda jax, np, x: jax.scipy.special.polygamma(1, np.abs(x) + 1), ("f32 4096",)),
    "special.gammainc": (lambda jax, np, x: jax.scipy.special.gammainc(2.5, np.abs(x)), ("f32 4096",)),
    "special.gammaincc": (lambda jax, np, x: jax.scipy.special.gammaincc(2.5, np.abs(x)), ("f32 4096",)),
    "special.betainc": (lambda jax, np, x: jax.scipy.special.betainc(2.0, 3.0, jax.nn.sigmoid(x)), ("f32 4096",)),
    "special.sph_harm_y": (
        lambda jax, np, x: jax.scipy.special.sph_harm_y(np.array([1]), np.array([2]), x, x, n_max=2),
        ("f32 1000",),
    ),
    "special.logsumexp": (
        lambda jax, np, x, w: jax.scipy.special.logsumexp(x, 1, b=w),
        ("f32 1024,128", "f32 1024,128"),
    ),
    "stats.norm.logpdf": (lambda jax, np, x: jax.scipy.stats.norm.logpdf(x, 0.5, 2.0), LINE),
    "stats.norm.cdf": (lambda jax, np, x: jax.scipy.stats.norm.cdf(x), LINE),
    "stats.t.logpdf": (lambda jax, np, x: jax.scipy.stats.t.logpdf(x, 4.0), LINE),
    "stats.beta.logpdf": (lambda jax, np, x: jax.scipy.stats.beta.logpdf(jax.nn.sigmoid(x), 2.0, 3.0), LINE),
    "stats.poisson.logpmf": (lambda jax, np, x: jax.scipy.stats.poisson.logpmf(x % 20, 4.0), COUNTS),
    "stats.rankdata": (lambda jax, np, x: jax.scipy.stats.rankdata(x), ("f32 4096",)),
    "stats.multivariate_normal": (
        lambda jax, np, x: jax.scipy.stats.multivariate_normal.logpdf(x, np.zeros(8), 2 * np.eye(8)),
        ("f32 4096,8",),
    ),
    "ndimage.map_coordinates": (
        lambda jax, np, x, y: jax.scipy.ndimage.map_coordinates(x, [y * 50 + 128, y.T * 50 + 128], 1),
        ("f32 256,256", "f32 256,256"),
    ),
    "signal.convolve2d": (
        lambda jax, np, x, w: jax.scipy.signal.convolve2d(x, w, "same"),
        ("f32 256,256", "f32 5,5"),
    ),
    "signal.fftconvolve": (
        lambda jax, np, x, w: jax.scipy.signal.fftconvolve(x, w, "same"),
        ("f32 16384", "f32 512"),
    ),
    "fft.fft": (lambda jax, np, x: np.abs(np.fft.fft(x)), ("f32 64,1024",)),
    "fft.irfft": (lambda jax, np, x: np.fft.irfft(np.fft.rfft(x) * 2), ("f32 64,1000",)),
    "fft.dct": (lambda jax, np, x: jax.scipy.fft.dct(x), ("f32 64,256",)),
}

SAMPLERS: dict[str, tuple[Function, Shapes]] = {
    f"random.{name}": (lambda jax, np, seed, draw=draw: draw(jax.random, _key(jax, seed)), SEED)
    for name, draw in {
        "bits": lambda r, k: r.bits(k, (65536,)),
        "uniform": lambda r, k: r.uniform(k, (65536,)),
        "normal": lambda r, k: r.normal(k, (65536,)),
        "normal bf16": lambda r, k: r.normal(k, (65536,), "bfloat16"),
        "randint": lambda r, k: r.randint(k, (65536,), 0, 100),
        "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (65536,)),
        "truncated_normal": lambda r, k: r.truncated_normal(k, -2, 2, (65536,)),
        "gumbel": lambda r, k: r.gumbel(k, (65536,)),
        "exponential": lambda r, k: r.exponential(k, (65536,)),
        "laplace": lambda r, k: r.laplace(k, (65536,)),
        "cauchy": lambda r, k: r.cauchy(k, (65536,)),
        "logistic": lambda r, k: r.logistic(k, (65536,)),
        "rademacher": lambda r, k: r.rademacher(k, (65536,)),
        "permutation": lambda r, k: r.permutation(k, 16384),
        "choice": lambda r, k: r.choice(k, 1000, (4096,)),
        "categorical": lambda r, k: r.categorical(k, r.normal(k, (256, 1000))),
        "gamma": lambda r, k: r.gamma(k, 2.0, (1024,)),
        "beta": lambda r, k: r.beta(k, 2.0, 3.0, (512,)),
        "poisson": lambda r, k: r.poisson(k, 4.0, (4096,)),
        "dirichlet": lambda r, k: r.dirichlet(k, numpy.arange(1, 4, dtype=numpy.float32), (256,)),
        "split": lambda r, k: r.key_data(r.split(k, 1000)),
        "multivariate_normal": lambda r, k: r.multivariate_normal(k, numpy.zeros(2), numpy.eye(2) + 0.2, (4096,)),
        "orthogonal": lambda r, k: r.orthogonal(k, 32),
        "ball": lambda r, k: r.ball(k, 3, shape=(1024,)),
    }.items()
}

MATRICES: dict[str, tuple[Function, Shapes]] = {
    "cholesky": (lambda jax, np, x: np.linalg.cholesky(_positive(np, x)), ("f32 128,128",)),
    "cholesky of batch": (
        lambda jax, np, x: np.linalg.cholesky(x @ x.mT + np.eye(8)),
        ("f32 256,8,8",),
    ),
    "solve": (lambda jax, np, x, b: np.linalg.solve(x, b), ("f32 128,128", "f32 128,4")),
    "inv": (lambda jax, np, x: np.linalg.inv(x), ("f32 128,128",)),
    "inv of batch": (lambda jax, np, x: np.linalg.inv(x), ("f32 1024,4,4",)),
    "det": (lambda jax, np, x: np.linalg.det(x), ("f32 1024,3,3",)),
    "slogdet": (lambda jax, np, x: np.linalg.slogdet(x)[1], ("f32 128,128",)),
    "qr": (lambda jax, np, x: np.linalg.qr(x)[1], ("f32 128,64",)),
    "svd": (lambda jax, np, x: np.linalg.svd(x, full_matrices=False)[1], ("f32 64,32",)),
    "eigh": (lambda jax, np, x: np.linalg.eigh(x + x.T)[0], ("f32 64,64",)),
    "lstsq": (lambda jax, np, x, y: np.linalg.lstsq(x, y)[0], ("f32 256,16", "f32 256")),
    "pinv": (lambda jax, np, x: np.linalg.pinv(x), ("f32 64,32",)),
    "matrix_power": (lambda jax, np, x: np.linalg.matrix_power(x / 16, 5), ("f32 256,256",)),
    "norm of rows": (lambda jax, np, x: np.linalg.norm(x, axis=1), ROWS),
    "norm 1": (lambda jax, np, x: np.linalg.norm(x, 1), SQUARE),
    "triangular solve": (
        lambda jax, np, x, b: jax.scipy.linalg.solve_triangular(np.tril(x) + 8 * np.eye(128), b, lower=True),
        ("f32 128,128", "f32 128,128"),
    ),
    "cho_solve": (
        lambda jax, np, x, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(_positive(np, x)), b),
        ("f32 64,64", "f32 64"),
    ),
    "expm": (lambda jax, np, x: jax.scipy.linalg.expm(x / 32), ("f32 32,32",)),
    "multi_dot": (lambda jax, np, a, b, c: np.linalg.multi_dot([a, b, c]), ("f32 64,512", "f32 512,64", "f32 64,256")),
    "bfgs step": (
        lambda jax, np, h, s, y: h + np.outer(y, y) / (y @ s) - np.outer(h @ s, h @ s) / (s @ h @ s),
        ("f32 256,256", "f32 256", "f32 256"),
    ),
    "conjugate gradients": (
        lambda jax, np, x, b: jax.scipy.sparse.linalg.cg(_positive(np, x), b, maxiter=10)[0],
        ("f32 128,128", "f32 128"),
    ),
    "tridiagonal": (
        lambda jax, np, a, b, c, d: jax.lax.linalg.tridiagonal_solve(a, b + 4, c, d),
        ("f32 512", "f32 512", "f32 512", "f32 512,1"),
    ),
}

PROGRAMS = {
    name: partial(hlo_text, f, shapes)
    for table in (ARRAYS, NETWORKS, SPECIAL, SAMPLERS, MATRICES)
    for name, (f, shapes) in table.items()
}
