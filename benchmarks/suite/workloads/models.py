"""Whole models and training steps, and the example programs of this repository."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..workload import Case, Draw, Register, jax, jnp, lax
from .attention import attend
from .norms import layer_norm, rms_norm

MODELS = Register("models")
TRAINING = Register("training")
EXAMPLES = Register("examples")


def _mlp_loss(layers, x, labels):
    *hidden, (w, b) = layers
    for weights, bias in hidden:
        x = jax.nn.relu(x @ weights + bias)
    wanted = jax.nn.one_hot(labels, b.shape[0])
    return -(jax.nn.log_softmax(x @ w + b) * wanted).sum(-1).mean()


def _layers(draw: Draw, sizes: tuple[int, ...], scale: float) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(draw.normal(a, b, scale=scale), draw.normal(b, scale=scale)) for a, b in pairwise(sizes)]


@TRAINING.jax("mlp_adam_step")
def _mlp_adam() -> Case:
    def step(layers, first, second, count, x, labels):
        value, gradient = jax.value_and_grad(_mlp_loss)(layers, x, labels)
        tree = jax.tree_util.tree_map
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        layers = tree(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), layers, first, second)
        return layers, first, second, count + 1, value

    draw, sizes = Draw(), (784, 512, 256, 10)
    squares = [(np.abs(w), np.abs(b)) for w, b in _layers(draw, sizes, 0.05)]
    state = _layers(draw, sizes, 0.05), _layers(draw, sizes, 0.05), squares, np.float32(3)
    return Case((*state, draw.uniform(128, 784), draw.integers(0, 10, 128)), function=step)


WIDTH, HEADS = 512, 8


def _block(x, p):
    """A transformer block as in GPT-2."""
    time = x.shape[0]
    qkv = layer_norm(x, p["norm1"], p["bias1"]) @ p["qkv"]
    q, k, v = (qkv[:, i * WIDTH : (i + 1) * WIDTH].reshape(time, HEADS, -1).swapaxes(0, 1) for i in range(3))
    x = x + attend(q, k, v, causal=True).swapaxes(0, 1).reshape(time, WIDTH) @ p["out"]
    hidden = jax.nn.gelu(layer_norm(x, p["norm2"], p["bias2"]) @ p["up"], approximate=True)
    return x + hidden @ p["down"]


def _block_parameters(draw: Draw) -> dict[str, np.ndarray]:
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    norms = {name: draw.uniform(WIDTH, low=0.5, high=1.5) for name in ("norm1", "norm2", "bias1", "bias2")}
    return norms | {name: draw.normal(*shape, scale=shape[0] ** -0.5) for name, shape in shapes.items()}


@MODELS.jax("gpt2_block_128")
def _gpt2_block() -> Case:
    draw = Draw()
    return Case((draw.normal(128, WIDTH), _block_parameters(draw)), function=_block)


@MODELS.jax("gpt2_block_1")
def _gpt2_block_one() -> Case:
    draw = Draw()
    return Case((draw.normal(1, WIDTH), _block_parameters(draw)), function=_block)


@TRAINING.jax("gpt2_block_gradient")
def _gpt2_gradient() -> Case:
    draw = Draw()
    return Case(
        (draw.normal(128, WIDTH), _block_parameters(draw)),
        function=jax.value_and_grad(lambda x, p: jnp.square(_block(x, p)).mean(), argnums=1),
    )


@MODELS.jax("llama_mlp_bf16")
def _swiglu() -> Case:
    def layer(x, scale, gate, up, down):
        h = rms_norm(x.astype(jnp.float32), scale).astype(jnp.bfloat16)
        return x + (jax.nn.silu(h @ gate) * (h @ up)) @ down

    draw = Draw()
    shapes = (512, 1408), (512, 1408), (1408, 512)
    weights = [draw.normal(*shape, scale=shape[0] ** -0.5, dtype="bf16") for shape in shapes]
    return Case((draw.normal(64, 512, dtype="bf16"), draw.uniform(512, low=0.5, high=1.5), *weights), function=layer)


def _convolve(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _resnet(x, stem, blocks, head):
    """ResNet-18 without its batch norms, which inference folds into the convolutions."""
    x = jax.nn.relu(_convolve(x, stem, 2))
    x = lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for first, second, *shortcut in blocks:
        stride = 2 if shortcut else 1
        y = _convolve(jax.nn.relu(_convolve(x, first, stride)), second)
        x = jax.nn.relu(y + (_convolve(x, shortcut[0], stride) if shortcut else x))
    return x.mean((1, 2)) @ head


@MODELS.jax("resnet18_112")
def _resnet18() -> Case:
    draw = Draw()

    def weights(size: int, before: int, after: int) -> np.ndarray:
        return draw.normal(size, size, before, after, scale=(size * size * before) ** -0.5)

    blocks, before = [], 64
    for channels in (64, 128, 256, 512):
        for n in range(2):
            shortcut = [weights(1, before, channels)] if n == 0 and before != channels else []
            blocks.append([weights(3, before, channels), weights(3, channels, channels), *shortcut])
            before = channels
    inputs = draw.uniform(1, 112, 112, 3), weights(7, 3, 64), blocks, draw.normal(512, 1000, scale=0.04)
    return Case(inputs, function=_resnet)


@MODELS.jax("lstm_64_steps")
def _lstm() -> Case:
    time, batch, width = 64, 16, 256

    def run(x, w_in, w_hidden, bias):
        def cell(state, row):
            hidden, memory = state
            i, f, g, o = jnp.split(row @ w_in + hidden @ w_hidden + bias, 4, axis=-1)
            memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
            return (hidden, memory), hidden

        zero = jnp.zeros((batch, width))
        return lax.scan(cell, (zero, zero), x)

    draw = Draw()
    weights = draw.normal(width, 4 * width, scale=1 / 16), draw.normal(width, 4 * width, scale=1 / 16)
    return Case((draw.normal(time, batch, width), *weights, draw.normal(4 * width, scale=0.1)), function=run)


@MODELS.jax("mixture_of_experts")
def _experts() -> Case:
    def run(x, gate, up, down):
        value, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        weight = (jax.nn.one_hot(chosen, gate.shape[1]) * value[..., None]).sum(1)
        hidden = jax.nn.relu(jnp.einsum("td,edh->eth", x, up))
        return jnp.einsum("eth,ehd,te->td", hidden, down, weight)

    draw, experts = Draw(), 8
    weights = draw.normal(experts, 128, 256, scale=0.1), draw.normal(experts, 256, 128, scale=0.1)
    return Case((draw.normal(128, 128), draw.normal(128, experts), *weights), function=run)


def _example(name: str) -> Case:
    """A folder of examples/ with its inputs."""
    from ....formats.program import load_program

    program = load_program(str(Path(__file__).resolve().parents[3] / "examples" / name))
    assert program.inputs is not None, f"examples/{name} has inputs"
    return Case(program.inputs, program.text)


def _declare_examples(names: tuple[Any, ...]) -> None:
    for name in names:
        EXAMPLES.hlo(name, partial(_example, name))


_declare_examples(
    (
        "gpt2_block",
        "heat_stencil",
        "integer_hash",
        "lstm_scan",
        "mandelbrot",
        "mlp_adam",
        "nbody_while",
        "rmsnorm_swiglu_bf16",
        "softmax_regression_grad",
        "switch_cond",
    )
)
