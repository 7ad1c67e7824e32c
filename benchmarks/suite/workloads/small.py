"""Programs that take microseconds: what a call and a small kernel cost."""

from __future__ import annotations

import numpy as np

from ..workload import Case, Draw, Register, jnp, lax, module_text

SMALL = Register("small-kernels")


def _add_one() -> Case:
    body = """
        one = f32[] constant(1)
        ones = f32[8]{0} broadcast(one), dimensions={}
        ROOT r = f32[8]{0} add(x, ones)"""
    return Case(
        (Draw().uniform(8),),
        module_text([("x", "f32[8]{0}")], body),
        numpy=lambda x: x + np.float32(1),
        torch=lambda torch, x: x + 1,
    )


def _small_dots(count: int = 50) -> Case:
    """Products of 16 × 16 matrices, each with a tanh behind it: a chain of small kernels."""
    s, lines, value = "f32[16,16]{1,0}", [], "x"
    for n in range(count):
        root = "ROOT " if n == count - 1 else ""
        lines += [
            f"d{n} = {s} dot({value}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            f"{root}t{n} = {s} tanh(d{n})",
        ]
        value = f"t{n}"
    draw = Draw()
    return Case(
        (draw.uniform(16, 16), draw.uniform(16, 16, low=-0.3, high=0.3)),
        module_text([("x", s), ("w", s)], "\n".join(lines)),
    )


def _many_updates(count: int = 40) -> Case:
    """One step of momentum on many small arrays, as an optimiser does: many parameters and results."""
    s = "f32[64]{0}"
    parameters, lines, results = (
        [],
        ["rate = f32[] constant(0.01)", f"rates = {s} broadcast(rate), dimensions={{}}"],
        [],
    )
    for n in range(count):
        parameters += [(f"p{n}", s), (f"g{n}", s)]
        lines += [f"step{n} = {s} multiply(g{n}, rates)", f"n{n} = {s} subtract(p{n}, step{n})"]
        results.append(f"n{n}")
    lines.append(f"ROOT r = ({', '.join([s] * count)}) tuple({', '.join(results)})")
    draw = Draw()
    return Case(tuple(draw.uniform(64) for _ in parameters), module_text(parameters, "\n".join(lines)))


def _row_of_kernels(size: int, count: int = 1000) -> Case:
    """Kernels on one small array that nothing fuses, because a barrier stands behind each."""
    s, lines = f"f32[{size}]{{0}}", []
    for n in range(count):
        op = ("add", "multiply", "subtract", "maximum", "minimum", "divide")[n % 6]
        root = "ROOT " if n == count - 1 else ""
        lines += [f"op{n} = {s} {op}(x{n}, w)", f"{root}x{n + 1} = {s} opt-barrier(op{n})"]
    draw = Draw()
    text = module_text([("x0", s), ("w", s)], "\n".join(lines))
    return Case((draw.uniform(size), draw.uniform(size, low=0.9, high=1.1)), text)


SMALL.hlo("add_one_8", _add_one)
SMALL.hlo("kernels_8_x1000", lambda: _row_of_kernels(8))
SMALL.hlo("kernels_256_x1000", lambda: _row_of_kernels(256))
SMALL.hlo("dot_tanh_16_x50", _small_dots)
SMALL.hlo("updates_x40", _many_updates)


@SMALL.jax("mixed_small_ops")
def _mixed() -> Case:
    def run(x, i):
        y = jnp.sort(x, 1)
        z = jnp.cumsum(y, 0)[::-1]
        w = lax.dynamic_slice(z, (i, 0), (4, 16)) @ x.T
        return jnp.argmax(w, 1), jnp.concatenate([w, z[:4]], 1), x[w.astype(jnp.int32) % 16].sum(1)

    return Case((Draw().uniform(16, 16), np.int32(3)), function=run)


@SMALL.jax("switch_small")
def _switch() -> Case:
    branches = [lambda v: v + 1, lambda v: jnp.tanh(v), lambda v: v @ v.T, lambda v: v[::-1]]
    return Case((np.int32(2), Draw().uniform(16, 16)), function=lambda i, x: lax.switch(i, branches, x))
