"""The lapack_*_ffi custom calls of jaxlib, by SciPy's LAPACK in the operand's own type, so that signs and pivots agree.

The last two dimensions are a matrix; all dimensions before are batch dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.library.calls import refusal
from ...hlo.library.lapack_options import options_of
from .context import Context, Value

Array = np.ndarray
Options = Mapping[str, Any]


def routine(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """SciPy's wrapper of the LAPACK routine `name` for a dtype."""
    from scipy.linalg import lapack

    return getattr(lapack, {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char] + name)


def batched(run: Callable[..., tuple[Any, ...]], ranks: Sequence[int]) -> Callable[..., Value]:
    """A custom call that calls `run(options, matrices…) -> leaves` for each batch element.

    ranks: the rank of each operand without its batch dimensions. The call raises UnsupportedError for operands or
    options that the routine does not take.
    """

    def custom_call(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
        wrong = refusal(instruction)
        if wrong is not None:
            target = instruction.attributes["custom_call_target"]
            raise UnsupportedError("evaluator", f"custom-call({target})", remedy=wrong, location=instruction.location)
        chosen = options_of(instruction)
        batch = operands[0].shape[: operands[0].ndim - ranks[0]]
        leaves = [leaf for _, leaf in instruction.shape.leaves()]
        out = [np.empty(leaf.dims, leaf.dtype.numpy) for leaf in leaves]
        for index in np.ndindex(*batch):
            results = run(chosen, *[x[index] for x in operands])
            for target, result in zip(out, results, strict=True):
                target[index] = np.asarray(result).reshape(target[index].shape)
        return tuple(out) if instruction.shape.is_tuple else out[0]

    return custom_call


def potrf(chosen: Options, a: Array) -> tuple[Any, ...]:
    factor, info = routine("potrf", a.dtype)(a, lower=chosen.get("uplo") == "L", clean=0)
    return factor, info


def getrf(_chosen: Options, a: Array) -> tuple[Any, ...]:
    if a.size == 0:
        return a, np.zeros(min(a.shape), np.int32), 0
    factors, pivots, info = routine("getrf", a.dtype)(a)
    return factors, pivots + 1, info


def geqrf(_chosen: Options, a: Array) -> tuple[Any, ...]:
    factors, tau, _, _info = routine("geqrf", a.dtype)(a)
    return factors, tau


def orgqr(_chosen: Options, a: Array, tau: Array) -> tuple[Any, ...]:
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    return (routine(name, a.dtype)(a, tau)[0],)


def trsm(chosen: Options, a: Array, b: Array) -> tuple[Any, ...]:
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


def syevd(chosen: Options, a: Array) -> tuple[Any, ...]:
    name = "heevd" if a.dtype.kind == "c" else "syevd"
    values, vectors, info = routine(name, a.dtype)(
        a, compute_v=chosen.get("mode", "V") == "V", lower=chosen.get("uplo") == "L"
    )
    return vectors, values, info


def geev(chosen: Options, a: Array) -> tuple[Any, ...]:
    """Eigenvalues and eigenvectors. Eigenvalues of a real matrix are two leaves, real and imaginary parts.

    Vectors are always complex. As in jaxlib, a matrix with an infinity or NaN is not passed to LAPACK; info is -4.
    """
    left, right = chosen.get("compute_left") == "V", chosen.get("compute_right") == "V"
    if not np.isfinite(a).all():
        none = np.zeros_like(a[..., 0])
        return (none,) * (1 if a.dtype.kind == "c" else 2) + (np.zeros_like(a),) * 2 + (-4,)
    if a.dtype.kind == "c":
        values, vl, vr, info = routine("geev", a.dtype)(a, compute_vl=left, compute_vr=right)
        return values, *[v if asked else np.zeros_like(a) for v, asked in ((vl, left), (vr, right))], info
    real, imag, vl, vr, info = routine("geev", a.dtype)(a, compute_vl=left, compute_vr=right)
    empty = np.zeros(a.shape, np.complex64 if a.dtype == np.float32 else np.complex128)
    vectors = [_paired(v, imag) if asked else empty for v, asked in ((vl, left), (vr, right))]
    return real, imag, *vectors, info


def _paired(vectors: Array, imag: Array) -> Array:
    """Complex vectors from LAPACK's real ones: a conjugate pair is stored as two columns, real and imaginary parts."""
    out = vectors.astype(np.complex64 if vectors.dtype == np.float32 else np.complex128)
    for j in np.flatnonzero(imag > 0):
        out[:, j] = vectors[:, j] + 1j * vectors[:, j + 1]
        out[:, j + 1] = np.conj(out[:, j])
    return out


def svd(name: str) -> Callable[..., tuple[Any, ...]]:
    """gesdd or gesvd. Mode N: only singular values; A: full matrices; S: thin matrices.

    The first leaf is work space of LAPACK; its content has no meaning.
    """

    def run(chosen: Options, a: Array) -> tuple[Any, ...]:
        mode = chosen.get("mode", "A")
        u, s, vt, info = routine(name, a.dtype)(a, compute_uv=mode != "N", full_matrices=mode == "A")
        if mode == "N":
            u, vt = (np.zeros((n, n), a.dtype) for n in a.shape)
        return a, s, u, vt, info

    return run


def gees(chosen: Options, a: Array) -> tuple[Any, ...]:
    """Schur form: (T, vectors, eigenvalues in one or two leaves, selected count, info)."""
    result = routine("gees", a.dtype)(lambda *_: False, a, compute_v=chosen.get("mode", "V") == "V", sort_t=0)
    if a.dtype.kind == "c":
        t, count, values, vectors, _, info = result
        return t, _wanted(vectors, t), values, count, info
    t, count, real, imag, vectors, _, info = result
    return t, _wanted(vectors, t), real, imag, count, info


def _wanted(vectors: Array, t: Array) -> Array:
    """The vectors, or zeros if they were not requested: SciPy then returns a single row."""
    return vectors if vectors.shape == t.shape else np.zeros_like(t)


def geqp3(_chosen: Options, a: Array, pivots: Array) -> tuple[Any, ...]:
    """QR with column pivoting. Columns whose pivot is not 0 come first and are fixed; the others are chosen by norm."""
    order, fixed = list(range(a.shape[1])), 0
    for column in np.flatnonzero(pivots).tolist():
        order[column], order[fixed] = order[fixed], column
        fixed += 1
    factors, kept = a[:, order].copy(), min(fixed, len(a))
    tau = np.zeros(min(a.shape), a.dtype)
    if kept:
        factors[:, :fixed], tau[:kept], _, _ = routine("geqrf", a.dtype)(factors[:, :fixed])
        (factors[:, fixed:],) = _reflected(factors[:, :kept], tau[:kept], factors[:, fixed:])
    if kept < len(tau):
        rest, chosen, tau[kept:], _, _ = routine("geqp3", a.dtype)(factors[kept:, fixed:])
        factors[:kept, fixed:] = factors[:kept, fixed:][:, chosen - 1]
        factors[kept:, fixed:] = rest
        order[fixed:] = [order[fixed:][k - 1] for k in chosen]
    return factors, np.array(order, np.int32) + 1, tau


def _reflected(a: Array, tau: Array, c: Array) -> tuple[Any, ...]:
    return ormqr({"left": True, "transpose": True}, a, tau, c)


def ormqr(chosen: Options, a: Array, tau: Array, c: Array) -> tuple[Any, ...]:
    """Q·C, Qᴴ·C, C·Q or C·Qᴴ with Q the product of the reflectors I - tau·v·vᴴ."""
    identity = np.eye(len(a), dtype=a.dtype)
    q = identity
    for k, factor in enumerate(tau):
        v = np.concatenate([np.zeros(k), [1], a[k + 1 :, k]]).astype(a.dtype)
        q = q @ (identity - factor * np.outer(v, np.conj(v)))
    q = np.conj(q.T) if chosen.get("transpose") else q
    return ((q @ c if chosen.get("left") else c @ q).astype(c.dtype),)


def gehrd(chosen: Options, a: Array) -> tuple[Any, ...]:
    low, high = chosen.get("low", 1), chosen.get("high", len(a))
    return routine("gehrd", a.dtype)(a, lo=low - 1, hi=high - 1)


def sytrd(chosen: Options, a: Array) -> tuple[Any, ...]:
    name = "hetrd" if a.dtype.kind == "c" else "sytrd"
    return routine(name, a.dtype)(a, lower=chosen.get("uplo") == "L")


def gtsv(_chosen: Options, lower: Array, main: Array, upper: Array, b: Array) -> tuple[Any, ...]:
    """Solve a tridiagonal system. The first element of `lower` and the last of `upper` are unused and unchanged."""
    second, main, inner, x, info = routine("gtsv", b.dtype)(lower[1:], main, upper[:-1], b)
    return np.concatenate([lower[:1], second]), main, np.concatenate([inner, upper[-1:]]), x, info


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
    "gesdd": (svd("gesdd"), (2,)),
    "gesvd": (svd("gesvd"), (2,)),
    "gees": (gees, (2,)),
    "geqp3": (geqp3, (2, 1)),
    "ormqr": (ormqr, (2, 1, 2)),
    "unmqr": (ormqr, (2, 1, 2)),
    "gehrd": (gehrd, (2,)),
    "sytrd": (sytrd, (2,)),
    "hetrd": (sytrd, (2,)),
    "gtsv": (gtsv, (1, 1, 1, 2)),
}

TARGETS = {
    f"lapack_{prefix}{name}_ffi": batched(run, ranks) for name, (run, ranks) in _ROUTINES.items() for prefix in "sdcz"
}
