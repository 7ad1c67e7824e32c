"""Elementwise chains and conversions."""

from __future__ import annotations

import numpy as np

from ..workload import Case, Draw, Register, jnp, lax, module_text

ELEMENTWISE = Register("elementwise")
CONVERSIONS = Register("conversions")

M4 = 4 * 1024 * 1024


def _chain() -> Case:
    s = f"f32[{M4}]{{0}}"
    body = f"""
        ab = {s} multiply(a, b)
        sum = {s} add(ab, a)
        t = {s} tanh(sum)
        ROOT r = {s} exponential(t)"""
    draw = Draw()
    return Case(
        (draw.uniform(M4), draw.uniform(M4)),
        module_text([("a", s), ("b", s)], body),
        numpy=lambda a, b: np.exp(np.tanh(a * b + a)),
        torch=lambda torch, a, b: torch.exp(torch.tanh(a * b + a)),
    )


def _exp_log_sin() -> Case:
    s = f"f32[{M4}]{{0}}"
    body = f"""
        e = {s} exponential(x)
        l = {s} log(y)
        el = {s} multiply(e, l)
        i = {s} sine(x)
        ROOT r = {s} multiply(el, i)"""
    draw = Draw()
    return Case(
        (draw.uniform(M4), draw.uniform(M4, low=0.1, high=4)),
        module_text([("x", s), ("y", s)], body),
        numpy=lambda x, y: np.exp(x) * np.log(y) * np.sin(x),
        torch=lambda torch, x, y: torch.exp(x) * torch.log(y) * torch.sin(x),
    )


def _horner(dtype: str, size: int, degree: int = 16) -> Case:
    """A polynomial by Horner's rule: arithmetic, hardly any memory traffic."""
    s = f"{dtype}[{size}]{{0}}"
    lines = []
    value = "x"
    for n in range(degree):
        lines += [
            f"k{n} = {dtype}[] constant({1 / (n + 1)!r})",
            f"c{n} = {s} broadcast(k{n}), dimensions={{}}",
            f"m{n} = {s} multiply({value}, x)",
            f"{'ROOT ' if n == degree - 1 else ''}a{n} = {s} add(m{n}, c{n})",
        ]
        value = f"a{n}"
    return Case((Draw().uniform(size, dtype=dtype),), module_text([("x", s)], "\n".join(lines)))


def _axpy(dtype: str) -> Case:
    s = f"{dtype}[{M4}]{{0}}"
    body = f"""
        k = {dtype}[] constant(1.5)
        c = {s} broadcast(k), dimensions={{}}
        m = {s} multiply(c, x)
        ROOT r = {s} add(m, y)"""
    draw = Draw()
    return Case(
        (draw.uniform(M4, dtype=dtype), draw.uniform(M4, dtype=dtype)),
        module_text([("x", s), ("y", s)], body),
        numpy=(lambda x, y: x * x.dtype.type(1.5) + y) if dtype != "bf16" else None,
        torch=lambda torch, x, y: x * 1.5 + y,
    )


def _complex() -> Case:
    s = "c64[1048576]{0}"
    body = f"""
        p = {s} multiply(x, y)
        ROOT r = {s} divide(p, z)"""
    draw = Draw()
    return Case(
        tuple(draw.uniform(1 << 20, dtype="c64") for _ in range(3)),
        module_text([("x", s), ("y", s), ("z", s)], body),
        numpy=lambda x, y, z: x * y / z,
        torch=lambda torch, x, y, z: x * y / z,
    )


def _hash() -> Case:
    s = f"u32[{M4}]{{0}}"
    lines, value = [], "x"
    for n, (shift, factor) in enumerate(((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1))):
        lines += [
            f"k{n} = u32[] constant({shift})",
            f"by{n} = {s} broadcast(k{n}), dimensions={{}}",
            f"f{n} = u32[] constant({factor})",
            f"m{n} = {s} broadcast(f{n}), dimensions={{}}",
            f"h{n} = {s} shift-right-logical({value}, by{n})",
            f"x{n} = {s} xor({value}, h{n})",
            f"{'ROOT ' if n == 2 else ''}v{n} = {s} multiply(x{n}, m{n})",
        ]
        value = f"v{n}"
    return Case((Draw().integers(0, 1 << 32, M4, dtype=np.uint32),), module_text([("x", s)], "\n".join(lines)))


def _bias() -> Case:
    s, v = "f32[4096,1024]{1,0}", "f32[1024]{0}"
    body = f"""
        bb = {s} broadcast(b), dimensions={{1}}
        a = {s} add(x, bb)
        z = f32[] constant(0)
        zz = {s} broadcast(z), dimensions={{}}
        ROOT r = {s} maximum(a, zz)"""
    draw = Draw()
    return Case(
        (draw.uniform(4096, 1024), draw.uniform(1024)),
        module_text([("x", s), ("b", v)], body),
        numpy=lambda x, b: np.maximum(x + b, np.float32(0)),
        torch=lambda torch, x, b: torch.relu(x + b),
    )


ELEMENTWISE.hlo("chain_4m", _chain)
ELEMENTWISE.hlo("exp_log_sin_4m", _exp_log_sin)
ELEMENTWISE.hlo("horner16_f32_4m", lambda: _horner("f32", M4))
ELEMENTWISE.hlo("horner16_f64_1m", lambda: _horner("f64", 1 << 20))
ELEMENTWISE.hlo("axpy_f32_4m", lambda: _axpy("f32"))
ELEMENTWISE.hlo("axpy_bf16_4m", lambda: _axpy("bf16"))
ELEMENTWISE.hlo("complex_c64_1m", _complex)
ELEMENTWISE.hlo("hash_u32_4m", _hash)
ELEMENTWISE.hlo("bias_relu_4096x1024", _bias)


@ELEMENTWISE.jax("gelu_tanh_4m")
def _gelu() -> Case:
    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    return Case(
        (Draw().uniform(M4, low=-4, high=4),),
        function=gelu,
        torch=lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    )


@ELEMENTWISE.jax("black_scholes_1m")
def _black_scholes() -> Case:
    """Prices of European calls and puts. Source: F. Black, M. Scholes, J. Political Economy 81 (1973) 637."""

    def prices(spot, strike, years, rate, volatility):
        def normal(x):
            return 0.5 * (1 + lax.erf(x * 0.7071067811865476))

        spread = volatility * jnp.sqrt(years)
        d1 = (jnp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
        d2 = d1 - spread
        discounted = strike * jnp.exp(-rate * years)
        call = spot * normal(d1) - discounted * normal(d2)
        return call, call - spot + discounted

    draw, n = Draw(), 1 << 20
    ranges = ((10, 100), (10, 100), (0.2, 2), (0.01, 0.05), (0.1, 0.5))
    return Case(tuple(draw.uniform(n, low=a, high=b) for a, b in ranges), function=prices)


def _converted(source: str, types: tuple[str, ...], low: float = -1.0, high: float = 1.0) -> Case:
    lines, value = [], "x"
    for n, dtype in enumerate(types):
        lines.append(f"{'ROOT ' if n == len(types) - 1 else ''}c{n} = {dtype}[{M4}]{{0}} convert({value})")
        value = f"c{n}"
    draw = Draw()
    x = (
        draw.uniform(M4, low=low, high=high, dtype=source)
        if source != "s8"
        else draw.integers(-128, 128, M4, dtype=np.int8)
    )
    return Case((x,), module_text([("x", f"{source}[{M4}]{{0}}")], "\n".join(lines)))


CONVERSIONS.hlo("convert_f32_bf16", lambda: _converted("f32", ("bf16",)))
CONVERSIONS.hlo("convert_bf16_f32", lambda: _converted("bf16", ("f32",)))
CONVERSIONS.hlo("convert_f32_f16", lambda: _converted("f32", ("f16",)))
CONVERSIONS.hlo("convert_f64_f32", lambda: _converted("f64", ("f32",)))
CONVERSIONS.hlo("convert_f32_s8", lambda: _converted("f32", ("s8",), -120, 120))
CONVERSIONS.hlo("convert_f32_s32", lambda: _converted("f32", ("s32",), -1e6, 1e6))
CONVERSIONS.hlo("convert_f64_bf16_f64", lambda: _converted("f64", ("bf16", "f64")))
CONVERSIONS.hlo("convert_chain", lambda: _converted("f32", ("f16", "f32", "s32", "f32", "bf16", "f32"), -100, 100))
