"""Matrix products of every type and aspect ratio."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..workload import Case, Draw, Register, module_text, shape_text

DOTS = Register("dots")


def _inputs(draw: Draw, dims: tuple[int, ...], dtype: str) -> np.ndarray:
    return draw.integers(-128, 128, *dims, dtype=np.int8) if dtype == "s8" else draw.uniform(*dims, dtype=dtype)


def _dot(m: int, k: int, n: int, dtype: str = "f32", transposed: bool = False) -> Callable[[], Case]:
    """m × k by k × n, or by n × k if `transposed`; s8 gives s32, all others their own type."""

    def make() -> Case:
        draw = Draw()
        right = (n, k) if transposed else (k, n)
        result = "s32" if dtype == "s8" else dtype
        body = f"""
            ROOT r = {shape_text(result, (m, n))} dot(a, b), lhs_contracting_dims={{1}}, \
rhs_contracting_dims={{{int(transposed)}}}"""
        plain = dtype in ("f32", "f64", "c64")
        return Case(
            (_inputs(draw, (m, k), dtype), _inputs(draw, right, dtype)),
            module_text([("a", shape_text(dtype, (m, k))), ("b", shape_text(dtype, right))], body),
            numpy=(lambda a, b: a @ (b.T if transposed else b)) if plain else None,
            torch=(lambda torch, a, b: a @ (b.T if transposed else b)) if dtype != "s8" else None,
        )

    return make


def _batched(batch: int, m: int, k: int, n: int, dtype: str = "f32") -> Callable[[], Case]:
    def make() -> Case:
        draw = Draw()
        a, b, r = (batch, m, k), (batch, k, n), (batch, m, n)
        body = f"""
            ROOT r = {shape_text(dtype, r)} dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, \
lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}"""
        return Case(
            (_inputs(draw, a, dtype), _inputs(draw, b, dtype)),
            module_text([("a", shape_text(dtype, a)), ("b", shape_text(dtype, b))], body),
            numpy=lambda a, b: a @ b,
            torch=lambda torch, a, b: a @ b,
        )

    return make


def _two_depths(m: int, k: int, n: int) -> Callable[[], Case]:
    """Two contracted dimensions of size k that are apart in the left operand: abcd,bde->ace."""

    def make() -> Case:
        draw = Draw()
        a, b, r = (m, k, k, k), (k, k, n), (m, k, n)
        body = f"""
            ROOT r = {shape_text("f32", r)} dot(a, b), lhs_contracting_dims={{1,3}}, rhs_contracting_dims={{0,1}}"""
        return Case(
            (_inputs(draw, a, "f32"), _inputs(draw, b, "f32")),
            module_text([("a", shape_text("f32", a)), ("b", shape_text("f32", b))], body),
            numpy=lambda a, b: np.tensordot(a, b, ((1, 3), (0, 1))),
            torch=lambda torch, a, b: torch.tensordot(a, b, ((1, 3), (0, 1))),
        )

    return make


def _vector(m: int, k: int, dtype: str) -> Callable[[], Case]:
    """A matrix by a vector."""

    def make() -> Case:
        draw = Draw()
        body = f"ROOT r = {shape_text(dtype, (m,))} dot(a, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        return Case(
            (_inputs(draw, (m, k), dtype), _inputs(draw, (k,), dtype)),
            module_text([("a", shape_text(dtype, (m, k))), ("x", shape_text(dtype, (k,)))], body),
            numpy=(lambda a, x: a @ x) if dtype != "bf16" else None,
            torch=lambda torch, a, x: a @ x,
        )

    return make


def _scalar_product(size: int) -> Case:
    draw = Draw()
    s = f"f32[{size}]{{0}}"
    body = "ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    return Case(
        (draw.uniform(size, low=0.0), draw.uniform(size, low=0.0)),
        module_text([("x", s), ("y", s)], body),
        numpy=lambda x, y: x @ y,
        torch=lambda torch, x, y: x @ y,
    )


for _n in (64, 256, 512, 1024):
    DOTS.hlo(f"dot_f32_{_n}", _dot(_n, _n, _n))
DOTS.hlo("dot_f32_512_nt", _dot(512, 512, 512, transposed=True))
DOTS.hlo("dot_f64_512", _dot(512, 512, 512, "f64"))
DOTS.hlo("dot_bf16_512", _dot(512, 512, 512, "bf16"))
DOTS.hlo("dot_bf16_1024", _dot(1024, 1024, 1024, "bf16"))
DOTS.hlo("dot_f16_256", _dot(256, 256, 256, "f16"))
DOTS.hlo("dot_s8_s32_512", _dot(512, 512, 512, "s8"))
DOTS.hlo("dot_c64_256", _dot(256, 256, 256, "c64"))
DOTS.hlo("dot_f32_batched", _batched(96, 64, 64, 64))
DOTS.hlo("dot_f32_tall", _dot(65536, 64, 64))
DOTS.hlo("dot_f32_wide", _dot(64, 512, 16384))
DOTS.hlo("dot_f32_outer", _dot(2048, 1, 2048))
DOTS.hlo("dot_f32_8x10^6x8", _dot(8, 1_000_000, 8))
DOTS.hlo("dot_f32_128x4096x512", _dot(128, 4096, 512))
DOTS.hlo("dot_bf16_128x4096x512", _dot(128, 4096, 512, "bf16"))
DOTS.hlo("dot_f16_64x3072x512", _dot(64, 3072, 512, "f16"))
DOTS.hlo("dot_f32_8x1000003x8", _dot(8, 1_000_003, 8))
DOTS.hlo("dot_f32_8x4096x128", _dot(8, 4096, 128))
DOTS.hlo("dot_f32_12x10007x32", _dot(12, 10007, 32))
DOTS.hlo("dot_f32_5000x300x3", _dot(5000, 300, 3))
DOTS.hlo("dot_f32_513x511x509", _dot(513, 511, 509))
DOTS.hlo("dot_f32_two_depths", _two_depths(32, 16, 512))
DOTS.hlo("decode_f32_4096", _dot(1, 4096, 4096))
DOTS.hlo("decode_bf16_4096", _dot(1, 4096, 4096, "bf16"))
DOTS.hlo("matvec_f32_4096", _vector(4096, 4096, "f32"))
DOTS.hlo("scalar_product_2^22", lambda: _scalar_product(1 << 22))
