"""Ops of XlaBuilder that move elements: broadcast, reshape, slice, pad, concatenate, gather, scatter, …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.attributes import PadDim, SliceDim
from ...hlo.ir import Computation
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .builder import XlaBuilder
from .values import ComputationLike, Value, XlaOp, broadcast_to, stretched

PaddingConfig = str | Sequence[Sequence[int]]
"""(low, high) or (low, high, interior) of each dimension, or HLO's text, '1_1x0_2_1'."""


def broadcast(operand: XlaOp, broadcast_sizes: Sequence[int]) -> XlaOp:
    """The operand repeated: dimensions of these sizes are put in front (Broadcast)."""
    first = len(broadcast_sizes)
    return broadcast_to(operand, [*broadcast_sizes, *operand.dims], range(first, first + operand.rank))


def broadcast_in_dim(operand: XlaOp, out_dim_size: Sequence[int], broadcast_dimensions: Sequence[int]) -> XlaOp:
    """Dimension k of the operand becomes broadcast_dimensions[k]; one of size 1 is repeated (BroadcastInDim)."""
    b, rank = operand.builder, len(out_dim_size)
    if len(broadcast_dimensions) != operand.rank or not all(0 <= d < rank for d in broadcast_dimensions):
        b.fail(
            f"broadcast_dimensions={list(broadcast_dimensions)} does not map the {operand.rank} dimensions of "
            f"{operand.shape} to {rank}",
            f"give {operand.rank} numbers from 0 to {rank - 1}",
        )
    return broadcast_to(
        stretched(operand, [out_dim_size[d] for d in broadcast_dimensions]), out_dim_size, broadcast_dimensions
    )


def reshape(operand: XlaOp, new_sizes: Sequence[int]) -> XlaOp:
    """The elements in row-major order as an array of other sizes (Reshape)."""
    return operand.builder.add(Op.RESHAPE, [operand], Shape(operand.dtype, tuple(new_sizes)))


def collapse(operand: XlaOp, dimensions: Sequence[int]) -> XlaOp:
    """Neighbouring dimensions as one (Collapse)."""
    wanted = list(dimensions)
    if wanted != list(range(wanted[0], wanted[0] + len(wanted))) if wanted else False:
        operand.builder.fail(f"dimensions {wanted} are no neighbours in order", "transpose the operand first")
    if len(wanted) < 2:
        return operand
    size = 1
    for d in wanted:
        size *= operand.dims[d]
    return reshape(operand, [*operand.dims[: wanted[0]], size, *operand.dims[wanted[-1] + 1 :]])


def transpose(operand: XlaOp, permutation: Sequence[int]) -> XlaOp:
    """Dimension k of the result is dimension permutation[k] of the operand (Transpose)."""
    return operand.builder.add(Op.TRANSPOSE, [operand], dimensions=tuple(permutation))


def rev(operand: XlaOp, dimensions: Sequence[int]) -> XlaOp:
    """The elements in the opposite order along these dimensions (Rev)."""
    return operand.builder.add(Op.REVERSE, [operand], dimensions=tuple(dimensions))


def slice(
    operand: XlaOp, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> XlaOp:
    """The elements from start to limit, which is not included, in steps of strides (Slice)."""
    steps = [1] * len(start_indices) if strides is None else strides
    if not len(start_indices) == len(limit_indices) == len(steps):
        operand.builder.fail(f"{len(start_indices)} starts, {len(limit_indices)} limits and {len(steps)} strides")
    ranges = tuple(SliceDim(*row) for row in zip(start_indices, limit_indices, steps))
    return operand.builder.add(Op.SLICE, [operand], slice=ranges)


def slice_in_dim(operand: XlaOp, start_index: int, limit_index: int, stride: int = 1, dimno: int = 0) -> XlaOp:
    """A slice along one dimension (SliceInDim)."""
    starts, limits, strides = [0] * operand.rank, list(operand.dims), [1] * operand.rank
    _check_dimension(operand, dimno)
    starts[dimno], limits[dimno], strides[dimno] = start_index, limit_index, stride
    return slice(operand, starts, limits, strides)


def _check_dimension(operand: XlaOp, dimno: int) -> None:
    if not 0 <= dimno < operand.rank:
        operand.builder.fail(f"{operand.shape} has no dimension {dimno}")


def dynamic_slice(operand: XlaOp, start_indices: Sequence[Value], slice_sizes: Sequence[int]) -> XlaOp:
    """A slice of these sizes from scalars computed at run time, which are clamped (DynamicSlice)."""
    return operand.builder.add(Op.DYNAMIC_SLICE, [operand, *start_indices], dynamic_slice_sizes=tuple(slice_sizes))


def dynamic_update_slice(operand: XlaOp, update: XlaOp, start_indices: Sequence[Value]) -> XlaOp:
    """The operand with a part replaced (DynamicUpdateSlice)."""
    return operand.builder.add(Op.DYNAMIC_UPDATE_SLICE, [operand, update, *start_indices])


def pad(operand: XlaOp, padding_value: Value, padding_config: PaddingConfig) -> XlaOp:
    """The operand with a value around and between its elements; negative padding cuts (Pad)."""
    b = operand.builder
    rows: Any = padding_config
    if not isinstance(padding_config, str):
        if any(len(row) not in (2, 3) for row in padding_config):
            b.fail(f"padding_config {padding_config}", "give (low, high) or (low, high, interior) of each dimension")
        rows = tuple(PadDim(*row) for row in padding_config)
    return b.add(Op.PAD, [operand, b.value(padding_value, operand)], padding=rows)


def pad_in_dim(operand: XlaOp, padding_value: Value, dimno: int, pad_lo: int, pad_hi: int) -> XlaOp:
    """Padding along one dimension (PadInDim)."""
    _check_dimension(operand, dimno)
    rows = [(pad_lo, pad_hi) if d == dimno else (0, 0) for d in range(operand.rank)]
    return pad(operand, padding_value, rows)


def concat_in_dim(builder: XlaBuilder, operands: Sequence[XlaOp], dimension: int) -> XlaOp:
    """The operands one after the other along a dimension (ConcatInDim)."""
    return builder.add(Op.CONCATENATE, operands, dimensions=(dimension,))


def get_dimension_size(operand: XlaOp, dimension: int) -> XlaOp:
    """The size of a dimension at run time, an s32 (GetDimensionSize)."""
    return operand.builder.add(Op.GET_DIMENSION_SIZE, [operand], dimensions=(dimension,))


def set_dimension_size(operand: XlaOp, val: XlaOp, dimension: int) -> XlaOp:
    """The operand with a dynamic dimension of this size, an s32 (SetDimensionSize)."""
    return operand.builder.add(Op.SET_DIMENSION_SIZE, [operand, val], dimensions=(dimension,))


def dynamic_reshape(
    operand: XlaOp, dim_sizes: Sequence[XlaOp], new_size_bounds: Sequence[int], dims_are_dynamic: Sequence[bool]
) -> XlaOp:
    """A reshape to sizes that are computed at run time, s32 scalars, up to these bounds (DynamicReshape)."""
    shape = Shape(operand.dtype, tuple(new_size_bounds), None, tuple(dims_are_dynamic))
    return operand.builder.add(Op.DYNAMIC_RESHAPE, [operand, *dim_sizes], shape)


def gather(
    input: XlaOp,
    start_indices: XlaOp,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    start_index_map: Sequence[int],
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    indices_are_sorted: bool = False,
) -> XlaOp:
    """Slices of the input at an array of indices (Gather; the keywords are those of GatherDimensionNumbers)."""
    return input.builder.add(
        Op.GATHER,
        [input, start_indices],
        offset_dims=offset_dims,
        collapsed_slice_dims=collapsed_slice_dims,
        start_index_map=start_index_map,
        operand_batching_dims=operand_batching_dims or None,
        start_indices_batching_dims=start_indices_batching_dims or None,
        index_vector_dim=index_vector_dim,
        slice_sizes=slice_sizes,
        indices_are_sorted=indices_are_sorted or None,
    )


def scatter(
    inputs: XlaOp | Sequence[XlaOp],
    scatter_indices: XlaOp,
    updates: XlaOp | Sequence[XlaOp],
    update_computation: ComputationLike,
    *,
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    scatter_dims_to_operand_dims: Sequence[int],
    index_vector_dim: int,
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> XlaOp:
    """The inputs with updates combined into them at an array of indices (Scatter; the keywords are those of
    ScatterDimensionNumbers). update_computation(old…, update…) takes and returns a scalar for each input.
    """
    xs, us = (list(v) if isinstance(v, Sequence) else [v] for v in (inputs, updates))
    region = scalars_computation(scatter_indices, update_computation, [*xs, *us], "update")
    return scatter_indices.builder.add(
        Op.SCATTER,
        [*xs, scatter_indices, *us],
        update_window_dims=update_window_dims,
        inserted_window_dims=inserted_window_dims,
        scatter_dims_to_operand_dims=scatter_dims_to_operand_dims,
        input_batching_dims=input_batching_dims or None,
        scatter_indices_batching_dims=scatter_indices_batching_dims or None,
        index_vector_dim=index_vector_dim,
        indices_are_sorted=indices_are_sorted or None,
        unique_indices=unique_indices or None,
        to_apply=region,
    )


def scalars_computation(at: XlaOp, source: ComputationLike, like: Sequence[XlaOp], name: str) -> Computation:
    """A computation of the module of `at` whose parameters are scalars of the types of `like`."""
    return at.builder.computation(source, [Shape(x.dtype) for x in like], name)


__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "collapse",
    "concat_in_dim",
    "dynamic_reshape",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "get_dimension_size",
    "pad",
    "pad_in_dim",
    "reshape",
    "rev",
    "scatter",
    "set_dimension_size",
    "slice",
    "slice_in_dim",
    "transpose",
]
