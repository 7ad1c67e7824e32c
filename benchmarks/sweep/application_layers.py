"""Layers, losses and optimisers of `applications`: functions of jax, jax.numpy and arrays."""

from __future__ import annotations

from typing import Any


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
