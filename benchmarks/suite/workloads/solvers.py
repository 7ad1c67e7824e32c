"""Solvers and simulations, most of them loops with a fixed number of steps."""

from __future__ import annotations

import numpy as np

from ..workload import Case, Draw, Register, jax, jnp, lax, module_text

SOLVERS = Register("solvers")
LOOPS = Register("while-loops")


@SOLVERS.jax("nbody_512_10_steps")
def _nbody() -> Case:
    def acceleration(x, mass):
        apart = x[None] - x[:, None]
        squared = (apart**2).sum(-1) + 0.05
        return (apart * (mass[None] * squared**-1.5)[..., None]).sum(1)

    def run(x, v, mass):
        def step(_, state):
            x, v, a = state
            v = v + 0.005 * a
            x = x + 0.01 * v
            a = acceleration(x, mass)
            return x, v + 0.005 * a, a

        return lax.fori_loop(0, 10, step, (x, v, acceleration(x, mass)))[:2]

    draw = Draw()
    return Case((draw.normal(512, 3), draw.normal(512, 3, scale=0.1), draw.uniform(512, low=0.1)), function=run)


@SOLVERS.jax("jacobi_512_50_steps")
def _jacobi() -> Case:
    def step(_, u):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return u.at[1:-1, 1:-1].set(inner)

    return Case((Draw().uniform(512, 512),), function=lambda u: lax.fori_loop(0, 50, step, u))


@SOLVERS.jax("lorenz_rk4_f64")
def _lorenz() -> Case:
    def slope(s):
        x, y, z = s
        return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    def run(s):
        def step(_, s):
            h = 0.005
            k1 = slope(s)
            k2 = slope(s + h / 2 * k1)
            k3 = slope(s + h / 2 * k2)
            k4 = slope(s + h * k3)
            return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return lax.fori_loop(0, 100, step, s)

    return Case((Draw().normal(3, 1024, dtype="f64"),), function=run, x64=True)


@SOLVERS.jax("conjugate_gradient_512")
def _conjugate_gradient() -> Case:
    def run(a, b):
        def step(_, state):
            x, r, p, rr = state
            ap = a @ p
            alpha = rr / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + new / rr * p, new

        return lax.fori_loop(0, 30, step, (jnp.zeros_like(b), b, b, b @ b))[0]

    draw, n = Draw(), 512
    m = draw.normal(n, n, scale=n**-0.5)
    return Case((m @ m.T + np.eye(n, dtype=np.float32), draw.normal(n)), function=run)


@SOLVERS.jax("newton_f64_2^16")
def _newton() -> Case:
    """Cube roots by Newton's method."""
    return Case(
        (Draw().uniform(1 << 16, low=0.5, high=8, dtype="f64"),),
        function=lambda x: lax.fori_loop(0, 8, lambda _, r: r - (r**3 - x) / (3 * r**2), x),
        x64=True,
    )


@SOLVERS.jax("kmeans_4096x16")
def _kmeans() -> Case:
    def step(_, centres, x):
        nearest = ((x[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
        member = jax.nn.one_hot(nearest, centres.shape[0])
        return (member.T @ x) / jnp.maximum(member.sum(0)[:, None], 1)

    draw = Draw()
    return Case(
        (draw.normal(4096, 16), draw.normal(32, 16)),
        function=lambda x, c: lax.fori_loop(0, 3, lambda i, centres: step(i, centres, x), c),
    )


@SOLVERS.jax("spectral_burgers_256")
def _burgers() -> Case:
    def run(u):
        k = 2 * np.pi * jnp.fft.rfftfreq(256, 1 / 256)

        def step(_, v):
            u = jnp.fft.irfft(v)
            return (v - 1e-4 * 0.5j * k * jnp.fft.rfft(u * u)) / (1 + 1e-4 * 0.01 * k**2)

        return jnp.fft.irfft(lax.fori_loop(0, 50, step, jnp.fft.rfft(u)))

    return Case((np.sin(2 * np.pi * np.arange(256, dtype=np.float32) / 256),), function=run)


@LOOPS.jax("while_scalar_10^5")
def _scalar_loop() -> Case:
    def run(n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 5 + s[0]), (jnp.int32(0), jnp.int32(1)))[
            1
        ]

    return Case((np.int32(100_000),), function=run)


def _counted(trips: int, step: str) -> Case:
    """A loop on 8 floats. step: HLO lines that make y of x and the vectors half, one, two; it adds one, or nothing."""
    state = "(s32[], f32[8]{0})"
    constants = "\n".join(
        f"  {name}0 = f32[] constant({value})\n  {name} = f32[8]{{0}} broadcast({name}0), dimensions={{}}"
        for name, value in (("half", 0.5), ("one", 1), ("two", 2))
    )
    computations = f"""
condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT go = pred[] compare(i, n), direction=LT
}}

body {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8]{{0}} get-tuple-element(s), index=1
  next0 = s32[] constant(1)
  next = s32[] add(i, next0)
{constants}
{step}
  ROOT r = {state} tuple(next, y)
}}
"""
    entry = f"""
zero = s32[] constant(0)
s = {state} tuple(zero, x)
w = {state} while(s), condition=condition, body=body
ROOT y = f32[8]{{0}} get-tuple-element(w), index=1"""
    grown = trips if "add(x, one)" in step and "subtract" not in step else 0
    x = np.arange(8, dtype=np.float32)
    return Case((x,), module_text([("x", "f32[8]{0}")], entry, computations), exact=lambda x: x + grown)


def _barred(*ops: str) -> str:
    """Each op a kernel of its own; the last one makes y."""
    lines, value = [], "x"
    for n, op in enumerate(ops):
        name, operand = op.split()
        lines.append(f"  op{n} = f32[8]{{0}} {name}({value}, {operand})")
        value = "y" if n == len(ops) - 1 else f"x{n}"
        lines.append(f"  {value} = f32[8]{{0}} opt-barrier(op{n})")
    return "\n".join(lines)


SAME = ("multiply half", "add one", "multiply two", "subtract two")
"""Four ops that leave multiples of 1/8 below 2^20 as they are."""

LOOPS.hlo("while_add_10^6", lambda: _counted(1_000_000, "  y = f32[8]{0} add(x, one)"))
LOOPS.hlo("while_8_kernels_10^5", lambda: _counted(100_000, _barred(*SAME, *SAME)))


@LOOPS.jax("while_vector_10^4")
def _vector_loop() -> Case:
    return Case((Draw().uniform(64),), function=lambda x: lax.fori_loop(0, 10_000, lambda _, v: v * 0.999 + 0.001, x))


@LOOPS.jax("mandelbrot_256_50")
def _mandelbrot() -> Case:
    def run(x, y):
        re0, im0 = jnp.broadcast_arrays(x[None], y[:, None])

        def body(state):
            step, re, im, count = state
            inside = re * re + im * im <= 4
            re, im = jnp.where(inside, re * re - im * im + re0, re), jnp.where(inside, 2 * re * im + im0, im)
            return step + 1, re, im, count + inside.astype(jnp.int32)

        zero = jnp.zeros_like(re0)
        return lax.while_loop(lambda s: s[0] < 50, body, (0, zero, zero, zero.astype(jnp.int32)))[3]

    return Case(
        (np.linspace(-2.03, 0.97, 256, dtype=np.float32), np.linspace(-1.1, 1.13, 256, dtype=np.float32)), function=run
    )


@LOOPS.jax("scan_rows_1000x1024")
def _scan() -> Case:
    def run(x):
        return lax.scan(lambda carry, row: (0.9 * carry + row, carry.max()), jnp.zeros(1024), x)

    return Case((Draw().normal(1000, 1024),), function=run)
