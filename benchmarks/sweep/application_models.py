"""Filters, simulations and statistics of `applications`: functions of jax, jax.numpy and arrays."""

from __future__ import annotations

from typing import Any


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
