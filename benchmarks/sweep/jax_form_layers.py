"""Programs of the suite `forms`: products, convolutions, normalisations and loops of models, by element type.

`T` in a shape stands for each of the element types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Function = Callable[..., Any]
"""(jax, jax.numpy, arrays …) → the result."""

Forms = dict[str, tuple[Function, tuple[str, ...]]]
"""By name: the function and the shapes of its arrays."""

FORMS: Forms = {}

# --- products

for n in (3, 4, 6, 8):
    pair = (f"T 8192,{n},{n}", f"T 8192,{n},{n}")
    FORMS[f"batch of products {n}"] = (lambda jax, np, a, b: a @ b, pair)
    FORMS[f"batch of products with a transpose {n}"] = (lambda jax, np, a, b: a @ b.mT, pair)
    FORMS[f"batch of matrix times vector {n}"] = (
        lambda jax, np, a, b: np.einsum("bij,bj->bi", a, b),
        (pair[0], f"T 8192,{n}"),
    )
for k in (33, 127, 255, 1001):
    FORMS[f"transpose times matrix {k}"] = (lambda jax, np, a, b: a.T @ b, (f"T {k},128", f"T {k},100"))
    FORMS[f"matrix times transpose {k}"] = (lambda jax, np, a, b: a @ b.T, (f"T 128,{k}", f"T 100,{k}"))
    FORMS[f"transpose times transpose {k}"] = (lambda jax, np, a, b: a.T @ b.T, (f"T {k},128", f"T 100,{k}"))
for rows in (1, 2, 3, 8):
    FORMS[f"{rows} rows times weights"] = (lambda jax, np, a, b: a @ b, (f"T {rows},768", "T 768,2304"))
    FORMS[f"{rows} rows times transposed weights"] = (lambda jax, np, a, b: a @ b.T, (f"T {rows},768", "T 2304,768"))

# --- convolutions

NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")


def _convolution(
    jax: Any, np: Any, x: Any, w: Any, strides: tuple[int, ...] = (1, 1), order: Any = NHWC, **further: Any
) -> Any:
    return jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=order, **further)


def _convolve(**further: Any) -> Function:
    return partial(_convolution, **further)


def _gradient_of_weights(jax: Any, np: Any, x: Any, w: Any) -> Any:
    return jax.grad(lambda w: _convolution(jax, np, x, w).astype(np.float32).sum())(w)


def _gradient_of_image(jax: Any, np: Any, x: Any, w: Any) -> Any:
    return jax.grad(lambda x: (_convolution(jax, np, x, w, (2, 2)).astype(np.float32) ** 2).sum())(x)


TWO = (2, 2)
FORMS |= {
    "convolution 1x1": (_convolve(), ("T 1,28,28,256", "T 1,1,256,64")),
    "convolution 1x1 to more channels": (_convolve(), ("T 1,28,28,24", "T 1,1,24,144")),
    "convolution 1x1 NCHW": (_convolve(order=NCHW), ("T 1,64,28,28", "T 128,64,1,1")),
    "convolution of 3 channels": (_convolve(strides=TWO), ("T 1,112,112,3", "T 3,3,3,32")),
    "convolution 7x7 of 3 channels NCHW": (_convolve(strides=TWO, order=NCHW), ("T 1,3,112,112", "T 64,3,7,7")),
    "convolution to 3 channels": (_convolve(), ("T 1,64,64,32", "T 3,3,32,3")),
    "depthwise stride 2": (_convolve(strides=TWO, feature_group_count=96), ("T 1,56,56,96", "T 3,3,1,96")),
    "depthwise 5x5": (_convolve(feature_group_count=120), ("T 1,28,28,120", "T 5,5,1,120")),
    "depthwise 7x7": (_convolve(feature_group_count=96), ("T 1,28,28,96", "T 7,7,1,96")),
    "depthwise multiplier 2": (_convolve(feature_group_count=32), ("T 1,28,28,32", "T 3,3,1,64")),
    "depthwise of 3 channels": (_convolve(feature_group_count=3), ("T 1,128,128,3", "T 5,5,1,3")),
    "32 groups": (_convolve(feature_group_count=32), ("T 1,14,14,128", "T 3,3,4,128")),
    "transposed convolution": (
        lambda jax, np, x, w: jax.lax.conv_transpose(x, w, TWO, "SAME"),
        ("T 1,16,16,64", "T 4,4,64,32"),
    ),
    "convolution in one dimension, dilated": (
        _convolve(strides=(1,), order=("NWC", "WIO", "NWC"), rhs_dilation=(4,)),
        ("T 2,1000,64", "T 3,64,64"),
    ),
    "convolution in one dimension NCW": (
        _convolve(strides=(1,), order=("NCW", "OIW", "NCW")),
        ("T 2,64,1000", "T 64,64,7"),
    ),
    "gradient of a convolution's weights": (_gradient_of_weights, ("T 4,28,28,32", "T 3,3,32,32")),
    "gradient of a convolution's image": (_gradient_of_image, ("T 2,28,28,32", "T 3,3,32,32")),
}

# --- normalisations, activations, pools


def _norm(np: Any, x: Any, axes: int | tuple[int, ...]) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def _rms_norm(jax: Any, np: Any, x: Any, w: Any) -> Any:
    squares = (x.astype(np.float32) ** 2).mean(-1, keepdims=True)
    return (x * jax.lax.rsqrt(squares + 1e-5)).astype(x.dtype) * w


def _causal(np: Any, x: Any) -> Any:
    n = x.shape[-1]
    return np.where(np.tril(np.ones((n, n), bool)), x, -1e9)


def _loss(jax: Any, np: Any, x: Any, i: Any) -> Any:
    return -np.take_along_axis(jax.nn.log_softmax(x.astype(np.float32)), i % 1000, 1).mean()


def _dropout(jax: Any, np: Any, seed: Any, x: Any) -> Any:
    kept = jax.random.bernoulli(jax.random.wrap_key_data(seed), 0.9, x.shape)
    return np.where(kept, x / 0.9, 0)


FORMS |= {
    "layer norm": (lambda jax, np, x: _norm(np, x, -1), ("T 512,768",)),
    "rms norm": (_rms_norm, ("T 512,768", "T 768")),
    "batch norm": (lambda jax, np, x: _norm(np, x, (0, 1, 2)), ("T 8,28,28,32",)),
    "gelu": (lambda jax, np, x: jax.nn.gelu(x), ("T 512,3072",)),
    "silu times": (lambda jax, np, x, y: jax.nn.silu(x) * y, ("T 512,1024", "T 512,1024")),
    "mean of an image": (lambda jax, np, x: x.mean((1, 2)), ("T 8,14,14,256",)),
    "mean of an image NCHW": (lambda jax, np, x: x.mean((2, 3)), ("T 8,256,7,7",)),
    "triangular mask": (lambda jax, np, x: _causal(np, x), ("T 8,256,256",)),
    "causal softmax": (lambda jax, np, x: jax.nn.softmax(_causal(np, x), -1), ("T 2,8,128,128",)),
    "loss of classes": (_loss, ("T 256,1000", "s32 256,1")),
    "dropout": (_dropout, ("u32 2", "T 256,256")),
    "outer sum, rectified": (lambda jax, np, a, b: np.maximum(a[:, None] + b[None], 0), ("T 512", "T 512")),
    "distances of pairs": (lambda jax, np, a, b: np.abs(a[:, None] - b[None]).sum(-1), ("T 128,3", "T 256,3")),
    "mean of the masked": (
        lambda jax, np, x, m: np.where(m > 0, x, 0).sum(1) / (m > 0).sum(1),
        ("T 256,512", "s32 256,512"),
    ),
    "sum": (lambda jax, np, x: x.sum(), ("T 512,512",)),
    "largest magnitude": (lambda jax, np, x: np.abs(x).max(), ("T 512,512",)),
    "norms of rows": (lambda jax, np, x: np.linalg.norm(x.astype(np.float32), axis=1), ("T 4096,64",)),
    "all finite": (lambda jax, np, x: np.isfinite(x).all(), ("T 512,512",)),
    "largest 8": (lambda jax, np, x: jax.lax.top_k(x, 8), ("T 256,64",)),
}

# --- attention and loops


def _attention(jax: Any, np: Any, q: Any, k: Any, v: Any) -> Any:
    scores = np.einsum("bqhd,bkhd->bhqk", q, k).astype(np.float32) / 8
    return np.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1).astype(q.dtype), v)


def _angles(np: Any, positions: int, pairs: int) -> Any:
    return np.arange(positions)[:, None, None] * 10000.0 ** (-np.arange(pairs) / pairs)


def _rope(jax: Any, np: Any, x: Any) -> Any:
    half = x.shape[-1] // 2
    angles = _angles(np, x.shape[1], half)
    a, b, s, c = x[..., :half], x[..., half:], np.sin(angles), np.cos(angles)
    return np.concatenate([a * c - b * s, b * c + a * s], -1).astype(x.dtype)


def _rope_of_pairs(jax: Any, np: Any, x: Any) -> Any:
    angles = _angles(np, x.shape[1], x.shape[-1] // 2)
    a, b, s, c = x[..., ::2], x[..., 1::2], np.sin(angles), np.cos(angles)
    return np.stack([a * c - b * s, b * c + a * s], -1).reshape(x.shape).astype(x.dtype)


def _cache_loop(jax: Any, np: Any, cache: Any, x: Any) -> Any:
    def body(i: Any, state: Any) -> Any:
        c, a = state
        c = jax.lax.dynamic_update_slice(c, x[None] + a[None, :1], (i, 0, 0))
        return c, a + c[i].sum(-1)[:, None]

    return jax.lax.fori_loop(0, 64, body, (cache, x))


def _attention_loop(jax: Any, np: Any, cache: Any, query: Any) -> Any:
    def body(i: Any, state: Any) -> Any:
        c, q = state
        c = jax.lax.dynamic_update_slice(c, q[:, None], (0, i, 0))
        scores = np.einsum("hd,htd->ht", q, c).astype(np.float32) / 8
        return c, np.einsum("ht,htd->hd", jax.nn.softmax(scores, -1).astype(q.dtype), c)

    return jax.lax.fori_loop(0, 32, body, (cache, query))


def _recurrent(jax: Any, np: Any, h: Any, w: Any, x: Any) -> Any:
    return jax.lax.scan(lambda h, x: (np.tanh(h @ w / 32 + x), h), h, x)


HEADS = "T 1,128,8,64"
FORMS |= {
    "attention": (_attention, (HEADS, HEADS, HEADS)),
    "rotary embedding": (_rope, ("T 2,128,8,64",)),
    "rotary embedding of pairs": (_rope_of_pairs, ("T 2,128,8,64",)),
    "loop that fills a cache": (_cache_loop, ("T 256,8,64", "T 8,64")),
    "loop of attention to a cache": (_attention_loop, ("T 8,256,64", "T 8,64")),
    "recurrent layer": (_recurrent, ("T 8,64", "T 64,64", "T 64,8,64")),
}
