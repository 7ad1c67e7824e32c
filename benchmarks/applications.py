"""Programs as users of JAX write them, layers, losses, simulations and filters, on both stacks against XLA:CPU.

Run: .venv/bin/python -m testbed.benchmarks.applications [--only REGEX], and further options, as op_shapes.py, which
says what is printed; 5 minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from . import op_shapes

Shapes = tuple[str, ...]
"""Of the arguments, as 'f32 16,128'."""

TYPES = {
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "s32": "int32",
    "s8": "int8",
    "u8": "uint8",
    "u32": "uint32",
}
TYPES |= {"c64": "complex64", "pred": "bool"}


# -- layers ------------------------------------------------------------------------------------------------------------
def _norm(np: Any, x: Any, axis: int = -1) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


def encoder(jax: Any, np: Any, x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    """A layer of a transformer, 8 heads."""
    n, d = x.shape
    q, k, v = np.split((_norm(np, x) @ qkv).reshape(n, 8, -1), 3, axis=-1)
    scores = jax.nn.softmax(np.einsum("qhd,khd->hqk", q, k) / np.sqrt(d / 8.0).astype(x.dtype), -1)
    x = x + np.einsum("hqk,khd->qhd", scores, v).reshape(n, d) @ out
    return x + jax.nn.gelu(_norm(np, x) @ up) @ down


def encoder_gradient(jax: Any, np: Any, *given: Any) -> Any:
    return jax.grad(lambda *a: (encoder(jax, np, *a) ** 2).mean(), argnums=(1, 2, 3, 4))(*given)


def gru(jax: Any, np: Any, xs: Any, w: Any, u: Any, h: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        a, b = x @ w, h @ u
        n = h.shape[-1]
        r, z = jax.nn.sigmoid(a[:, :n] + b[:, :n]), jax.nn.sigmoid(a[:, n : 2 * n] + b[:, n : 2 * n])
        h = (1 - z) * np.tanh(a[:, 2 * n :] + r * b[:, 2 * n :]) + z * h
        return h, h

    return jax.lax.scan(step, h, xs)[1]


def gru_gradient(jax: Any, np: Any, *given: Any) -> Any:
    return jax.grad(lambda *a: (gru(jax, np, *a) ** 2).mean(), argnums=(1, 2))(*given)


def _convolved(jax: Any, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )


def inverted_residual(jax: Any, np: Any, x: Any, up: Any, deep: Any, down: Any) -> Any:
    """A block of MobileNetV2."""
    h = jax.nn.relu6(_norm(np, _convolved(jax, x, up), 0))
    h = jax.nn.relu6(_norm(np, _convolved(jax, h, deep, groups=h.shape[-1]), 0))
    return x + _convolved(jax, h, down)


def inverted_residual_gradient(jax: Any, np: Any, *given: Any) -> Any:
    return jax.grad(lambda *a: (inverted_residual(jax, np, *a) ** 2).mean(), argnums=(1, 2, 3))(*given)


def convnext(jax: Any, np: Any, x: Any, deep: Any, up: Any, down: Any) -> Any:
    h = _norm(np, _convolved(jax, x, deep, groups=x.shape[-1]))
    return x + jax.nn.gelu(h @ up) @ down


def unet_step(jax: Any, np: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
    """Down, a convolution, up with nearest neighbours, and the skip beside it."""
    h = jax.nn.relu(_convolved(jax, x, a))
    small = jax.lax.reduce_window(h, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    small = jax.nn.relu(_convolved(jax, small, b))
    large = jax.image.resize(small, (*h.shape[:3], small.shape[3]), "nearest")
    return _convolved(jax, np.concatenate([large, h], -1), c)


def cnn_gradient(jax: Any, np: Any, x: Any, labels: Any, a: Any, b: Any, w: Any) -> Any:
    """The gradient of a small network for digits."""

    def loss(a: Any, b: Any, w: Any) -> Any:
        h = x
        for kernel in (a, b):
            h = jax.nn.relu(_convolved(jax, h, kernel))
            h = jax.lax.reduce_window(h, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        logits = h.reshape(h.shape[0], -1) @ w
        return -np.take_along_axis(jax.nn.log_softmax(logits), labels[:, None] % 10, 1).mean()

    return jax.grad(loss, argnums=(0, 1, 2))(a, b, w)


def rotary_decode(jax: Any, np: Any, x: Any, keys: Any, values: Any, w: Any, at: Any) -> Any:
    """A step of decoding with rotary embeddings: the cache is written and read. 16 heads of 64."""
    q, k, v = np.split((x @ w).reshape(3, 16, 64), 3)
    angle = at * np.exp(-np.arange(32) / 32.0 * np.log(10000.0))

    def turned(y: Any) -> Any:
        a, b = np.split(y, 2, -1)
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)

    keys = jax.lax.dynamic_update_slice(keys, turned(k), (at, 0, 0))
    values = jax.lax.dynamic_update_slice(values, v, (at, 0, 0))
    scores = np.einsum("hd,khd->hk", turned(q)[0], keys) / 8
    scores = np.where(np.arange(keys.shape[0]) <= at, scores, -1e9)
    return keys, values, np.einsum("hk,khd->hd", jax.nn.softmax(scores), values)


def linear_attention(jax: Any, np: Any, q: Any, k: Any, v: Any) -> Any:
    q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
    state = np.cumsum(np.einsum("nd,ne->nde", k, v), 0)
    return np.einsum("nd,nde->ne", q, state) / np.einsum("nd,nd->n", q, np.cumsum(k, 0))[:, None]


def state_space(jax: Any, np: Any, decay: Any, x: Any) -> Any:
    def joined(a: Any, b: Any) -> Any:
        return a[0] * b[0], b[0] * a[1] + b[1]

    return jax.lax.associative_scan(joined, (jax.nn.sigmoid(decay), x))[1]


def cross_entropy_gradient(jax: Any, np: Any, logits: Any, labels: Any) -> Any:
    def loss(z: Any) -> Any:
        return -np.take_along_axis(jax.nn.log_softmax(z), labels[:, None], 1).mean()

    return jax.value_and_grad(loss)(logits)


def contrastive_gradient(jax: Any, np: Any, a: Any, b: Any) -> Any:
    def loss(a: Any, b: Any) -> Any:
        a, b = (y / np.linalg.norm(y, axis=1, keepdims=True) for y in (a, b))
        s = a @ b.T * 14.0
        return (jax.nn.logsumexp(s, 1) + jax.nn.logsumexp(s, 0) - 2 * np.diag(s)).mean()

    return jax.grad(loss, argnums=(0, 1))(a, b)


def word_vectors(jax: Any, np: Any, table: Any, out: Any, word: Any, others: Any) -> Any:
    """A step of skip-gram with negative samples."""

    def loss(table: Any, out: Any) -> Any:
        s = np.einsum("bd,bnd->bn", table[word], out[others])
        return -(jax.nn.log_sigmoid(s[:, 0]) + jax.nn.log_sigmoid(-s[:, 1:]).sum(1)).mean()

    a, b = jax.grad(loss, argnums=(0, 1))(table, out)
    return table - 0.1 * a, out - 0.1 * b


def adafactor(jax: Any, np: Any, w: Any, g: Any, rows: Any, columns: Any) -> Any:
    square = g * g + 1e-30
    rows, columns = 0.9 * rows + 0.1 * square.mean(1), 0.9 * columns + 0.1 * square.mean(0)
    update = g / np.sqrt(rows[:, None] * columns[None] / rows.mean())
    update = update / np.maximum(1.0, np.sqrt((update * update).mean()))
    return w - 0.01 * update, rows, columns


def nucleus(jax: Any, np: Any, logits: Any, seed: Any) -> Any:
    """Sampling from the most likely tokens of 0.9 together."""
    order = np.argsort(-logits, axis=-1)
    p = jax.nn.softmax(np.take_along_axis(logits, order, -1))
    kept = np.cumsum(p, -1) - p < 0.9
    drawn = jax.random.categorical(jax.random.wrap_key_data(seed), np.where(kept, np.log(p), -np.inf))
    return np.take_along_axis(order, drawn[:, None], -1)[:, 0]


def beam(jax: Any, np: Any, scores: Any, logits: Any) -> Any:
    total = scores[:, None] + jax.nn.log_softmax(logits)
    best, at = jax.lax.top_k(total.reshape(-1), scores.shape[0])
    return best, at // logits.shape[1], at % logits.shape[1]


def quantized(jax: Any, np: Any, x: Any, w: Any, scales: Any) -> Any:
    scale = np.abs(x).max(1, keepdims=True) / 127
    q = np.round(x / scale).astype(np.int8)
    s = jax.lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=np.int32)
    return s.astype(np.float32) * scale * scales


def ensemble(jax: Any, np: Any, x: Any, a: Any, b: Any) -> Any:
    return jax.vmap(lambda a, b: np.tanh(x @ a) @ b)(a, b)


def hessian(jax: Any, np: Any, w: Any, x: Any) -> Any:
    return jax.hessian(lambda w: (np.tanh(x @ w.reshape(8, 4)).sum(1) ** 2).mean())(w)


# -- images and signals ------------------------------------------------------------------------------------------------
def blur(jax: Any, np: Any, x: Any) -> Any:
    w = np.exp(-((np.arange(9) - 4.0) ** 2) / 8)
    x = jax.vmap(lambda row: np.convolve(row, w / w.sum(), "same"))(x)
    return jax.vmap(lambda row: np.convolve(row, w / w.sum(), "same"))(x.T).T


def edges(jax: Any, np: Any, x: Any) -> Any:
    p = np.pad(x, 1, mode="edge")
    a = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    b = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    return np.hypot(a, b)


def equalized(jax: Any, np: Any, x: Any) -> Any:
    counts = np.zeros(256, np.int32).at[x.reshape(-1).astype(np.int32)].add(1)
    return (np.cumsum(counts) * 255 // x.size).astype(np.uint8)[x.astype(np.int32)]


def resized(jax: Any, np: Any, x: Any) -> Any:
    return jax.image.resize(x, (x.shape[0] * 3 // 2, x.shape[1] * 3 // 2, x.shape[2]), "bilinear")


def rotated(jax: Any, np: Any, x: Any) -> Any:
    i, j = np.meshgrid(np.arange(x.shape[0]) - 128.0, np.arange(x.shape[1]) - 128.0, indexing="ij")
    at = [0.8 * i - 0.6 * j + 128, 0.6 * i + 0.8 * j + 128]
    return jax.scipy.ndimage.map_coordinates(x, at, order=1)


def normalized_image(jax: Any, np: Any, x: Any) -> Any:
    return (x.astype(np.float32) / 255 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])


def suppressed(jax: Any, np: Any, boxes: Any, scores: Any) -> Any:
    boxes = boxes[np.argsort(-scores)]
    low, high = np.maximum(boxes[:, None, :2], boxes[None, :, :2]), np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    both = np.prod(np.maximum(high - low, 0), -1)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], -1)
    over = both / (area[:, None] + area[None] - both) > 0.5
    n = boxes.shape[0]
    return jax.lax.fori_loop(
        0, n, lambda i, kept: kept & ~(over[i] & kept[i] & (np.arange(n) > i)), np.ones(n, np.bool_)
    )


def spectrogram(jax: Any, np: Any, x: Any, mel: Any) -> Any:
    frames = x[np.arange(0, x.shape[0] - 511, 256)[:, None] + np.arange(512)[None]]
    power = np.abs(np.fft.rfft(frames * np.hanning(512), axis=1)) ** 2
    return np.log(power @ mel + 1e-6)


def fft_convolution(jax: Any, np: Any, x: Any, w: Any) -> Any:
    return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(w, x.shape[-1]))


def filtered(jax: Any, np: Any, x: Any) -> Any:
    """A recursive filter of second order, along time."""

    def step(c: Any, v: Any) -> Any:
        y = 0.2 * v + 1.5 * c[0] - 0.7 * c[1]
        return (y, c[0]), y

    return jax.lax.scan(step, (np.zeros(x.shape[1]), np.zeros(x.shape[1])), x)[1]


# -- simulations -------------------------------------------------------------------------------------------------------
def lattice_boltzmann(jax: Any, np: Any, f: Any) -> Any:
    ex, ey = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1]), np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    w = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4], np.float32)

    def step(_: Any, f: Any) -> Any:
        rho = f.sum(0)
        u, v = (np.tensordot(e.astype(np.float32), f, 1) / rho for e in (ex, ey))
        cu = 3 * (ex[:, None, None] * u + ey[:, None, None] * v)
        equal = rho * w[:, None, None] * (1 + cu + cu * cu / 2 - 1.5 * (u * u + v * v))
        f = f - (f - equal) / 0.6
        pairs = zip((0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1), strict=True)
        return np.stack([np.roll(f[i], pair, (0, 1)) for i, pair in enumerate(pairs)])

    return jax.lax.fori_loop(0, 10, step, f)


def wave(jax: Any, np: Any, u: Any, v: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        u, before = c
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
        return (2 * u - before + 0.2 * around, u), around[0, 0]

    return jax.lax.scan(step, (u, v), None, length=20)


def heat_3d(jax: Any, np: Any, u: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        p = np.pad(u, 1)
        c = slice(1, -1)
        s = p[2:, c, c] + p[:-2, c, c] + p[c, 2:, c] + p[c, :-2, c] + p[c, c, 2:] + p[c, c, :-2]
        return u + 0.1 * (s - 6 * u)

    return jax.lax.fori_loop(0, 10, step, u)


def ising(jax: Any, np: Any, s: Any, seed: Any) -> Any:
    i, j = np.indices(s.shape)

    def half(n: Any, c: Any) -> Any:
        s, key = c
        key, now = jax.random.split(key)
        around = np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)
        turn = (jax.random.uniform(now, s.shape) < np.exp(-0.8 * s * around)) & ((i + j) % 2 == n % 2)
        return np.where(turn, -s, s), key

    return jax.lax.fori_loop(0, 10, half, (s, jax.random.wrap_key_data(seed)))[0]


def sinkhorn(jax: Any, np: Any, cost: Any) -> Any:
    k = np.exp(-cost)
    u, v = jax.lax.fori_loop(
        0, 20, lambda _, c: ((y := 1 / (k @ c[1])), 1 / (k.T @ y)), (np.ones(k.shape[0]), np.ones(k.shape[1]))
    )
    return u[:, None] * k * v


def sinkhorn_logs(jax: Any, np: Any, cost: Any) -> Any:
    def step(_: Any, c: Any) -> Any:
        f = -jax.nn.logsumexp(c[1][None] - cost, 1)
        return f, -jax.nn.logsumexp(f[:, None] - cost, 0)

    return jax.lax.fori_loop(0, 10, step, (np.zeros(cost.shape[0]), np.zeros(cost.shape[1])))


def shortest_paths(jax: Any, np: Any, d: Any) -> Any:
    return jax.lax.fori_loop(0, d.shape[0], lambda k, d: np.minimum(d, d[:, k, None] + d[k, None]), d)


def viterbi(jax: Any, np: Any, change: Any, seen: Any) -> Any:
    def step(s: Any, o: Any) -> Any:
        all_ = s[:, None] + change
        return all_.max(0) + o, all_.argmax(0)

    return jax.lax.scan(step, seen[0], seen[1:])


def forward_sums(jax: Any, np: Any, change: Any, seen: Any) -> Any:
    return jax.lax.scan(lambda s, o: (jax.nn.logsumexp(s[:, None] + change, 0) + o, None), seen[0], seen[1:])[0]


def edit_distance(jax: Any, np: Any, a: Any, b: Any) -> Any:
    def row(before: Any, c: Any) -> Any:
        least = np.minimum(before[1:] + 1, before[:-1] + (b != c))
        first = before[0] + 1
        n = np.arange(b.shape[0] + 1)
        return jax.lax.cummin(np.concatenate([first[None], least]) - n) + n, None

    return jax.lax.scan(row, np.arange(b.shape[0] + 1), a)[0][-1]


def particle_filter(jax: Any, np: Any, x: Any, seen: Any, seed: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        x, key = c
        key, a, b = jax.random.split(key, 3)
        x = 0.5 * x + 25 * x / (1 + x * x) + jax.random.normal(a, x.shape)
        w = np.cumsum(np.exp(-((y - x * x / 20) ** 2) / 2) + 1e-30)
        at = (np.arange(x.shape[0]) + jax.random.uniform(b)) / x.shape[0] * w[-1]
        x = x[np.clip(np.searchsorted(w, at), 0, x.shape[0] - 1)]
        return (x, key), x.mean()

    return jax.lax.scan(step, (x, jax.random.wrap_key_data(seed)), seen)[1]


def chains(jax: Any, np: Any, x: Any, seed: Any) -> Any:
    """Random walks of Metropolis, side by side."""

    def logp(x: Any) -> Any:
        return -(((1 - x[:, 0]) ** 2) + 10 * (x[:, 1] - x[:, 0] ** 2) ** 2)

    def step(c: Any, _: Any) -> Any:
        x, key = c
        key, a, b = jax.random.split(key, 3)
        new = x + 0.3 * jax.random.normal(a, x.shape)
        taken = np.log(jax.random.uniform(b, x.shape[:1])) < logp(new) - logp(x)
        x = np.where(taken[:, None], new, x)
        return (x, key), x.mean(0)

    return jax.lax.scan(step, (x, jax.random.wrap_key_data(seed)), None, length=50)[1]


def option_paths(jax: Any, np: Any, seed: Any) -> Any:
    z = jax.random.normal(jax.random.wrap_key_data(seed), (4096, 64))
    path = 100 * np.exp(np.cumsum(0.2 * z / 8 - 0.02 / 64, 1))
    return np.maximum(path.mean(1) - 100, 0).mean(), np.maximum(path.max(1) - 110, 0).mean()


def boids(jax: Any, np: Any, x: Any, v: Any) -> Any:
    d = x[:, None] - x[None]
    r = (d * d).sum(-1)
    near = r < 0.04
    count = near.sum(1, keepdims=True)
    apart = np.where((r < 0.01)[..., None], d, 0).sum(1)
    mean = (near[..., None] * x[None]).sum(1) / count
    speed = (near[..., None] * v[None]).sum(1) / count
    v = v + 0.1 * apart + 0.01 * (mean - x) + 0.1 * (speed - v)
    return x + v, v


def spheres(jax: Any, np: Any, rays: Any, centres: Any) -> Any:
    """The first sphere that each ray meets."""
    b = rays @ centres.T
    inside = b * b - (centres * centres).sum(1) + 0.25
    t = np.where((inside > 0) & (b > 0), b - np.sqrt(np.maximum(inside, 0)), np.inf)
    return t.min(1), t.argmin(1)


def runge_kutta(jax: Any, np: Any, y: Any) -> Any:
    """Steps whose size follows the error, for many starts at once, until all are at the end."""

    def f(y: Any) -> Any:
        return np.stack([y[:, 1], 2 * (1 - y[:, 0] ** 2) * y[:, 1] - y[:, 0]], 1)

    def step(c: Any) -> Any:
        t, y, h, n = c
        h = np.minimum(h, 2 - t)
        k1 = f(y)
        k2 = f(y + h[:, None] * k1 / 2)
        k3 = f(y + h[:, None] * 3 / 4 * k2)
        new = y + h[:, None] * (2 * k1 + 3 * k2 + 4 * k3) / 9
        wrong = np.abs(h[:, None] * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - f(new) / 8)).max(1) + 1e-12
        good = wrong < 1e-4
        t, y = np.where(good, t + h, t), np.where(good[:, None], new, y)
        return t, y, h * np.clip(0.9 * (1e-4 / wrong) ** (1 / 3), 0.2, 4), n + 1

    n = y.shape[0]
    first = np.zeros(n), y, np.full(n, 0.05), 0
    return jax.lax.while_loop(lambda c: (c[0] < 2 - 1e-5).any() & (c[3] < 200), step, first)[1]


# -- data --------------------------------------------------------------------------------------------------------------
def neighbours(jax: Any, np: Any, x: Any, q: Any) -> Any:
    d = (q * q).sum(1)[:, None] - 2 * q @ x.T + (x * x).sum(1)
    return jax.lax.top_k(-d, 8)


def kernel_matrix(jax: Any, np: Any, x: Any, y: Any) -> Any:
    d = ((x[:, None] - x[None]) ** 2).sum(-1)
    c = np.linalg.cholesky(np.exp(-d / 2) + 0.1 * np.eye(x.shape[0]))
    return jax.scipy.linalg.cho_solve((c, True), y), np.log(np.diag(c)).sum()


def page_rank(jax: Any, np: Any, a: Any) -> Any:
    a = a / a.sum(0)
    n = a.shape[0]
    return jax.lax.fori_loop(0, 20, lambda _, r: 0.85 * a @ r + 0.15 / n, np.full(n, 1 / n))


def regression(jax: Any, np: Any, x: Any, y: Any) -> Any:
    return np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)


def covariance(jax: Any, np: Any, x: Any) -> Any:
    return np.cov(x, rowvar=False), np.corrcoef(x, rowvar=False)


def sparse_product(jax: Any, np: Any, data: Any, rows: Any, columns: Any, x: Any) -> Any:
    return jax.ops.segment_sum(data * x[columns], rows, x.shape[0])


def graph_attention(jax: Any, np: Any, h: Any, source: Any, target: Any, a: Any) -> Any:
    e = jax.nn.leaky_relu((h @ a[0])[source] + (h @ a[1])[target])
    n = h.shape[0]
    e = np.exp(e - jax.ops.segment_max(e, target, n)[target])
    return jax.ops.segment_sum((e / jax.ops.segment_sum(e, target, n)[target])[:, None] * h[source], target, n)


def hamming(jax: Any, np: Any, a: Any, b: Any) -> Any:
    return jax.lax.population_count(a[:, None] ^ b[None]).sum(-1)


def packed_bits(jax: Any, np: Any, x: Any) -> Any:
    return np.packbits(x, axis=-1), np.unpackbits(np.packbits(x, axis=-1), axis=-1)


def quantiles(jax: Any, np: Any, x: Any) -> Any:
    return np.quantile(x, np.array([0.1, 0.5, 0.9]), axis=0), np.digitize(x, np.linspace(-2, 2, 16))


def table_lookup(jax: Any, np: Any, x: Any, at: Any, y: Any) -> Any:
    return np.interp(x, at, y)


def joint_histogram(jax: Any, np: Any, a: Any, b: Any) -> Any:
    return np.histogram2d(a, b, bins=32, range=[[-3, 3], [-3, 3]])[0]


def ranks(jax: Any, np: Any, x: Any) -> Any:
    return np.argsort(np.argsort(x, 1), 1)


def running_mean(jax: Any, np: Any, x: Any) -> Any:
    s = np.cumsum(np.pad(x, ((0, 0), (1, 0))), 1)
    return (s[:, 16:] - s[:, :-16]) / 16


def small_inverses(jax: Any, np: Any, a: Any, b: Any) -> Any:
    return np.linalg.inv(a), np.linalg.solve(a, b), np.linalg.det(a)


def permuted(jax: Any, np: Any, x: Any, seed: Any) -> Any:
    return jax.random.permutation(jax.random.wrap_key_data(seed), x)


def gammas(jax: Any, np: Any, seed: Any) -> Any:
    key = jax.random.wrap_key_data(seed)
    return jax.random.exponential(key, (65536,)), jax.random.truncated_normal(key, -2.0, 2.0, (65536,))


LAYER: Shapes = ("f32 128,256", "f32 256,768", "f32 256,256", "f32 256,1024", "f32 1024,256")
BLOCK: Shapes = ("f32 2,28,28,32", "f32 1,1,32,192", "f32 3,3,1,192", "f32 1,1,192,32")
RECURRENT: Shapes = ("f32 32,16,64", "f32 64,384", "f32 128,384", "f32 16,128")

APPLICATIONS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "encoder": (encoder, LAYER),
    "encoder bf16": (encoder, tuple(shape.replace("f32", "bf16") for shape in LAYER)),
    "encoder_gradient": (encoder_gradient, LAYER),
    "gru": (gru, RECURRENT),
    "gru_gradient": (gru_gradient, RECURRENT),
    "inverted_residual": (inverted_residual, BLOCK),
    "inverted_residual_gradient": (inverted_residual_gradient, BLOCK),
    "convnext": (convnext, ("f32 1,28,28,96", "f32 7,7,1,96", "f32 96,384", "f32 384,96")),
    "unet_step": (unet_step, ("f32 1,64,64,16", "f32 3,3,16,32", "f32 3,3,32,64", "f32 3,3,96,16")),
    "cnn_gradient": (cnn_gradient, ("f32 32,28,28,1", "s32 32", "f32 3,3,1,16", "f32 3,3,16,32", "f32 1568,10")),
    "rotary_decode": (rotary_decode, ("f32 1024", "f32 512,16,64", "f32 512,16,64", "f32 1024,3072", "s32")),
    "linear_attention": (linear_attention, ("f32 512,32", "f32 512,32", "f32 512,32")),
    "state_space": (state_space, ("f32 1024,64", "f32 1024,64")),
    "cross_entropy_gradient": (cross_entropy_gradient, ("f32 64,32000", "s32 64")),
    "contrastive_gradient": (contrastive_gradient, ("f32 256,128", "f32 256,128")),
    "word_vectors": (word_vectors, ("f32 10000,64", "f32 10000,64", "s32 128", "s32 128,6")),
    "adafactor": (adafactor, ("f32 1024,1024", "f32 1024,1024", "f32 1024", "f32 1024")),
    "nucleus": (nucleus, ("f32 4,32000", "u32 2")),
    "beam": (beam, ("f32 4", "f32 4,32000")),
    "quantized": (quantized, ("f32 64,1024", "s8 1024,1024", "f32 1024")),
    "ensemble": (ensemble, ("f32 64,16", "f32 32,16,64", "f32 32,64,4")),
    "hessian": (hessian, ("f32 32", "f32 64,8")),
    "blur": (blur, ("f32 512,512",)),
    "edges": (edges, ("f32 512,512",)),
    "equalized": (equalized, ("u8 512,512",)),
    "resized": (resized, ("f32 256,256,3",)),
    "rotated": (rotated, ("f32 256,256",)),
    "normalized_image": (normalized_image, ("u8 8,224,224,3",)),
    "suppressed": (suppressed, ("f32 256,4", "f32 256")),
    "spectrogram": (spectrogram, ("f32 65536", "f32 257,80")),
    "fft_convolution": (fft_convolution, ("f32 16,8192", "f32 256")),
    "filtered": (filtered, ("f32 1000,64",)),
    "lattice_boltzmann": (lattice_boltzmann, ("f32 9,128,128",)),
    "wave": (wave, ("f32 256,256", "f32 256,256")),
    "heat_3d": (heat_3d, ("f32 64,64,64",)),
    "ising": (ising, ("f32 256,256", "u32 2")),
    "sinkhorn": (sinkhorn, ("f32 512,512",)),
    "sinkhorn_logs": (sinkhorn_logs, ("f32 256,256",)),
    "shortest_paths": (shortest_paths, ("f32 128,128",)),
    "viterbi": (viterbi, ("f32 64,64", "f32 256,64")),
    "forward_sums": (forward_sums, ("f32 64,64", "f32 256,64")),
    "edit_distance": (edit_distance, ("s32 256", "s32 256")),
    "particle_filter": (particle_filter, ("f32 1024", "f32 50", "u32 2")),
    "chains": (chains, ("f32 1024,2", "u32 2")),
    "option_paths": (option_paths, ("u32 2",)),
    "boids": (boids, ("f32 512,2", "f32 512,2")),
    "spheres": (spheres, ("f32 16384,3", "f32 32,3")),
    "runge_kutta": (runge_kutta, ("f32 256,2",)),
    "neighbours": (neighbours, ("f32 4096,32", "f32 64,32")),
    "kernel_matrix": (kernel_matrix, ("f32 256,8", "f32 256")),
    "page_rank": (page_rank, ("f32 1024,1024",)),
    "regression": (regression, ("f32 4096,32", "f32 4096")),
    "covariance": (covariance, ("f32 4096,64",)),
    "sparse_product": (sparse_product, ("f32 65536", "s32 65536", "s32 65536", "f32 4096")),
    "graph_attention": (graph_attention, ("f32 1024,32", "s32 8192", "s32 8192", "f32 2,32")),
    "hamming": (hamming, ("u32 256,8", "u32 256,8")),
    "packed_bits": (packed_bits, ("u8 1024,1024",)),
    "quantiles": (quantiles, ("f32 1024,64",)),
    "table_lookup": (table_lookup, ("f32 16384", "f32 256", "f32 256")),
    "joint_histogram": (joint_histogram, ("f32 16384", "f32 16384")),
    "ranks": (ranks, ("f32 128,512",)),
    "running_mean": (running_mean, ("f32 256,4096",)),
    "small_inverses": (small_inverses, ("f32 1024,3,3", "f32 1024,3,1")),
    "permuted": (permuted, ("f32 65536", "u32 2")),
    "gammas": (gammas, ("u32 2",)),
}


def hlo_text(function: Callable[..., Any], shapes: Shapes) -> str:
    """HLO of a function, as JAX lowers it."""
    import jax

    from ..formats.files import load_module
    from ..formats.text.printer import print_module

    given = []
    for shape in shapes:
        dtype, _, sizes = shape.partition(" ")
        given.append(jax.ShapeDtypeStruct([int(n) for n in sizes.split(",") if n], TYPES[dtype]))
    lowered = jax.jit(partial(function, jax, jax.numpy)).lower(*given).as_text()
    return print_module(load_module(lowered.encode(), "function.mlir").module)


PROGRAMS = {name: partial(hlo_text, f, shapes) for name, (f, shapes) in APPLICATIONS.items()}


def main(argv: Sequence[str] | None = None) -> int:
    return op_shapes.main(argv, PROGRAMS, __doc__, integers=256)


if __name__ == "__main__":
    sys.exit(main())
