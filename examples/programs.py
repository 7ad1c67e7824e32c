"""The example programs: JAX functions with inputs. make.py turns each into a folder beside this file.

They use only opcodes that both stacks emit (no sort or FFT). Inputs are rounded to multiples of 1/256, so that they
compress well and are equal on every machine.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any


class Program(NamedTuple):
    function: Callable[..., Any]
    inputs: tuple[Any, ...]


class Draw:
    """Reproducible inputs. numpy guarantees that the stream of its legacy generator does not change."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)

    def normal(self, *shape: int, scale: float = 1.0, dtype: Any = np.float32) -> np.ndarray:
        return (np.round(self.random.standard_normal(shape) * scale * 256) / 256).astype(dtype)

    def integers(self, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
        return self.random.randint(0, high, shape, dtype=np.int64).astype(dtype)


def gpt2_block() -> Program:
    """One transformer block as in GPT-2: layernorm, causal attention, layernorm, MLP with the tanh form of gelu."""
    batch, time, width, heads = 2, 32, 64, 4

    def layernorm(x: Array, scale: Array, shift: Array) -> Array:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift

    def attention(x: Array, p: dict[str, Array]) -> Array:
        qkv = (x @ p["qkv"] + p["qkv_bias"]).reshape(batch, time, 3, heads, width // heads)
        q, k, v = (qkv[:, :, i] for i in range(3))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(jnp.float32(width // heads))
        scores = jnp.where(jnp.tril(jnp.ones((time, time), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
        return mixed.reshape(batch, time, width) @ p["out"] + p["out_bias"]

    def block(x: Array, p: dict[str, Array]) -> Array:
        x = x + attention(layernorm(x, p["norm1"], p["norm1_bias"]), p)
        hidden = jax.nn.gelu(layernorm(x, p["norm2"], p["norm2_bias"]) @ p["up"] + p["up_bias"], approximate=True)
        return x + hidden @ p["down"] + p["down_bias"]

    draw = Draw(1)
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    parameters: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        parameters[name] = draw.normal(*shape, scale=0.1)
        parameters[name + "_bias"] = draw.normal(shape[1], scale=0.1)
    for name in ("norm1", "norm2"):
        parameters[name] = 1 + draw.normal(width, scale=0.1)
        parameters[name + "_bias"] = draw.normal(width, scale=0.1)
    return Program(block, (draw.normal(batch, time, width), parameters))


def mlp_adam() -> Program:
    """One training step of a two-layer MLP with Adam: forward, backward, moment updates, bias correction."""
    sizes, batch = (24, 48, 10), 32

    def loss(layers: list[Any], x: Array, labels: Array) -> Array:
        (w1, b1), (w2, b2) = layers
        logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        wanted = jax.nn.one_hot(labels, sizes[2])
        return -(jax.nn.log_softmax(logits) * wanted).sum(-1).mean()

    def step(layers: Any, first: Any, second: Any, count: Array, x: Array, labels: Array) -> Any:
        value, gradient = jax.value_and_grad(loss)(layers, x, labels)
        count = count + 1
        tree = jax.tree_util.tree_map
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** count.astype(jnp.float32)) / (1 - 0.9 ** count.astype(jnp.float32))
        layers = tree(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), layers, first, second)
        return layers, first, second, count, value

    draw = Draw(2)

    def layers(scale: float) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(draw.normal(a, b, scale=scale), draw.normal(b, scale=scale)) for a, b in zip(sizes, sizes[1:])]

    squares = [(np.abs(w), np.abs(b)) for w, b in layers(0.05)]
    data = (draw.normal(batch, sizes[0]), draw.integers(sizes[2], batch))
    return Program(step, (layers(0.2), layers(0.05), squares, np.int32(3), *data))


def lstm_scan() -> Program:
    """An LSTM over 12 steps by lax.scan: a while loop with dynamic-slice and dynamic-update-slice."""
    time, batch, width = 12, 4, 24

    def run(x: Array, w_in: Array, w_hidden: Array, bias: Array) -> Any:
        def cell(state: Any, x_t: Array) -> Any:
            hidden, memory = state
            i, f, g, o = jnp.split(x_t @ w_in + hidden @ w_hidden + bias, 4, axis=-1)
            memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
            return (hidden, memory), hidden

        zero = jnp.zeros((batch, width))
        return jax.lax.scan(cell, (zero, zero), x)

    draw = Draw(3)
    weights = draw.normal(width, 4 * width, scale=0.2), draw.normal(width, 4 * width, scale=0.2)
    return Program(run, (draw.normal(time, batch, width), *weights, draw.normal(4 * width, scale=0.1)))


def nbody_while() -> Program:
    """Leapfrog integration of 16 bodies up to a final time: a while loop whose trip count depends on data."""

    def acceleration(position: Array, mass: Array) -> Array:
        apart = position[None, :, :] - position[:, None, :]
        squared = (apart**2).sum(-1) + 0.05
        return (apart * (mass[None, :] * squared**-1.5)[:, :, None]).sum(1)

    def simulate(position: Array, velocity: Array, mass: Array, end: Array) -> Any:
        dt = jnp.float32(0.01)

        def body(state: Any) -> Any:
            time, x, v, a = state
            v = v + 0.5 * dt * a
            x = x + dt * v
            a = acceleration(x, mass)
            return time + dt, x, v + 0.5 * dt * a, a

        start = (jnp.float32(0), position, velocity, acceleration(position, mass))
        time, x, v, _ = jax.lax.while_loop(lambda state: state[0] < end, body, start)
        return x, v, 0.5 * (mass * (v**2).sum(-1)).sum(), time

    draw = Draw(4)
    mass = 0.1 + np.abs(draw.normal(16, scale=0.1))
    return Program(simulate, (draw.normal(16, 3), draw.normal(16, 3, scale=0.1), mass, np.float32(0.2)))


def switch_cond() -> Program:
    """lax.switch on an index, and lax.cond on data."""

    def corner(v: Array) -> Array:
        return jax.lax.dynamic_update_slice(v, v[:2, :2] * 0.5, (2, jnp.int32(3)))

    def dispatch(index: Array, x: Array, y: Array) -> Any:
        branches = [jnp.sin, lambda v: v @ v.T, lambda v: jnp.flip(v, 0) * 2, corner]
        chosen = jax.lax.switch(index, branches, x)
        scaled = jax.lax.cond(x.sum() > y.sum(), lambda a, b: a - b, lambda a, b: a * b, chosen, y)
        return chosen, scaled, jnp.maximum(chosen, scaled).argmax(1)

    draw = Draw(5)
    return Program(dispatch, (np.int32(2), draw.normal(8, 8), draw.normal(8, 8)))


def softmax_regression_grad() -> Program:
    """Loss and gradient of multinomial logistic regression with weight decay."""

    def loss(w: Array, b: Array, x: Array, labels: Array) -> Array:
        logits = x @ w + b
        picked = (logits * jax.nn.one_hot(labels, logits.shape[1])).sum(1)
        return (jax.scipy.special.logsumexp(logits, axis=1) - picked).mean() + 1e-3 * (w**2).sum()

    draw = Draw(6)
    data = (draw.normal(64, 20), draw.integers(7, 64))
    return Program(jax.value_and_grad(loss, argnums=(0, 1)), (draw.normal(20, 7), draw.normal(7), *data))


def mandelbrot() -> Program:
    """Escape times on a 48 x 64 grid: a while loop that ends after 50 steps, or when every point has escaped."""

    def escape(x: Array, y: Array) -> Array:
        c_re, c_im = jnp.broadcast_arrays(x[None, :], y[:, None])

        def body(state: Any) -> Any:
            step, re, im, count = state
            inside = re * re + im * im <= 4
            re, im = jnp.where(inside, re * re - im * im + c_re, re), jnp.where(inside, 2 * re * im + c_im, im)
            return step + 1, re, im, count + inside.astype(jnp.int32)

        def going(state: Any) -> Array:
            step, re, im, _ = state
            return (step < 50) & jnp.any(re * re + im * im <= 4)

        zero = jnp.zeros_like(c_re)
        return jax.lax.while_loop(going, body, (0, zero, zero, zero.astype(jnp.int32)))[3]

    # Points are off the grid of exact binary fractions: on the edge of the set, a single rounding would be visible.
    return Program(escape, (np.linspace(-2.03, 0.97, 64, dtype=np.float32), np.linspace(-1.1, 1.13, 48, dtype=np.float32)))


def rmsnorm_swiglu_bf16() -> Program:
    """RMSNorm and a SwiGLU feed-forward layer in bfloat16, with the norm in float32, as in Llama."""

    def layer(x: Array, scale: Array, gate: Array, up: Array, down: Array) -> Array:
        wide = x.astype(jnp.float32)
        normed = wide * jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
        h = normed.astype(jnp.bfloat16) * scale
        return x + (jax.nn.silu(h @ gate) * (h @ up)) @ down

    draw = Draw(7)
    bf16 = jnp.bfloat16
    weights = [draw.normal(*shape, scale=0.1, dtype=bf16) for shape in ((32, 80), (32, 80), (80, 32))]
    return Program(layer, (draw.normal(16, 32, dtype=bf16), draw.normal(32, dtype=bf16), *weights))


def heat_stencil() -> Program:
    """Forty explicit steps of the heat equation with mirrored edges: slice, reverse, concatenate, pad."""

    def step(_: Array, u: Array) -> Array:
        rows = jnp.concatenate([u[:1], u, u[-1:]], 0)
        wide = jnp.concatenate([jnp.flip(rows[:, :1], 1), rows, jnp.flip(rows[:, -1:], 1)], 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return u + 0.2 * (around - 4 * u)

    def simulate(u: Array, source: Array) -> Any:
        heated = u + jnp.pad(source, ((8, 8), (4, 12)))
        result = jax.lax.fori_loop(0, 40, step, heated)
        return result, result[::4, ::4], result.sum()

    draw = Draw(8)
    return Program(simulate, (draw.normal(32, 32), draw.normal(16, 16)))


def integer_hash() -> Program:
    """Murmur-style mixing of 32-bit words: shifts, xor, wrapping multiply, bitcasts between integers and floats."""

    def mix(words: Array, seeds: Array) -> Any:
        h = words ^ seeds
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            h = (h ^ (h >> shift)) * jnp.uint32(factor)
        uniform = jax.lax.bitcast_convert_type((h >> 9) | jnp.uint32(0x3F800000), jnp.float32) - 1
        bytes_ = (h[:, :, None] >> jnp.array([0, 8, 16, 24], jnp.uint32)).astype(jnp.uint8)
        return h, uniform, bytes_, jax.lax.population_count(h), jax.lax.clz(h), h.astype(jnp.int32) // 7

    draw = Draw(9)
    words = (draw.integers(2**32, 16, 24, dtype=np.uint32), draw.integers(2**32, 24, dtype=np.uint32))
    return Program(mix, words)


PROGRAMS: dict[str, Callable[[], Program]] = {
    make.__name__: make
    for make in (
        gpt2_block,
        mlp_adam,
        lstm_scan,
        nbody_while,
        switch_cond,
        softmax_regression_grad,
        mandelbrot,
        rmsnorm_swiglu_bf16,
        heat_stencil,
        integer_hash,
    )
}
