"""jaxlib's lapack_*_ffi custom calls through SciPy's LAPACK, in the operand's own type, so that signs and pivots agree.

Matrices are the last two dimensions; leading ones are batches. `backend_config` holds characters as numbers:
`uplo = 76 : ui8`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import Instruction
from .context import Context, Value

Array = np.ndarray
_NUMBER = re.compile(r"(\w+)\s*=\s*(\d+)\s*:\s*u?i\d+")


def options(instruction: Instruction) -> dict[str, str]:
    """The characters in backend_config, `{uplo = 76 : ui8}` → {'uplo': 'L'}."""
    config = instruction.attributes.get("backend_config", "")
    return {key: chr(int(number)) for key, number in _NUMBER.findall(getattr(config, "text", config))}


def routine(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """SciPy's wrapper of a LAPACK routine for a dtype."""
    from scipy.linalg import lapack

    return getattr(lapack, {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char] + name)


def batched(run: Callable[..., tuple[Any, ...]], ranks: Sequence[int]) -> Callable[..., Value]:
    """The custom call that runs `run(options, matrices…) -> leaves` on each batch element.

    ranks: the rank of each operand without its batch dimensions.
    """

    def custom_call(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
        chosen = options(instruction)
        batch = operands[0].shape[: operands[0].ndim - ranks[0]]
        leaves = [leaf for _, leaf in instruction.shape.leaves()]
        out = [np.empty(leaf.dims, leaf.dtype.numpy) for leaf in leaves]
        for index in np.ndindex(*batch):
            results = run(chosen, *[x[index] for x in operands])
            for target, result in zip(out, results, strict=True):
                target[index] = np.asarray(result).reshape(target[index].shape)
        return tuple(out) if instruction.shape.is_tuple else out[0]

    return custom_call


def potrf(chosen: dict[str, str], a: Array) -> tuple[Any, ...]:
    factor, info = routine("potrf", a.dtype)(a, lower=chosen.get("uplo") == "L", clean=0)
    return factor, info


def getrf(_chosen: dict[str, str], a: Array) -> tuple[Any, ...]:
    if a.size == 0:
        return a, np.zeros(min(a.shape), np.int32), 0
    factors, pivots, info = routine("getrf", a.dtype)(a)
    return factors, pivots + 1, info


def geqrf(_chosen: dict[str, str], a: Array) -> tuple[Any, ...]:
    factors, tau, _, _info = routine("geqrf", a.dtype)(a)
    return factors, tau


def orgqr(_chosen: dict[str, str], a: Array, tau: Array) -> tuple[Any, ...]:
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    return (routine(name, a.dtype)(a, tau)[0],)


def trsm(chosen: dict[str, str], a: Array, b: Array) -> tuple[Any, ...]:
    from scipy.linalg import blas

    prefix = {"f": "s", "d": "d", "F": "c", "D": "z"}[a.dtype.char]
    run = getattr(blas, prefix + "trsm")
    return (
        run(
            1,
            a,
            b,
            side=chosen.get("side") == "R",
            lower=chosen.get("uplo") == "L",
            trans_a={"N": 0, "T": 1, "C": 2}[chosen.get("trans_x", "N")],
            diag=chosen.get("diag") == "U",
        ),
    )


def syevd(chosen: dict[str, str], a: Array) -> tuple[Any, ...]:
    name = "heevd" if a.dtype.kind == "c" else "syevd"
    values, vectors, info = routine(name, a.dtype)(
        a, compute_v=chosen.get("mode", "V") == "V", lower=chosen.get("uplo") == "L"
    )
    return vectors, values, info


def geev(chosen: dict[str, str], a: Array) -> tuple[Any, ...]:
    """Real matrices give real and imaginary parts of the eigenvalues; vectors are complex in any case."""
    left, right = chosen.get("compute_left") == "V", chosen.get("compute_right") == "V"
    if a.dtype.kind == "c":
        values, vl, vr, info = routine("geev", a.dtype)(a, compute_vl=left, compute_vr=right)
        return values, *[v if asked else np.zeros_like(a) for v, asked in ((vl, left), (vr, right))], info
    real, imag, vl, vr, info = routine("geev", a.dtype)(a, compute_vl=left, compute_vr=right)
    empty = np.zeros(a.shape, np.complex64 if a.dtype == np.float32 else np.complex128)
    vectors = [_paired(v, imag) if asked else empty for v, asked in ((vl, left), (vr, right))]
    return real, imag, *vectors, info


def _paired(vectors: Array, imag: Array) -> Array:
    """LAPACK stores a conjugate pair as two real columns."""
    out = vectors.astype(np.complex64 if vectors.dtype == np.float32 else np.complex128)
    for j in np.flatnonzero(imag > 0):
        out[:, j] = vectors[:, j] + 1j * vectors[:, j + 1]
        out[:, j + 1] = np.conj(out[:, j])
    return out


def gesdd(chosen: dict[str, str], a: Array) -> tuple[Any, ...]:
    """mode N: only singular values; A: full, S: thin matrices. The first leaf is LAPACK's scratch, without meaning."""
    mode = chosen.get("mode", "A")
    u, s, vt, info = routine("gesdd", a.dtype)(a, compute_uv=mode != "N", full_matrices=mode == "A")
    m, n = a.shape
    if mode == "N":
        u, vt = np.zeros((m, m), a.dtype), np.zeros((n, n), a.dtype)
    return a, s, u, vt, info


def gees(chosen: dict[str, str], a: Array) -> tuple[Any, ...]:
    """Schur form: (T, vectors, eigenvalues in one or two leaves, selected count, info)."""
    result = routine("gees", a.dtype)(lambda *_: False, a, compute_v=chosen.get("mode", "V") == "V", sort_t=0)
    if a.dtype.kind == "c":
        t, count, values, vectors, _, info = result
        return t, vectors, values, count, info
    t, count, real, imag, vectors, _, info = result
    return t, vectors, real, imag, count, info


_ROUTINES: dict[str, tuple[Callable[..., tuple[Any, ...]], tuple[int, ...]]] = {
    "potrf": (potrf, (2,)),
    "getrf": (getrf, (2,)),
    "geqrf": (geqrf, (2,)),
    "orgqr": (orgqr, (2, 1)),
    "ungqr": (orgqr, (2, 1)),
    "trsm": (trsm, (2, 2)),
    "syevd": (syevd, (2,)),
    "heevd": (syevd, (2,)),
    "geev": (geev, (2,)),
    "gesdd": (gesdd, (2,)),
    "gees": (gees, (2,)),
}

TARGETS = {
    f"lapack_{prefix}{name}_ffi": batched(run, ranks) for name, (run, ranks) in _ROUTINES.items() for prefix in "sdcz"
}
