"""Programs of the suite `forms`: tables, rows, movement, quantised weights and cumulative operations, by element type.

`T` in a shape stands for each of the element types.
"""

from __future__ import annotations

from typing import Any

from .jax_form_layers import Forms

FORMS: Forms = {}

# --- tables and rows
FORMS |= {
    "embedding": (lambda jax, np, x, i: x[i % 5000], ("T 5000,256", "s32 4,128")),
    "embedding with positions": (
        lambda jax, np, x, i, p: x[i % 5000] * 16 + p,
        ("T 5000,256", "s32 4,128", "T 128,256"),
    ),
    "gradient of an embedding": (
        lambda jax, np, i, g: np.zeros((5000, 256), g.dtype).at[i % 5000].add(g),
        ("s32 512", "T 512,256"),
    ),
    "rows set": (lambda jax, np, x, i, g: x.at[i % 4096].set(g), ("T 4096,64", "s32 512", "T 512,64")),
    "sums of segments": (lambda jax, np, x, i: jax.ops.segment_sum(x, i % 100, 100), ("T 16384,32", "s32 16384")),
    "sums of segments of elements": (
        lambda jax, np, x, i: jax.ops.segment_sum(x, i % 1000, 1000),
        ("T 65536", "s32 65536"),
    ),
    "one of each row": (lambda jax, np, x, i: np.take_along_axis(x, i % 1000, 1), ("T 512,1000", "s32 512,1")),
    "64 of each column": (lambda jax, np, x, i: np.take_along_axis(x, i % 512, 0), ("T 512,256", "s32 64,256")),
    "rows of experts": (
        lambda jax, np, x, i: np.take_along_axis(x, (i % 64)[:, :, None], 1),
        ("T 8,64,64", "s32 8,16"),
    ),
    "one hot times matrix": (
        lambda jax, np, x, i: jax.nn.one_hot(i % 64, 64, dtype=x.dtype) @ x,
        ("T 64,128", "s32 1024"),
    ),
    "update of a cache": (
        lambda jax, np, c, x, i: jax.lax.dynamic_update_slice_in_dim(c, x, i, 1),
        ("T 2,512,8,64", "T 2,1,8,64", "s32 "),
    ),
    "update of a column": (
        lambda jax, np, c, x, i: jax.lax.dynamic_update_slice_in_dim(c, x, i, 1),
        ("T 512,512", "T 512,1", "s32 "),
    ),
    "three columns from a place": (
        lambda jax, np, c, i: jax.lax.dynamic_slice_in_dim(c, i, 3, 1),
        ("T 512,512", "s32 "),
    ),
    "order of rows": (lambda jax, np, x: np.argsort(x, 1), ("T 256,64",)),
    "order of many": (lambda jax, np, x: np.argsort(x), ("T 16384",)),
    "sort by two of three": (
        lambda jax, np, x, y, z: jax.lax.sort((x, y, z), num_keys=2),
        ("T 64,256", "s32 64,256", "T 64,256"),
    ),
}

# --- movement
FORMS |= {
    "roll of both": (lambda jax, np, x: np.roll(x, (3, -5), (0, 1)), ("T 512,512",)),
    "roll of an image": (lambda jax, np, x: np.roll(x, (-3, -3), (1, 2)), ("T 1,56,56,96",)),
    "nearest of twice the size": (lambda jax, np, x: np.repeat(np.repeat(x, 2, 1), 2, 2), ("T 1,32,32,64",)),
    "space to depth": (
        lambda jax, np, x: x.reshape(1, 32, 2, 32, 2, 16).transpose(0, 1, 3, 2, 4, 5).reshape(1, 32, 32, 64),
        ("T 1,64,64,16",),
    ),
    "depth to space": (
        lambda jax, np, x: x.reshape(1, 32, 32, 4, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 128, 128, 3),
        ("T 1,32,32,48",),
    ),
    "windows of an image": (
        lambda jax, np, x: x.reshape(1, 8, 7, 8, 7, 96).transpose(0, 1, 3, 2, 4, 5).reshape(64, 49, 96),
        ("T 1,56,56,96",),
    ),
    "heads of queries, keys and values": (
        lambda jax, np, x: x.reshape(2, 128, 3, 8, 64).transpose(2, 0, 3, 1, 4),
        ("T 2,128,1536",),
    ),
    "diagonals": (lambda jax, np, x: np.diagonal(x, axis1=1, axis2=2), ("T 256,32,32",)),
    "fourth channel": (
        lambda jax, np, x, y: np.concatenate([x, y], -1),
        ("T 1,128,128,3", "T 1,128,128,1"),
    ),
    "stack of three": (
        lambda jax, np, x, y, z: np.stack([x, y, z], -1),
        ("T 128,128", "T 128,128", "T 128,128"),
    ),
    "channels apart": (lambda jax, np, x: (x[..., 0], x[..., 1], x[..., 2]), ("T 128,128,3",)),
    "three parts of columns": (lambda jax, np, x: np.split(x, 3, 1), ("T 512,768",)),
}

# --- few bits


def _rows_to_eight_bits(jax: Any, np: Any, x: Any) -> Any:
    scale = np.abs(x).max(1, keepdims=True) / 127
    return np.round(x / scale).astype(np.int8), scale


def _groups_from_four_bits(jax: Any, np: Any, q: Any, scale: Any) -> Any:
    return (q.reshape(512, 16, 32).astype(scale.dtype) * scale[:, :, None]).reshape(512, 512)


FORMS |= {
    "to eight bits": (
        lambda jax, np, x: np.clip(np.round(x * 127), -127, 127).astype(np.int8),
        ("T 512,512",),
    ),
    "rows to eight bits": (_rows_to_eight_bits, ("T 512,512",)),
    "rows from eight bits": (lambda jax, np, q, s: q.astype(s.dtype) * s, ("s8 512,512", "T 512,1")),
    "groups from four bits": (_groups_from_four_bits, ("s4 512,512", "T 512,16")),
    "weights of eight bits": (
        lambda jax, np, x, q, s: (x @ q.astype(x.dtype)) * s,
        ("T 4,512", "s8 512,1024", "T 1024"),
    ),
    "weights of four bits": (lambda jax, np, x, q: x @ q.astype(x.dtype), ("T 4,512", "s4 512,1024")),
    "weights of f8": (lambda jax, np, x, q: x @ q.astype(x.dtype), ("T 4,512", "f8e4m3fn 512,1024")),
    "to f8e4m3fn": (lambda jax, np, x: x.astype(np.float8_e4m3fn), ("T 512,512",)),
    "to f8e5m2": (lambda jax, np, x: x.astype(np.float8_e5m2), ("T 512,512",)),
}

# --- along a dimension
for axis, shape in ((0, "512,256"), (1, "256,512"), (1, "16,128,64"), (1, "4096,16"), (0, "65536")):
    tag = f"{shape} along {axis}"
    FORMS |= {
        f"cumsum {tag}": (lambda jax, np, x, axis=axis: np.cumsum(x, axis), (f"T {shape}",)),
        f"cummax {tag}": (lambda jax, np, x, axis=axis: jax.lax.cummax(x, axis), (f"T {shape}",)),
        f"cumprod from the end {tag}": (
            lambda jax, np, x, axis=axis: jax.lax.cumprod(x, axis, reverse=True),
            (f"T {shape}",),
        ),
        f"cumlogsumexp {tag}": (lambda jax, np, x, axis=axis: jax.lax.cumlogsumexp(x, axis), (f"T {shape}",)),
    }
