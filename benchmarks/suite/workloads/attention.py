"""Attention: heads, masks, types, and one step of decoding with a cache of keys and values."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..workload import Case, Draw, Register, jax, jnp, lax

ATTENTION = Register("attention")


def attend(q, k, v, causal=False):
    """Attention of [..., time, width] arrays, softmax in the arrays' own type."""
    scores = jnp.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(scores, -1), v)


def _declare(name: str, dims: tuple[int, ...], dtype: str = "f32", causal: bool = False) -> None:
    def make() -> Case:
        draw = Draw()
        return Case(
            tuple(draw.normal(*dims, dtype=dtype) for _ in range(3)),
            function=lambda q, k, v: attend(q, k, v, causal),
            torch=lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal),
        )

    ATTENTION.jax(name)(make)


_declare("attention_1x1024x64", (1, 1024, 64))
_declare("attention_12x512x64", (1, 12, 512, 64))
_declare("attention_causal", (1, 12, 512, 64), causal=True)
_declare("attention_bf16", (1, 8, 256, 64), "bf16", causal=True)


@ATTENTION.jax("attention_gradient")
def _gradient() -> Case:
    draw = Draw()
    return Case(
        tuple(draw.normal(1, 8, 256, 64) for _ in range(4)),
        function=lambda q, k, v, seed: jax.vjp(partial(attend, causal=True), q, k, v)[1](seed),
    )


@ATTENTION.jax("attention_decode_cache")
def _decode() -> Case:
    """One token against 1023 earlier ones: its key and value are written into the cache first."""
    heads, time, width = 12, 1024, 64

    def step(q, k, v, keys, values, place):
        keys = lax.dynamic_update_slice(keys, k, (0, place, 0))
        values = lax.dynamic_update_slice(values, v, (0, place, 0))
        scores = jnp.einsum("hqd,hkd->hqk", q, keys) * width**-0.5
        scores = jnp.where(jnp.arange(time) <= place, scores, -1e9)
        return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, -1), values), keys, values

    draw = Draw()
    new = [draw.normal(heads, 1, width) for _ in range(3)]
    cache = [draw.normal(heads, time, width) for _ in range(2)]
    return Case((*new, *cache, np.int32(900)), function=step)


@ATTENTION.jax("attention_grouped_query")
def _grouped() -> Case:
    def run(q, k, v):
        return attend(q.reshape(4, 3, 256, 64), k[:, None], v[:, None], causal=True)

    draw = Draw()
    return Case((draw.normal(12, 256, 64), draw.normal(4, 256, 64), draw.normal(4, 256, 64)), function=run)
