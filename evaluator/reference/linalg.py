"""dot, ragged-dot, scaled-dot, cholesky, triangular-solve, fft, batch normalisation.

Products of floats accumulate in f64 (complex128) and round once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from .complex import make_complex
from .context import Context, Value
from .convert import narrow

Array = np.ndarray


def accumulation_type(*dtypes: DType) -> np.dtype:
    """The type in which products of these types are summed before the result is rounded."""
    if any(d.is_complex for d in dtypes):
        return np.dtype(np.complex128)
    if any(d.is_float for d in dtypes):
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if all(d.is_unsigned or d is DType.PRED for d in dtypes) else np.int64)


def matmul(x: Array, y: Array) -> Array:
    """x @ y. Integer products that are exact in f64 are computed in f64, because NumPy's integer product is slow.

    As in XLA, a sum of one product is that product, so a zero keeps its sign.
    """
    if x.shape[-1] == 1:
        return x * y
    if x.dtype.kind == "c":
        return _complex_matmul(x, y)
    if x.dtype.kind in "iu" and x.size and y.size:
        bound = x.shape[-1] * float(np.abs(x.astype(np.float64)).max()) * float(np.abs(y.astype(np.float64)).max())
        if bound < 2**53:
            return np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    return np.matmul(x, y)


def _complex_matmul(x: Array, y: Array) -> Array:
    """x @ y by real and imaginary parts: NumPy's own product multiplies sums by 1 + 0i, so (inf, inf) becomes NaN."""
    (a, b), (c, d) = ([np.ascontiguousarray(part) for part in (z.real, z.imag)] for z in (x, y))
    return make_complex(np.matmul(a, c) - np.matmul(b, d), np.matmul(a, d) + np.matmul(b, c))


def dot(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """A dot that accumulates in the wide type and rounds once. Dimensions of the result: see general_dot."""
    a = instruction.attributes
    x, y = operands[:2]
    x_batch, y_batch = tuple(a.get("lhs_batch_dims", ())), tuple(a.get("rhs_batch_dims", ()))
    x_sum, y_sum = tuple(a.get("lhs_contracting_dims", ())), tuple(a.get("rhs_contracting_dims", ()))
    wide = accumulation_type(
        instruction.operands[0].shape.dtype, instruction.operands[1].shape.dtype, instruction.shape.dtype
    )
    x, y = _met(x, y, zip((*x_sum, *x_batch), (*y_sum, *y_batch), strict=True))
    out = general_dot(x.astype(wide), y.astype(wide), x_batch, y_batch, x_sum, y_sum)
    return narrow(out, instruction.shape.dtype)


def _met(x: Array, y: Array, pairs: Iterable[tuple[int, int]]) -> tuple[Array, Array]:
    """x and y with paired dimensions cut to the smaller size; sizes differ only if one is dynamic (padding)."""
    for s, t in pairs:
        if x.shape[s] != y.shape[t]:
            least = min(x.shape[s], y.shape[t])
            x, y = x[(slice(None),) * s + (slice(0, least),)], y[(slice(None),) * t + (slice(0, least),)]
    return x, y


def general_dot(
    x: Array,
    y: Array,
    x_batch: Sequence[int],
    y_batch: Sequence[int],
    x_sum: Sequence[int],
    y_sum: Sequence[int],
    matmul: Callable[[Array, Array], Array] = matmul,
) -> Array:
    """A dot. Dimensions of the result: batch, free dimensions of x, free dimensions of y. matmul: of the last two."""
    x_free = [d for d in range(x.ndim) if d not in (*x_batch, *x_sum)]
    y_free = [d for d in range(y.ndim) if d not in (*y_batch, *y_sum)]
    batch = [x.shape[d] for d in x_batch]
    k = math.prod(x.shape[d] for d in x_sum)
    m, n = [x.shape[d] for d in x_free], [y.shape[d] for d in y_free]
    left = x.transpose(*x_batch, *x_free, *x_sum).reshape((*batch, math.prod(m), k))
    right = y.transpose(*y_batch, *y_sum, *y_free).reshape((*batch, k, math.prod(n)))
    return matmul(left, right).reshape((*batch, *m, *n))


def ragged_dot(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """One dot per group of the ragged dimension of lhs; the third operand holds the group sizes.

    Ragged free dimension: the rows of a group are multiplied with the group's slice of rhs. Ragged contracting
    dimension: there is one result per group. Ragged batch dimension: an ordinary batched dot.
    """
    a = instruction.attributes
    x, y, sizes = operands
    (ragged,) = a["lhs_ragged_dims"]
    x_batch, y_batch = tuple(a.get("lhs_batch_dims", ())), tuple(a.get("rhs_batch_dims", ()))
    x_sum, y_sum = tuple(a.get("lhs_contracting_dims", ())), tuple(a.get("rhs_contracting_dims", ()))
    wide = accumulation_type(*[o.shape.dtype for o in instruction.operands[:2]], instruction.shape.dtype)
    x, y = x.astype(wide), y.astype(wide)
    x, y = _met(x, y, zip((*x_sum, *x_batch), (*y_sum, *y_batch), strict=True))
    result = instruction.shape.dtype
    if ragged in x_batch:
        return narrow(general_dot(x, y, x_batch, y_batch, x_sum, y_sum), result)
    rows = _groups(x, ragged, sizes, x_batch)
    if ragged in x_sum:
        if not rows:
            return np.zeros((0, *instruction.shape.dims[1:]), result.numpy)
        products = [general_dot(np.where(g, x, 0), y, x_batch, y_batch, x_sum, y_sum) for g in rows]
        return narrow(np.stack(products), result)
    (group_dim,) = a["rhs_group_dims"]
    y_sum, y_batch = (tuple(d - (d > group_dim) for d in dims) for dims in (y_sum, y_batch))
    nothing = np.zeros([n for d, n in enumerate(y.shape) if d != group_dim], wide)
    out = general_dot(np.zeros_like(x), nothing, x_batch, y_batch, x_sum, y_sum)
    for i, g in enumerate(rows):
        out += general_dot(np.where(g, x, 0), y.take(i, axis=group_dim), x_batch, y_batch, x_sum, y_sum)
    return narrow(out, result)


def _groups(x: Array, ragged: int, sizes: Array, batch: Sequence[int]) -> list[Array]:
    """For each group a mask that broadcasts to x: which elements belong to the group.

    sizes: [groups] or [leading dimensions of x…, groups], where the leading dimensions are the batch dimensions, then
    the others before the ragged one.
    """
    leading = [*batch, *[d for d in range(ragged) if d not in batch]][: sizes.ndim - 1]
    ends = np.cumsum(sizes.astype(np.int64), axis=-1)
    place = np.arange(x.shape[ragged]).reshape([-1 if d == ragged else 1 for d in range(x.ndim)])

    def spread(bound: Array) -> Array:
        order = np.argsort(leading) if leading else ()
        shape = [x.shape[d] if d in leading else 1 for d in range(x.ndim)]
        return (bound.transpose(order) if leading else bound).reshape(shape)

    return [
        (place >= spread(ends[..., g] - sizes[..., g])) & (place < spread(ends[..., g])) for g in range(sizes.shape[-1])
    ]


def scaled_dot(instruction: Instruction, operands: Sequence[Array], context: Context) -> Array:
    """dot(lhs · lhs_scale, rhs · rhs_scale), with each scale repeated over its block of elements."""
    x, y, x_scale, y_scale = operands
    a = instruction.attributes
    wide = accumulation_type(*[o.shape.dtype for o in instruction.operands[:2]], instruction.shape.dtype)
    x_batch, y_batch = tuple(a.get("lhs_batch_dims", ())), tuple(a.get("rhs_batch_dims", ()))
    x_sum, y_sum = tuple(a.get("lhs_contracting_dims", ())), tuple(a.get("rhs_contracting_dims", ()))
    bounds = [o.shape.dims for o in instruction.operands]
    x, y = _scaled(x.astype(wide), x_scale, bounds[0], bounds[2]), _scaled(y.astype(wide), y_scale, *bounds[1::2])
    x, y = _met(x, y, zip((*x_sum, *x_batch), (*y_sum, *y_batch), strict=True))
    return narrow(general_dot(x, y, x_batch, y_batch, x_sum, y_sum), instruction.shape.dtype)


def _scaled(x: Array, scale: Array, bound: Sequence[int], scale_bound: Sequence[int]) -> Array:
    factor = scale.astype(x.dtype)
    if factor.ndim == x.ndim:
        for d in range(x.ndim):
            factor = np.repeat(factor, bound[d] // max(scale_bound[d], 1), axis=d)
        factor = factor[tuple(slice(0, n) for n in x.shape)]
    return x * factor


def cholesky(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """A = L·Lᴴ from the lower triangle if lower=true, else A = Uᴴ·U from the upper one.

    All elements are NaN if A is not positive definite. The other triangle of the result is zero; XLA leaves it
    undefined.
    """
    (x,) = operands
    lower = instruction.attributes.get("lower", False)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    a = x.astype(wide)
    triangle = np.tril(a) if lower else np.conj(np.triu(a).swapaxes(-1, -2))
    strict = np.tril(triangle, -1)
    full = strict + np.conj(strict.swapaxes(-1, -2)) + _diagonal(np.diagonal(triangle, axis1=-2, axis2=-1).real)
    flat = full.reshape(-1, *full.shape[-2:]) if full.size else full
    factor = np.stack([_cholesky_or_nan(m) for m in flat]).reshape(full.shape) if full.size else full
    return (factor if lower else np.conj(factor.swapaxes(-1, -2))).astype(x.dtype)


def _diagonal(values: Array) -> Array:
    return values[..., None] * np.eye(values.shape[-1])


def _cholesky_or_nan(matrix: Array) -> Array:
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        factor = np.full_like(matrix, np.nan)
    return np.full_like(matrix, np.nan) if np.isnan(factor).any() else factor


def triangular_solve(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """Solve op(a)·x = b (left_side) or x·op(a) = b; only the lower or upper triangle of a is read."""
    a, b = operands
    attributes = instruction.attributes
    return solve_triangular(
        a,
        b,
        left=attributes.get("left_side", False),
        lower=attributes.get("lower", False),
        unit=attributes.get("unit_diagonal", False),
        transpose=attributes.get("transpose_a", "NO_TRANSPOSE"),
    )


def solve_triangular(a: Array, b: Array, *, left: bool, lower: bool, unit: bool, transpose: str) -> Array:
    """`triangular_solve` on arrays [batch…, n, n] and [batch…, m, n]; NaN for a matrix with a zero on its diagonal."""
    from scipy.linalg import solve_triangular as solve

    kind = {"NO_TRANSPOSE": 0, "TRANSPOSE": 1, "ADJOINT": 2}[transpose]
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    out = np.empty(b.shape, b.dtype)
    for index in np.ndindex(*b.shape[:-2]):
        matrix, right = a[index].astype(wide), b[index].astype(wide)
        if not left:  # x·op(a) = b  ⇔  op(a)ᵀ·xᵀ = bᵀ
            right, side = right.T, {0: 1, 1: 0, 2: 0}[kind]
            matrix = np.conj(matrix) if kind == 2 else matrix
        else:
            side = kind
        triangle = np.tril(matrix) if lower else np.triu(matrix)
        if unit:
            triangle = triangle - np.diag(np.diag(triangle)) + np.eye(len(triangle))
        elif (np.diag(triangle) == 0).any():
            out[index] = np.nan
            continue
        x = solve(triangle, right, trans=side, lower=lower, unit_diagonal=unit, check_finite=False)
        out[index] = (x if left else x.T).astype(b.dtype)
    return out


def fft(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """FFT, IFFT, RFFT or IRFFT over the last len(fft_length) dimensions, computed in f64; the inverses are scaled."""
    (x,) = operands
    lengths = tuple(instruction.attributes["fft_length"])
    if any(n == 0 for n in instruction.shape.dims):
        return np.zeros(instruction.shape.dims, instruction.shape.dtype.numpy)
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    transform: dict[str, Any] = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    out = transform[instruction.attributes["fft_type"]](wide, lengths, axes)
    return out.astype(instruction.shape.dtype.numpy)


# --- batch normalisation ---------------------------------------------------------------------------------------------


def _along(feature: int, rank: int, *vectors: Array) -> list[Array]:
    shape = [1] * rank
    shape[feature] = -1
    return [v.astype(np.float64).reshape(shape) for v in vectors]


def batch_norm_inference(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """(x - mean) / sqrt(variance + epsilon) · scale + offset, computed in f64."""
    x, *vectors = operands
    feature, epsilon = instruction.attributes["feature_index"], instruction.attributes.get("epsilon", 0.0)
    scale, offset, mean, variance = _along(feature, x.ndim, *vectors)
    return ((x.astype(np.float64) - mean) / np.sqrt(variance + epsilon) * scale + offset).astype(x.dtype)


def batch_norm_training(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
    """(normalised, batch mean, batch variance)."""
    x, *vectors = operands
    feature, epsilon = instruction.attributes["feature_index"], instruction.attributes.get("epsilon", 0.0)
    axes = tuple(d for d in range(x.ndim) if d != feature)
    wide = x.astype(np.float64)
    count = x.size // max(x.shape[feature], 1)
    mean = wide.sum(axis=axes, keepdims=True) / count
    variance = ((wide - mean) ** 2).sum(axis=axes, keepdims=True) / count
    scale, offset = _along(feature, x.ndim, *vectors)
    out = (wide - mean) / np.sqrt(variance + epsilon) * scale + offset
    stats = operands[1].dtype
    return out.astype(x.dtype), mean.reshape(-1).astype(stats), variance.reshape(-1).astype(stats)


def batch_norm_grad(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
    """(gradient of the operand, of the scale, of the offset)."""
    x, *vectors, upstream = operands
    feature, epsilon = instruction.attributes["feature_index"], instruction.attributes.get("epsilon", 0.0)
    axes = tuple(d for d in range(x.ndim) if d != feature)
    scale, mean, variance = _along(feature, x.ndim, *vectors)
    wide, upstream = x.astype(np.float64), upstream.astype(np.float64)
    count = x.size // max(x.shape[feature], 1)
    inverse = 1 / np.sqrt(variance + epsilon)
    centred = wide - mean
    offset_gradient = upstream.sum(axis=axes, keepdims=True)
    scale_gradient = (upstream * centred * inverse).sum(axis=axes, keepdims=True)
    gradient = scale * inverse / count * (count * upstream - offset_gradient - centred * inverse * scale_gradient)
    stats = operands[1].dtype
    return gradient.astype(x.dtype), scale_gradient.reshape(-1).astype(stats), offset_gradient.reshape(-1).astype(stats)
