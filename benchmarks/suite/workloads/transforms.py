"""Fourier transforms and linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..workload import Case, Draw, Register, jax, jnp, module_text

FFT = Register("fft")
LINALG = Register("linear-algebra")


def _fft(dims: tuple[int, int], kind: str, lengths: tuple[int, ...], result: str, dtype: str = "c64") -> Case:
    body = f"ROOT r = {result} fft(x), fft_type={kind}, fft_length={{{','.join(map(str, lengths))}}}"
    in_numpy: dict[tuple[str, int], Callable[[np.ndarray], Any]] = {
        ("FFT", 1): np.fft.fft,
        ("FFT", 2): np.fft.fft2,
        ("RFFT", 1): np.fft.rfft,
        ("IRFFT", 1): np.fft.irfft,
    }
    return Case(
        (Draw().uniform(*dims, dtype=dtype),),
        module_text([("x", f"{dtype}[{dims[0]},{dims[1]}]{{1,0}}")], body),
        numpy=in_numpy[kind, len(lengths)],
    )


FFT.hlo("fft_16x65536", lambda: _fft((16, 65536), "FFT", (65536,), "c64[16,65536]{1,0}"))
FFT.hlo("fft_256x1000", lambda: _fft((256, 1000), "FFT", (1000,), "c64[256,1000]{1,0}"))
FFT.hlo("fft_2d_512", lambda: _fft((512, 512), "FFT", (512, 512), "c64[512,512]{1,0}"))
FFT.hlo("rfft_256x4096", lambda: _fft((256, 4096), "RFFT", (4096,), "c64[256,2049]{1,0}", "f32"))
FFT.hlo("irfft_256x4096", lambda: _fft((256, 2049), "IRFFT", (4096,), "f32[256,4096]{1,0}"))


def _positive(draw: Draw, n: int, dtype: str = "f32") -> np.ndarray:
    """A symmetric positive definite matrix with a moderate condition number."""
    m = draw.normal(n, n, scale=n**-0.5, dtype=dtype)
    return m @ m.T + np.eye(n, dtype=m.dtype)


@LINALG.jax("cholesky_256")
def _cholesky() -> Case:
    return Case((_positive(Draw(), 256),), function=lambda a: jnp.linalg.cholesky(a), numpy=np.linalg.cholesky)


@LINALG.jax("qr_256x128")
def _qr() -> Case:
    return Case((Draw().normal(256, 128),), function=lambda a: jnp.linalg.qr(a), numpy=np.linalg.qr)


@LINALG.jax("eigenvalues_128")
def _eigh() -> Case:
    """Eigenvalues only, as the sign of an eigenvector is free."""
    return Case((_positive(Draw(), 128),), function=lambda a: jnp.linalg.eigh(a)[0], numpy=np.linalg.eigvalsh)


@LINALG.jax("singular_values_128")
def _svd() -> Case:
    return Case((Draw().normal(128, 128),), function=lambda a: jnp.linalg.svd(a, compute_uv=False))


@LINALG.jax("solve_256")
def _solve() -> Case:
    draw = Draw()
    return Case(
        (_positive(draw, 256), draw.normal(256, 16)),
        function=lambda a, b: jnp.linalg.solve(a, b),
        numpy=np.linalg.solve,
        torch=lambda torch, a, b: torch.linalg.solve(a, b),
    )


@LINALG.jax("triangular_solve_256")
def _triangular() -> Case:
    draw = Draw()
    lower = np.linalg.cholesky(_positive(draw, 256))
    return Case(
        (lower, draw.normal(256, 64)),
        function=lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
    )


@LINALG.jax("cholesky_f64_256")
def _cholesky_f64() -> Case:
    return Case(
        (_positive(Draw(), 256, "f64"),), function=lambda a: jnp.linalg.cholesky(a), x64=True, numpy=np.linalg.cholesky
    )


@LINALG.jax("determinants_1024x8x8")
def _determinants() -> Case:
    return Case((Draw().normal(1024, 8, 8),), function=lambda a: jnp.linalg.det(a), numpy=np.linalg.det)
