"""JAX programs of the small corpus, each with its inputs: small forms of what real programs do."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any


class Program(NamedTuple):
    function: Callable[..., Any]
    inputs: tuple[Any, ...]


def normal(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Multiples of 1/64, the same ones for ever: numpy's legacy generator is frozen."""
    return (np.round(np.random.RandomState(seed).standard_normal(shape) * 64) / 64).astype(dtype)


def integers(seed: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    return np.random.RandomState(seed).randint(0, high, shape, dtype=np.int64).astype(dtype)


def layernorm(x: Array, scale: Array, shift: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def perceptron_gradient(w: Array, v: Array, x: Array, labels: Array) -> Any:
    def loss(w: Array, v: Array) -> Array:
        logits = jnp.tanh(x @ w) @ v
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return jax.value_and_grad(loss, (0, 1))(w, v)


def convolution_and_pool(x: Array, kernel: Array) -> Array:
    y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def convolution_gradient(x: Array, kernel: Array) -> Array:
    return jax.grad(lambda x, k: (convolution_and_pool(x, k) ** 2).sum(), (0, 1))(x, kernel)


def sorts(x: Array, k: Array) -> Any:
    values, order = jnp.sort(x, axis=-1), jnp.argsort(k, axis=0, stable=True)
    return values, order, jnp.median(x, axis=-1)


def histogram(values: Array, weights: Array) -> Any:
    return jnp.zeros(10, jnp.int32).at[values].add(1), jnp.zeros(10).at[values].max(weights)


def embedding(table: Array, tokens: Array) -> Array:
    return table[tokens].astype(jnp.float32).sum(1)


def rnn(x: Array, state: Array, w: Array) -> Any:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        h = jnp.tanh(h @ w + row)
        return h, h.sum(-1)

    return lax.scan(step, state, x)


def collatz(n: Array) -> Array:
    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        value, count = state
        return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

    return lax.while_loop(lambda state: state[0] != 1, step, (n, jnp.int32(0)))[1]


def uniform(key: Array) -> Any:
    return jax.random.uniform(key, (5, 3)), jax.random.bits(key, (7,), np.uint32)


def reductions(x: Array) -> Any:
    return x.max(0), x.argmin(1), jnp.cumsum(x, 1), jax.nn.logsumexp(x, 1), (x > 0).all(0)


def bits(x: Array, y: Array) -> Any:
    rotated = (x << 7) | (x >> 25)
    return rotated ^ (x * np.uint32(0x9E3779B9)), lax.population_count(x), (y >> 2).astype(jnp.int8), y // 3, y % 5


def branches(i: Array, x: Array) -> Array:
    return lax.switch(i, [jnp.sin, lambda v: v * v, lambda v: v[::-1]], x)


def newton(x: Array) -> Array:
    return lax.fori_loop(0, 6, lambda _, r: 0.5 * (r + x / r), x)


def spectrum(x: Array) -> Any:
    z = jnp.fft.rfft(x)
    return jnp.abs(z * jnp.conj(z)), jnp.fft.irfft(z * 0.5)


BF16 = jnp.bfloat16

PROGRAMS = {
    "layernorm_bf16": Program(
        layernorm, tuple(normal(n, *s, dtype=BF16) for n, s in enumerate([(6, 24), (24,), (24,)]))
    ),
    "perceptron_gradient": Program(
        perceptron_gradient, (normal(3, 8, 12), normal(4, 12, 5), normal(5, 10, 8), integers(6, 5, 10))
    ),
    "convolution_and_pool": Program(convolution_and_pool, (normal(7, 2, 6, 8, 3), normal(8, 3, 3, 3, 4))),
    "convolution_gradient": Program(convolution_gradient, (normal(9, 1, 6, 6, 2), normal(10, 3, 3, 2, 3))),
    "sorts": Program(sorts, (normal(11, 4, 19), integers(12, 9, 13))),
    "histogram": Program(histogram, (integers(13, 10, 60), normal(14, 60))),
    "embedding": Program(embedding, (normal(15, 11, 6, dtype=BF16), integers(16, 11, 4, 5))),
    "rnn": Program(rnn, (normal(17, 7, 3, 6), normal(18, 3, 6), normal(19, 6, 6) / 4)),
    "collatz": Program(collatz, (np.int32(27),)),
    "uniform": Program(uniform, (np.array([1, 2], np.uint32),)),
    "reductions": Program(reductions, (normal(20, 5, 14),)),
    "bits": Program(
        bits, (integers(21, 2**32, 33, dtype=np.uint32), integers(22, 2000, 20, dtype=np.int16) - np.int16(1000))
    ),
    "branches": Program(branches, (np.int32(2), normal(23, 9))),
    "newton_f64": Program(newton, (np.abs(normal(24, 8, dtype=np.float64)) + 0.5,)),
    "spectrum": Program(spectrum, (normal(25, 3, 16),)),
}
"""newton_f64 is traced with 64-bit types on; all others with JAX's defaults."""
