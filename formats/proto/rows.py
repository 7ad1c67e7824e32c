"""Which attributes are read from an opcode's proto: `name!` always, `name` only if the value is not the default."""

from __future__ import annotations

from ...hlo.opcodes import Op
from ...hlo.opset import OPSET

COMMON = ("backend_config", "metadata", "sharding", "frontend_attributes", "statistics", "origin")
"""Attributes that are read from every instruction's proto."""
DIMENSIONS = ("dimensions!",)
COLLECTIVE = ("replica_groups!", "channel_id", "use_global_device_ids", "constrain_layout")
PERMUTE = ("source_target_pairs!", "channel_id")
PRECISION = ("operand_precision", "algorithm")
DOT = ("lhs_batch_dims", "lhs_contracting_dims!", "rhs_batch_dims", "rhs_contracting_dims!", *PRECISION)
CONVOLUTION = ("window", "dim_labels", "feature_group_count", "batch_group_count", "operand_precision")
TRANSFER = ("channel_id", "is_host_transfer")
NORM = ("epsilon!", "feature_index!")

ROWS: dict[Op, tuple[str, ...]] = {
    **{op: ("result_accuracy",) for op, row in OPSET.items() if "result_accuracy" in row.optional},
    Op.BROADCAST: DIMENSIONS,
    Op.CONCATENATE: DIMENSIONS,
    Op.REDUCE: DIMENSIONS,
    Op.REVERSE: DIMENSIONS,
    Op.TRANSPOSE: DIMENSIONS,
    Op.SORT: (*DIMENSIONS, "is_stable"),
    Op.MAP: DIMENSIONS,
    Op.GET_DIMENSION_SIZE: DIMENSIONS,
    Op.SET_DIMENSION_SIZE: DIMENSIONS,
    Op.SCAN: (*DIMENSIONS, "is_reverse", "is_associative", "num_carries!"),
    Op.IOTA: ("iota_dimension!",),
    Op.RESHAPE: ("inferred_dimension",),
    Op.SLICE: ("slice!",),
    Op.DYNAMIC_SLICE: ("dynamic_slice_sizes!",),
    Op.PAD: ("padding!",),
    Op.REDUCE_WINDOW: ("window",),
    Op.SELECT_AND_SCATTER: ("window",),
    Op.CONVOLUTION: (*CONVOLUTION, "convolution_kind", "algorithm"),
    Op.DOT: DOT,
    Op.RAGGED_DOT: (*DOT, "lhs_ragged_dims", "rhs_group_dims"),
    Op.SCALED_DOT: DOT,
    Op.GATHER: (
        *("offset_dims!", "collapsed_slice_dims!", "start_index_map!", "operand_batching_dims"),
        *("start_indices_batching_dims", "index_vector_dim!", "slice_sizes!", "indices_are_sorted"),
    ),
    Op.SCATTER: (
        *("update_window_dims!", "inserted_window_dims!", "scatter_dims_to_operand_dims!", "input_batching_dims"),
        *("scatter_indices_batching_dims", "index_vector_dim!", "indices_are_sorted", "unique_indices"),
    ),
    Op.COMPARE: ("direction!", "type"),
    Op.REDUCE_PRECISION: ("exponent_bits!", "mantissa_bits!"),
    Op.TOPK: ("k!", "largest!", "is_stable"),
    Op.BATCH_NORM_TRAINING: NORM,
    Op.BATCH_NORM_INFERENCE: NORM,
    Op.BATCH_NORM_GRAD: NORM,
    Op.CHOLESKY: ("lower",),
    Op.TRIANGULAR_SOLVE: ("left_side", "lower", "unit_diagonal", "transpose_a"),
    Op.FFT: ("fft_type!", "fft_length!"),
    Op.RNG: ("distribution!",),
    Op.RNG_BIT_GENERATOR: ("algorithm!",),
    Op.RNG_GET_AND_UPDATE_STATE: ("delta!",),
    Op.FUSION: ("kind!", "output_to_operand_aliasing"),
    Op.GET_TUPLE_ELEMENT: ("index!",),
    Op.PARAMETER: ("parameter_replication",),
    Op.CALL: ("is_composite", "output_to_operand_aliasing"),
    Op.DOMAIN: ("domain!",),
    Op.CUSTOM_CALL: (
        *("custom_call_target!", *CONVOLUTION, "padding_type", "operand_layout_constraints", "literal", "schedule"),
        *("custom_call_has_side_effect", "api_version", "output_to_operand_aliasing"),
    ),
    Op.ASYNC_START: ("async_execution_thread", "output_to_operand_aliasing"),
    Op.ASYNC_UPDATE: ("output_to_operand_aliasing",),
    Op.ASYNC_DONE: (),
    Op.COPY_START: ("cross_program_prefetch_index",),
    Op.INFEED: ("infeed_config",),
    Op.OUTFEED: ("outfeed_shape", "outfeed_config"),
    Op.SEND: TRANSFER,
    Op.SEND_DONE: TRANSFER,
    Op.RECV: TRANSFER,
    Op.RECV_DONE: TRANSFER,
    Op.ALL_GATHER: (*DIMENSIONS, *COLLECTIVE),
    Op.ALL_GATHER_START: (*DIMENSIONS, *COLLECTIVE),
    Op.ALL_REDUCE: COLLECTIVE,
    Op.ALL_REDUCE_START: COLLECTIVE,
    Op.ALL_TO_ALL: ("dimensions", "replica_groups!", "channel_id", "constrain_layout"),
    Op.REDUCE_SCATTER: (*DIMENSIONS, *COLLECTIVE),
    Op.COLLECTIVE_BROADCAST: ("replica_groups!", "channel_id"),
    Op.RAGGED_ALL_TO_ALL: ("replica_groups!", "channel_id"),
    Op.COLLECTIVE_PERMUTE: (*PERMUTE, "slice_sizes"),
    Op.COLLECTIVE_PERMUTE_START: (*PERMUTE, "slice_sizes"),
}

CALLED: dict[Op, tuple[str, ...]] = {
    Op.REDUCE: ("to_apply",),
    Op.REDUCE_WINDOW: ("to_apply",),
    Op.MAP: ("to_apply",),
    Op.SCATTER: ("to_apply",),
    Op.SORT: ("to_apply",),
    Op.SCAN: ("to_apply",),
    Op.CALL: ("to_apply",),
    Op.ALL_REDUCE: ("to_apply",),
    Op.ALL_REDUCE_START: ("to_apply",),
    Op.REDUCE_SCATTER: ("to_apply",),
    Op.FUSION: ("calls",),
    Op.ASYNC_START: ("calls",),
    Op.WHILE: ("body", "condition"),
    Op.SELECT_AND_SCATTER: ("select", "scatter"),
}
"""The attributes whose computations are in called_computation_ids, in the order of the ids."""

ONES = {"feature_group_count", "batch_group_count"}
"""Attributes whose default is 1; text omits them then."""
