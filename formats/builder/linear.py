"""Ops of XlaBuilder for linear algebra, neural networks and random numbers: dot, conv, fft, batch norms, rng, …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.attributes import ConvolutionDims
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from .shapes import DTypeLike, ShapeLike
from .values import Value, XlaOp
from .windows import Padding, window_of

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""((lhs contracting, rhs contracting), (lhs batch, rhs batch)) dimensions, as in jax.lax.dot_general."""

Precision = str | Sequence[str] | None
"""Precision of each operand: 'default', 'high', 'highest'; one for all, or one each."""


def _precision(precision: Precision) -> tuple[str, ...] | None:
    if precision is None:
        return None
    return (precision, precision) if isinstance(precision, str) else tuple(precision)


def dot(lhs: XlaOp, rhs: XlaOp, precision: Precision = None, preferred_element_type: DTypeLike | None = None) -> XlaOp:
    """The product of vectors and matrices: the last dimension of lhs with the first of rhs (Dot)."""
    if not (1 <= lhs.rank <= 2 and 1 <= rhs.rank <= 2):
        lhs.builder.fail(f"dot takes vectors and matrices, not {lhs.shape} and {rhs.shape}", "use ops.dot_general")
    return dot_general(lhs, rhs, (((lhs.rank - 1,), (0,)), ((), ())), precision, preferred_element_type)


def dot_general(
    lhs: XlaOp,
    rhs: XlaOp,
    dimension_numbers: DotDimensionNumbers,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> XlaOp:
    """The product over contracting dimensions for each index of the batch dimensions (DotGeneral). The result has the
    batch dimensions, then the others of lhs, then those of rhs.
    """
    (left, right), (left_batch, right_batch) = dimension_numbers
    attributes: dict[str, Any] = {
        "lhs_batch_dims": tuple(left_batch) or None,
        "lhs_contracting_dims": tuple(left),
        "rhs_batch_dims": tuple(right_batch) or None,
        "rhs_contracting_dims": tuple(right),
        "operand_precision": _precision(precision),
    }
    return lhs.builder.add(Op.DOT, [lhs, rhs], element_type=preferred_element_type, **attributes)


def conv_general_dilated(
    lhs: XlaOp,
    rhs: XlaOp,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvolutionDims | str | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    window_reversal: Sequence[bool] | None = None,
) -> XlaOp:
    """A convolution (ConvGeneralDilated). dimension_numbers: 'b01f_01io->b01f'; without it, batch and features come
    first: 'bf01_oi01->bf01' (CreateDefaultConvDimensionNumbers). padding: 'SAME', 'VALID', or (low, high) of each
    spatial dimension.
    """
    b = lhs.builder
    if lhs.rank < 2 or lhs.rank != rhs.rank:
        b.fail(f"a convolution of {lhs.shape} with {rhs.shape}", "give operands of one rank, at least 2")
    dims = _convolution_dims(lhs, dimension_numbers)
    if len(dims.input_spatial) + 2 != lhs.rank:
        b.fail(f"dimension_numbers for {len(dims.input_spatial) + 2} dimensions, given {lhs.shape}")
    window = window_of(
        b,
        [lhs.dims[d] for d in dims.input_spatial],
        [rhs.dims[d] for d in dims.kernel_spatial],
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        window_reversal,
    )
    attributes: dict[str, Any] = {
        "window": window if window.dims else None,
        "dim_labels": dims,
        "feature_group_count": feature_group_count if feature_group_count != 1 else None,
        "batch_group_count": batch_group_count if batch_group_count != 1 else None,
        "operand_precision": _precision(precision),
    }
    return b.add(Op.CONVOLUTION, [lhs, rhs], element_type=preferred_element_type, **attributes)


def _convolution_dims(lhs: XlaOp, given: ConvolutionDims | str | None) -> ConvolutionDims:
    if isinstance(given, ConvolutionDims):
        return given
    spatial = "".join(map(str, range(lhs.rank - 2)))
    text = given or f"bf{spatial}_oi{spatial}->bf{spatial}"
    read = lhs.builder.attribute("dim_labels", text)
    if not isinstance(read, ConvolutionDims):
        lhs.builder.fail(f"dimension_numbers {text!r} leave a dimension without a role")
    return read


def conv(lhs: XlaOp, rhs: XlaOp, window_strides: Sequence[int], padding: Padding, **rest: Any) -> XlaOp:
    """A convolution without dilation (Conv, ConvWithGeneralPadding, ConvWithGeneralDimensions). rest: as for
    conv_general_dilated.
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, **rest)


def ragged_dot(
    lhs: XlaOp,
    rhs: XlaOp,
    group_sizes: XlaOp,
    dimension_numbers: DotDimensionNumbers,
    lhs_ragged_dims: Sequence[int],
    rhs_group_dims: Sequence[int] = (),
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> XlaOp:
    """A dot whose lhs is cut into groups of these sizes, each with a matrix of its own (RaggedDot)."""
    (left, right), (left_batch, right_batch) = dimension_numbers
    attributes: dict[str, Any] = {
        "lhs_contracting_dims": tuple(left),
        "rhs_contracting_dims": tuple(right),
        "lhs_batch_dims": tuple(left_batch) or None,
        "rhs_batch_dims": tuple(right_batch) or None,
        "lhs_ragged_dims": tuple(lhs_ragged_dims),
        "rhs_group_dims": tuple(rhs_group_dims) or None,
        "operand_precision": _precision(precision),
    }
    return lhs.builder.add(Op.RAGGED_DOT, [lhs, rhs, group_sizes], element_type=preferred_element_type, **attributes)


def fft(operand: XlaOp, fft_type: str, fft_length: Sequence[int]) -> XlaOp:
    """Fourier transforms over the last dimensions (Fft). fft_type: FFT, IFFT, RFFT or IRFFT."""
    return operand.builder.add(Op.FFT, [operand], fft_type=fft_type, fft_length=tuple(fft_length))


def cholesky(a: XlaOp, lower: bool = True) -> XlaOp:
    """The Cholesky factor of each matrix (Cholesky)."""
    return a.builder.add(Op.CHOLESKY, [a], lower=lower)


def triangular_solve(
    a: XlaOp,
    b: XlaOp,
    left_side: bool = True,
    lower: bool = True,
    unit_diagonal: bool = False,
    transpose_a: str = "NO_TRANSPOSE",
) -> XlaOp:
    """The solutions of a x = b, or x a = b, for triangular matrices a (TriangularSolve). transpose_a: NO_TRANSPOSE,
    TRANSPOSE or ADJOINT.
    """
    return a.builder.add(
        Op.TRIANGULAR_SOLVE,
        [a, b],
        left_side=left_side,
        lower=lower,
        unit_diagonal=unit_diagonal,
        transpose_a=transpose_a,
    )


def batch_norm_training(operand: XlaOp, scale: XlaOp, offset: XlaOp, epsilon: float, feature_index: int) -> XlaOp:
    """(normalised, mean, variance) over all dimensions but the features' (BatchNormTraining)."""
    return operand.builder.add(
        Op.BATCH_NORM_TRAINING, [operand, scale, offset], epsilon=float(epsilon), feature_index=feature_index
    )


def batch_norm_inference(
    operand: XlaOp, scale: XlaOp, offset: XlaOp, mean: XlaOp, variance: XlaOp, epsilon: float, feature_index: int
) -> XlaOp:
    """The operand normalised by a given mean and variance (BatchNormInference)."""
    return operand.builder.add(
        Op.BATCH_NORM_INFERENCE,
        [operand, scale, offset, mean, variance],
        epsilon=float(epsilon),
        feature_index=feature_index,
    )


def batch_norm_grad(
    operand: XlaOp,
    scale: XlaOp,
    batch_mean: XlaOp,
    batch_var: XlaOp,
    grad_output: XlaOp,
    epsilon: float,
    feature_index: int,
) -> XlaOp:
    """The gradients of operand, scale and offset (BatchNormGrad)."""
    return operand.builder.add(
        Op.BATCH_NORM_GRAD,
        [operand, scale, batch_mean, batch_var, grad_output],
        epsilon=float(epsilon),
        feature_index=feature_index,
    )


# -- random numbers ---------------------------------------------------------------------------------------------------
def rng_uniform(a: XlaOp, b: Value, shape: ShapeLike) -> XlaOp:
    """Random numbers from [a, b) (RngUniform)."""
    return a.builder.add(Op.RNG, [a, a.builder.value(b, a)], shape, distribution="rng_uniform")


def rng_normal(mu: XlaOp, sigma: Value, shape: ShapeLike) -> XlaOp:
    """Normally distributed random numbers (RngNormal)."""
    return mu.builder.add(Op.RNG, [mu, mu.builder.value(sigma, mu)], shape, distribution="rng_normal")


def rng_bit_generator(algorithm: str, initial_state: XlaOp, shape: ShapeLike) -> XlaOp:
    """(new state, random bits of this shape) (RngBitGenerator). algorithm: rng_default, rng_three_fry or rng_philox."""
    b = initial_state.builder
    whole = tuple_shape(initial_state.shape.without_layout(), b.shape(shape))
    return b.add(Op.RNG_BIT_GENERATOR, [initial_state], whole, algorithm=algorithm)


__all__ = [
    "batch_norm_grad",
    "batch_norm_inference",
    "batch_norm_training",
    "cholesky",
    "conv",
    "conv_general_dilated",
    "dot",
    "dot_general",
    "fft",
    "ragged_dot",
    "rng_bit_generator",
    "rng_normal",
    "rng_uniform",
    "triangular_solve",
]
