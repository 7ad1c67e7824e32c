"""Softmax and norms over rows."""

from __future__ import annotations

from ..workload import Case, Draw, Register, fold_text, jax, jnp, lax, module_text

NORMS = Register("norms")


def _softmax_text(rows: int, length: int) -> Case:
    s, v = f"f32[{rows},{length}]{{1,0}}", f"f32[{rows}]{{0}}"
    body = f"""
        low = f32[] constant(-inf)
        m = {v} reduce(x, low), dimensions={{1}}, to_apply=largest
        mb = {s} broadcast(m), dimensions={{0}}
        d = {s} subtract(x, mb)
        e = {s} exponential(d)
        zero = f32[] constant(0)
        t = {v} reduce(e, zero), dimensions={{1}}, to_apply=sum
        tb = {s} broadcast(t), dimensions={{0}}
        ROOT r = {s} divide(e, tb)"""
    folds = fold_text("largest", "f32", "maximum") + fold_text("sum", "f32", "add")
    return Case(
        (Draw().normal(rows, length),),
        module_text([("x", s)], body, folds),
        torch=lambda torch, x: torch.softmax(x, 1),
    )


NORMS.hlo("softmax_4096x1024", lambda: _softmax_text(4096, 1024))
NORMS.hlo("softmax_32x131072", lambda: _softmax_text(32, 1 << 17))
NORMS.hlo("softmax_65536x32", lambda: _softmax_text(65536, 32))


@NORMS.jax("softmax_bf16")
def _softmax_bf16() -> Case:
    return Case((Draw().normal(2048, 1024, dtype="bf16"),), function=lambda x: jax.nn.softmax(x, -1))


@NORMS.jax("log_softmax")
def _log_softmax() -> Case:
    return Case(
        (Draw().normal(4096, 1024),),
        function=lambda x: jax.nn.log_softmax(x, -1),
        torch=lambda torch, x: torch.log_softmax(x, 1),
    )


def layer_norm(x, gamma, beta):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta


def rms_norm(x, gamma):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma


@NORMS.jax("layer_norm_4096x1024")
def _layer_norm() -> Case:
    draw = Draw()
    return Case(
        (draw.normal(4096, 1024), draw.uniform(1024, low=0.5, high=1.5), draw.uniform(1024)),
        function=layer_norm,
        torch=lambda torch, x, gamma, beta: torch.nn.functional.layer_norm(x, (1024,), gamma, beta),
    )


@NORMS.jax("rms_norm_4096x1024")
def _rms_norm() -> Case:
    draw = Draw()
    return Case((draw.normal(4096, 1024), draw.uniform(1024, low=0.5, high=1.5)), function=rms_norm)


@NORMS.jax("layer_norm_gradient")
def _layer_norm_gradient() -> Case:
    def gradient(x, gamma, beta, seed):
        return jax.vjp(layer_norm, x, gamma, beta)[1](seed)

    draw = Draw()
    inputs = draw.normal(2048, 768), draw.uniform(768, low=0.5, high=1.5), draw.uniform(768), draw.normal(2048, 768)
    return Case(inputs, function=gradient)


@NORMS.jax("batch_norm_training")
def _batch_norm() -> Case:
    def norm(x, gamma, beta):
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x - mean).mean((0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta, mean, variance

    draw = Draw()
    return Case((draw.normal(16, 56, 56, 64), draw.uniform(64), draw.uniform(64)), function=norm)
