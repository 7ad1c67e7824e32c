"""Shape inference for linear algebra: dot, scaled-dot, ragged-dot, fft, cholesky, triangular-solve, batch norms."""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import COMPLEX, FLOAT, DType
from ..errors import VerificationError
from ..ir import Instruction
from ..opcodes import Op
from ..records import replace
from ..shapes import Shape, tuple_shape
from .elementwise import check_dtype
from .rules import (
    arrays,
    broken,
    dims_in_range,
    higher,
    is_dynamic,
    make,
    same_dims,
    same_dtype,
    same_size,
    same_up_to_precision,
)


def dot_shape(i: Instruction, lhs: Shape, rhs: Shape) -> Shape:
    """DOT2: dimension numbers are in range and distinct. DOT3: both sides have the same number of contracting
    dimensions, of equal sizes. DOT4: the same holds for batch dimensions.
    """
    a = i.attributes
    lc, rc = a.get("lhs_contracting_dims", ()), a.get("rhs_contracting_dims", ())
    lb, rb = a.get("lhs_batch_dims", ()), a.get("rhs_batch_dims", ())
    dims_in_range(i, "DOT2", "lhs_batch_dims and lhs_contracting_dims", (*lb, *lc), lhs.rank)
    dims_in_range(i, "DOT2", "rhs_batch_dims and rhs_contracting_dims", (*rb, *rc), rhs.rank)
    for label, what, left, right in (("DOT3", "contracting", lc, rc), ("DOT4", "batch", lb, rb)):
        if len(left) != len(right):
            broken(i, label, f"{len(left)} {what} dimensions on the left and {len(right)} on the right")
        for x, y in zip(left, right, strict=True):
            if not same_size(lhs.dims[x], rhs.dims[y]):
                broken(
                    i,
                    label,
                    f"{what} dimension {x} of {lhs} has size {lhs.dims[x]}, but dimension {y} of {rhs} has "
                    f"{rhs.dims[y]}",
                )
    left = [*lb, *(d for d in range(lhs.rank) if d not in lb and d not in lc)]
    right = [d for d in range(rhs.rank) if d not in rb and d not in rc]
    dims = [lhs.dims[d] for d in left] + [rhs.dims[d] for d in right]
    dynamic = [is_dynamic(lhs, d) for d in left] + [is_dynamic(rhs, d) for d in right]
    return make(higher(lhs.dtype, rhs.dtype), dims, dynamic)


def dot(i: Instruction) -> Shape:
    """DOT1: the operands are arrays."""
    shapes = arrays(i, "DOT1")
    return dot_shape(i, shapes[0], shapes[1])


def scaled_dot(i: Instruction) -> Shape:
    """SCALEDDOT1: the operands are arrays. SCALEDDOT2: a scale is a scalar, or has the rank of its side and sizes that
    divide the sizes of that side.
    """
    first, *rest = arrays(i, "SCALEDDOT1")
    lhs = first
    scales: tuple[Shape, ...] = ()
    # Versions of XLA differ: (lhs, rhs, lhs scale, rhs scale) or (lhs, lhs scale, rhs, rhs scale). Take what fits.
    for order in ((0, 1, 2, 3), (0, 2, 1, 3)):
        shapes = [(first, *rest)[k] for k in order]
        if dot_fits(i, shapes[0], shapes[1]) and _scales_fit(shapes):
            lhs, scales = shapes[0], tuple(shapes[2:])
            return replace(dot_shape(i, lhs, shapes[1]), dtype=i.shape.dtype)
    broken(i, "SCALEDDOT2", f"the scales {[str(s) for s in (scales or rest)]} do not divide {lhs} and the other side")


def _scales_fit(shapes: list[Shape]) -> bool:
    for x, scale in zip(shapes[:2], shapes[2:], strict=True):
        if scale.rank == 0:
            continue
        if scale.rank != x.rank or any(b == 0 or a % b for a, b in zip(x.dims, scale.dims, strict=True) if a):
            return False
    return True


def dot_fits(i: Instruction, lhs: Shape, rhs: Shape) -> bool:
    """Whether a dot of these shapes satisfies DOT2 to DOT4."""
    try:
        dot_shape(i, lhs, rhs)
    except VerificationError:
        return False
    return True


def ragged_dot(i: Instruction) -> Shape:
    """RAGGED1: the operands are arrays; the group sizes are integers. RAGGED2: lhs_ragged_dims has one entry, in range;
    there is at most one group dimension. RAGGED3: the group dimension has one entry per group size and is neither a
    contracting nor a batch dimension. The rest follows a dot without the group dimension.
    """
    lhs, rhs, sizes = arrays(i, "RAGGED1")
    if not sizes.dtype.is_integer or not sizes.rank:
        broken(i, "RAGGED1", f"group sizes must be an array of integers, not {sizes}")
    ragged, group = i.attributes.get("lhs_ragged_dims", ()), i.attributes.get("rhs_group_dims", ())
    if len(ragged) != 1 or not 0 <= ragged[0] < lhs.rank or len(group) > 1:
        broken(
            i,
            "RAGGED2",
            f"lhs_ragged_dims={ragged} must name one dimension of {lhs}, rhs_group_dims={group} at most one",
        )
    dims_in_range(i, "RAGGED2", "rhs_group_dims", group, rhs.rank)
    groups = sizes.dims[-1]
    if group:
        kept = [d for d in range(rhs.rank) if d not in group]
        if not same_size(rhs.dims[group[0]], groups):
            broken(i, "RAGGED3", f"{rhs.dims[group[0]]} groups on the right and {groups} group sizes")
        a = dict(i.attributes)
        for key in ("rhs_contracting_dims", "rhs_batch_dims"):
            if group[0] in a.get(key, ()):
                broken(i, "RAGGED3", f"rhs_group_dims names a dimension of {key}")
            a[key] = tuple(d - (d > group[0]) for d in a.get(key, ()))
        return dot_shape(i.replace(attributes=a), lhs, make(rhs.dtype, [rhs.dims[d] for d in kept]))
    shape = dot_shape(i, lhs, rhs)
    if ragged[0] in i.attributes.get("lhs_contracting_dims", ()):
        return make(shape.dtype, (groups, *shape.dims))
    return shape


def fft(i: Instruction) -> Shape:
    """FFT1: fft_length has 1 to 3 entries, at most one per dimension. FFT2: the element type suits fft_type. FFT3: the
    last dimensions have the sizes of fft_length, for IRFFT with n // 2 + 1 in place of its last entry n; an empty
    array may have any.
    """
    (x,) = arrays(i, "FFT1")
    kind, length = i.attributes["fft_type"], i.attributes["fft_length"]
    n = len(length)
    if not 1 <= n <= 3 or x.rank < n:
        broken(i, "FFT1", f"fft_length={length} for {x}", "give 1 to 3 lengths, at most one a dimension")
    if x.dtype not in ((DType.F32, DType.F64) if kind == "RFFT" else COMPLEX):
        broken(i, "FFT2", f"{kind} takes {'f32 or f64' if kind == 'RFFT' else 'complex'} elements, not {x.dtype.value}")
    last = length[-1] // 2 + 1 if kind == "IRFFT" else length[-1]
    want = (*length[:-1], last)
    if not all(map(same_size, x.dims[-n:], want)) and x.size:
        broken(i, "FFT3", f"the last sizes of {x} must be {want} for {kind} with fft_length={length}")
    if kind in ("FFT", "IFFT"):
        return x
    if kind == "RFFT":
        dtype = DType.C64 if x.dtype is DType.F32 else DType.C128
        return make(dtype, (*x.dims[:-1], length[-1] // 2 + 1 if length[-1] else x.dims[-1]), x.dynamic)
    return make(x.dtype.component, (*x.dims[:-1], length[-1]), x.dynamic)


def cholesky(i: Instruction) -> Shape:
    """CHOLESKY1: the operand is an array of float or complex elements. CHOLESKY2: its matrices are square."""
    (a,) = arrays(i, "CHOLESKY1")
    check_dtype(i, a.dtype, FLOAT | COMPLEX, "CHOLESKY1")
    if a.rank < 2 or not same_size(a.dims[-1], a.dims[-2]):
        broken(i, "CHOLESKY2", f"the matrices of {a} are not square")
    return a


def triangular_solve(i: Instruction) -> Shape:
    """TRISOLVE1: the operands are arrays of one float or complex type. TRISOLVE2: the matrices of a are square; both
    operands have one rank. TRISOLVE3: the shared dimension has the same size in both. TRISOLVE4: so have the batch
    dimensions.
    """
    a, b = arrays(i, "TRISOLVE1")
    check_dtype(i, a.dtype, FLOAT | COMPLEX, "TRISOLVE1")
    if a.dtype is not b.dtype:
        broken(i, "TRISOLVE1", f"element types of {a} and {b} differ")
    if a.rank < 2 or a.rank != b.rank or not same_size(a.dims[-1], a.dims[-2]):
        broken(i, "TRISOLVE2", f"{a} must hold square matrices and have the rank of {b}")
    if not same_size(a.dims[-1], b.dims[-2 if i.attributes.get("left_side", False) else -1]):
        broken(i, "TRISOLVE3", f"the shared dimension of {a} and {b} differs")
    if not all(map(same_size, a.dims[:-2], b.dims[:-2])):
        broken(i, "TRISOLVE4", f"the batch dimensions of {a} and {b} differ")
    return b


def _norm(i: Instruction, x: Shape, vectors: tuple[Shape, ...]) -> Shape:
    """BATCHNORM1: the operand is an array of floats. BATCHNORM2: feature_index is in range. BATCHNORM3: each vector has
    one element per feature. Returns the shape of such a vector.
    """
    check_dtype(i, x.dtype, FLOAT, "BATCHNORM1")
    index = i.attributes["feature_index"]
    if not 0 <= index < x.rank:
        broken(i, "BATCHNORM2", f"feature_index {index} is no dimension of {x}")
    features = make(x.dtype, (x.dims[index],))
    for v in vectors:
        if not same_dims(v, features) or not same_dtype(v.dtype, x.dtype):
            broken(
                i, "BATCHNORM3", f"{v} must have one {x.dtype.value} element for each of the {x.dims[index]} features"
            )
    return features


def batch_norm_training(i: Instruction) -> Shape:
    x, *vectors = arrays(i, "BATCHNORM1")
    features = _norm(i, x, tuple(vectors))
    return tuple_shape(x, features, features)


def batch_norm_inference(i: Instruction) -> Shape:
    x, *vectors = arrays(i, "BATCHNORM1")
    _norm(i, x, tuple(vectors))
    return x


def batch_norm_grad(i: Instruction) -> Shape:
    """BATCHNORM4: the gradient has the operand's shape."""
    x, *vectors, gradient = arrays(i, "BATCHNORM1")
    features = _norm(i, x, tuple(vectors))
    if not same_up_to_precision(x, gradient):
        broken(i, "BATCHNORM4", f"the gradient {gradient} must have the shape {x}")
    return tuple_shape(x, features, features)


INFER: dict[Op, Callable[[Instruction], Shape]] = {
    Op.DOT: dot,
    Op.SCALED_DOT: scaled_dot,
    Op.RAGGED_DOT: ragged_dot,
    Op.FFT: fft,
    Op.CHOLESKY: cholesky,
    Op.TRIANGULAR_SOLVE: triangular_solve,
    Op.BATCH_NORM_TRAINING: batch_norm_training,
    Op.BATCH_NORM_INFERENCE: batch_norm_inference,
    Op.BATCH_NORM_GRAD: batch_norm_grad,
}
