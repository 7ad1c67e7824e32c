"""The table of HLO's 133 opcodes, one row of facts each; lists of opcodes are derived from it.

A row gives the opcode's family, the number of its operands, its dtypes, its attributes, whether it is elementwise, and
the largest difference allowed between a stack's result and the evaluator's, in units in the last place (ulp). The
meaning of an opcode is its row in evaluator/rules.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from .dtypes import COMPLEX, FLOAT, INTEGER, UNSIGNED, DType
from .opcodes import Op
from .opset_rows import (
    ALGORITHM_ULP,
    ANY,
    EXACT,
    FUNCTION_ULP,
    MANY,
    NUMBER,
    PRED,
    Family,
    Row,
    binary,
    elementwise,
    function,
    op,
    unary,
)

_F = Family
_DOT = ("lhs_contracting_dims", "rhs_contracting_dims")
_BATCH = ("lhs_batch_dims", "rhs_batch_dims", "operand_precision", "algorithm")
_GROUPS = ("replica_groups", "channel_id")
_COLLECTIVE = (*_GROUPS, "constrain_layout", "use_global_device_ids")
_REDUCING = (*_COLLECTIVE, "mode")
_PERMUTE = ("channel_id", "slice_sizes")
_CONVOLUTION = ("window", "feature_group_count", "batch_group_count", "operand_precision")
_TRANSFER = ("channel_id", "is_host_transfer")
_THREAD = ("async_execution_thread",)
_ALIASING = "output_to_operand_aliasing"

OPSET: dict[Op, Row] = {
    # unary
    Op.ABS: unary(NUMBER - UNSIGNED),
    Op.ACOS: function(FLOAT | COMPLEX),
    Op.ACOSH: function(FLOAT | COMPLEX),
    Op.ASIN: function(FLOAT | COMPLEX),
    Op.ASINH: function(FLOAT | COMPLEX),
    Op.ATANH: function(FLOAT | COMPLEX),
    Op.CBRT: function(FLOAT | COMPLEX),
    Op.CEIL: unary(FLOAT),
    Op.COSINE: function(FLOAT | COMPLEX),
    Op.COSH: function(FLOAT | COMPLEX),
    Op.COUNT_LEADING_ZEROS: unary(INTEGER),
    Op.ERF: function(FLOAT, ulp=6),
    Op.EXPONENTIAL: function(FLOAT | COMPLEX),
    Op.EXPONENTIAL_MINUS_ONE: function(FLOAT | COMPLEX),
    Op.FLOOR: unary(FLOAT),
    Op.IMAG: unary(FLOAT | COMPLEX),
    Op.IS_FINITE: unary(FLOAT),
    Op.LOG: function(FLOAT | COMPLEX),
    Op.LOG_PLUS_ONE: function(FLOAT | COMPLEX),
    Op.LOGISTIC: function(FLOAT | COMPLEX),
    Op.NEGATE: unary(NUMBER),
    Op.NOT: unary(INTEGER | PRED),
    Op.POPCNT: unary(INTEGER),
    Op.REAL: unary(FLOAT | COMPLEX),
    Op.ROUND_NEAREST_AFZ: unary(FLOAT),
    Op.ROUND_NEAREST_EVEN: unary(FLOAT),
    Op.RSQRT: function(FLOAT | COMPLEX),
    Op.SIGN: unary(NUMBER - UNSIGNED),
    Op.SINE: function(FLOAT | COMPLEX),
    Op.SINH: function(FLOAT | COMPLEX),
    Op.SQRT: function(FLOAT | COMPLEX, ulp=EXACT),
    Op.TAN: function(FLOAT | COMPLEX, ulp=6),
    Op.TANH: function(FLOAT | COMPLEX, ulp=6),
    # conversions
    Op.CONVERT: elementwise(_F.CONVERT, 1, ANY),
    Op.BITCAST_CONVERT: elementwise(_F.CONVERT, 1, ANY),
    Op.REDUCE_PRECISION: elementwise(_F.CONVERT, 1, FLOAT, attributes=("exponent_bits", "mantissa_bits")),
    Op.STOCHASTIC_CONVERT: elementwise(_F.CONVERT, 2, FLOAT),
    # binary
    Op.ADD: binary(ANY),
    Op.AND: binary(INTEGER | PRED),
    Op.ATAN2: binary(FLOAT | COMPLEX, ulp=FUNCTION_ULP),
    Op.COMPARE: elementwise(_F.BINARY, 2, ANY, attributes=("direction",), optional=("type",)),
    Op.COMPLEX: binary(frozenset({DType.F32, DType.F64})),
    Op.DIVIDE: binary(NUMBER),
    Op.MAXIMUM: binary(ANY),
    Op.MINIMUM: binary(ANY),
    Op.MULHI: binary(INTEGER),
    Op.MULTIPLY: binary(ANY),
    Op.OR: binary(INTEGER | PRED),
    Op.POWER: binary(NUMBER, ulp=FUNCTION_ULP),
    Op.REMAINDER: binary(INTEGER | FLOAT),
    Op.SHIFT_LEFT: binary(INTEGER),
    Op.SHIFT_RIGHT_ARITHMETIC: binary(INTEGER),
    Op.SHIFT_RIGHT_LOGICAL: binary(INTEGER),
    Op.SUBTRACT: binary(NUMBER),
    Op.XOR: binary(INTEGER | PRED),
    # ternary
    Op.CLAMP: elementwise(_F.TERNARY, 3, ANY),
    Op.SELECT: elementwise(_F.TERNARY, 3, ANY),
    # data movement
    Op.BITCAST: op(_F.SHAPE, 1),
    Op.BROADCAST: op(_F.SHAPE, 1, optional=("dimensions",)),
    Op.CONCATENATE: op(_F.SHAPE, 0, MANY, attributes=("dimensions",)),
    Op.COPY: op(_F.SHAPE, 1, elementwise=True),
    Op.DYNAMIC_RESHAPE: op(_F.SHAPE, 1, MANY),
    Op.DYNAMIC_SLICE: op(_F.SHAPE, 1, MANY, attributes=("dynamic_slice_sizes",)),
    Op.DYNAMIC_UPDATE_SLICE: op(_F.SHAPE, 2, MANY),
    Op.GATHER: op(
        _F.SHAPE,
        2,
        attributes=("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes"),
        optional=("operand_batching_dims", "start_indices_batching_dims", "indices_are_sorted"),
    ),
    Op.GET_DIMENSION_SIZE: op(_F.SHAPE, 1, attributes=("dimensions",)),
    Op.IOTA: op(_F.SHAPE, 0, dtypes=NUMBER, attributes=("iota_dimension",)),
    Op.PAD: op(_F.SHAPE, 2, attributes=("padding",)),
    Op.RESHAPE: op(_F.SHAPE, 1, optional=("inferred_dimension",)),
    Op.REVERSE: op(_F.SHAPE, 1, attributes=("dimensions",)),
    Op.SCATTER: op(
        _F.SHAPE,
        3,
        MANY,
        attributes=(
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "index_vector_dim",
            "to_apply",
        ),
        optional=("input_batching_dims", "scatter_indices_batching_dims", "indices_are_sorted", "unique_indices"),
    ),
    Op.SET_DIMENSION_SIZE: op(_F.SHAPE, 2, attributes=("dimensions",)),
    Op.SLICE: op(_F.SHAPE, 1, attributes=("slice",)),
    Op.TRANSPOSE: op(_F.SHAPE, 1, attributes=("dimensions",)),
    # computations of scalars applied to arrays
    Op.MAP: op(_F.REGION, 0, MANY, attributes=("to_apply",), optional=("dimensions",)),
    Op.REDUCE: op(_F.REGION, 2, MANY, attributes=("dimensions", "to_apply")),
    Op.REDUCE_WINDOW: op(_F.REGION, 2, MANY, attributes=("to_apply",), optional=("window",)),
    Op.SCAN: op(
        _F.REGION,
        0,
        MANY,
        attributes=("dimensions", "to_apply", "num_carries"),
        optional=("is_reverse", "is_associative"),
    ),
    Op.SELECT_AND_SCATTER: op(_F.REGION, 3, attributes=("select", "scatter"), optional=("window",)),
    Op.SORT: op(_F.REGION, 1, MANY, attributes=("dimensions", "to_apply"), optional=("is_stable",)),
    Op.TOPK: op(_F.REGION, 1, attributes=("k",), optional=("largest", "is_stable")),
    # linear algebra
    Op.BATCH_NORM_GRAD: op(_F.LINALG, 5, dtypes=FLOAT, attributes=("epsilon", "feature_index"), ulp=ALGORITHM_ULP),
    Op.BATCH_NORM_INFERENCE: op(_F.LINALG, 5, dtypes=FLOAT, attributes=("epsilon", "feature_index"), ulp=ALGORITHM_ULP),
    Op.BATCH_NORM_TRAINING: op(_F.LINALG, 3, dtypes=FLOAT, attributes=("epsilon", "feature_index"), ulp=ALGORITHM_ULP),
    Op.CHOLESKY: op(_F.LINALG, 1, dtypes=FLOAT | COMPLEX, optional=("lower",), ulp=ALGORITHM_ULP),
    Op.CONVOLUTION: op(
        _F.LINALG,
        2,
        MANY,
        dtypes=NUMBER,
        attributes=("dim_labels",),
        optional=(*_CONVOLUTION, "convolution_kind", "sparsity_config", "algorithm"),
        ulp=1,
    ),
    Op.DOT: op(_F.LINALG, 2, MANY, optional=(*_DOT, *_BATCH), ulp=1),
    Op.FFT: op(
        _F.LINALG,
        1,
        dtypes=frozenset({DType.F32, DType.F64}) | COMPLEX,
        attributes=("fft_type", "fft_length"),
        ulp=ALGORITHM_ULP,
    ),
    Op.RAGGED_DOT: op(_F.LINALG, 3, ulp=1, optional=("lhs_ragged_dims", "rhs_group_dims", *_DOT, *_BATCH)),
    Op.SCALED_DOT: op(_F.LINALG, 4, dtypes=FLOAT, optional=(*_DOT, *_BATCH), ulp=1),
    Op.TRIANGULAR_SOLVE: op(
        _F.LINALG,
        2,
        dtypes=FLOAT | COMPLEX,
        optional=("left_side", "lower", "unit_diagonal", "transpose_a"),
        ulp=ALGORITHM_ULP,
    ),
    # control and structure
    Op.ADD_DEPENDENCY: op(_F.CONTROL, 2),
    Op.AFTER_ALL: op(_F.CONTROL, 0, MANY),
    Op.CALL: op(_F.CONTROL, 0, MANY, attributes=("to_apply",), optional=("is_composite", _ALIASING)),
    Op.CONDITIONAL: op(_F.CONTROL, 1, MANY, optional=("branch_computations", "true_computation", "false_computation")),
    Op.CONSTANT: op(_F.CONTROL, 0),
    Op.CUSTOM_CALL: op(
        _F.CONTROL,
        0,
        MANY,
        attributes=("custom_call_target",),
        optional=(
            *(*_CONVOLUTION, _ALIASING, "dim_labels", "padding_type", "literal", "to_apply", "called_computations"),
            *("operand_layout_constraints", "custom_call_has_side_effect", "schedule", "api_version"),
        ),
    ),
    Op.DOMAIN: op(_F.CONTROL, 1, attributes=("domain",)),
    Op.FUSION: op(_F.CONTROL, 0, MANY, attributes=("calls", "kind"), optional=(_ALIASING,)),
    Op.GET_TUPLE_ELEMENT: op(_F.CONTROL, 1, attributes=("index",)),
    Op.OPT_BARRIER: op(_F.CONTROL, 1),
    Op.PARAMETER: op(_F.CONTROL, 0),
    Op.TUPLE: op(_F.CONTROL, 0, MANY),
    Op.WHILE: op(_F.CONTROL, 1, attributes=("condition", "body")),
    # random numbers
    Op.RNG: op(_F.RNG, 0, MANY, attributes=("distribution",)),
    Op.RNG_BIT_GENERATOR: op(_F.RNG, 1, dtypes=INTEGER, attributes=("algorithm",)),
    Op.RNG_GET_AND_UPDATE_STATE: op(_F.RNG, 0, attributes=("delta",)),
    # asynchronous pairs
    Op.ASYNC_START: op(_F.ASYNC, 0, MANY, attributes=("calls",), optional=(*_THREAD, _ALIASING)),
    Op.ASYNC_UPDATE: op(_F.ASYNC, 1, optional=("calls", *_THREAD, _ALIASING)),
    Op.ASYNC_DONE: op(_F.ASYNC, 1, optional=("calls", *_THREAD)),
    Op.COPY_START: op(_F.ASYNC, 1, optional=("cross_program_prefetch_index",)),
    Op.COPY_DONE: op(_F.ASYNC, 1),
    # collectives
    Op.ALL_GATHER: op(_F.COLLECTIVE, 0, MANY, attributes=("dimensions",), optional=_COLLECTIVE),
    Op.ALL_GATHER_START: op(_F.COLLECTIVE, 0, MANY, attributes=("dimensions",), optional=_COLLECTIVE),
    Op.ALL_GATHER_DONE: op(_F.COLLECTIVE, 1),
    Op.ALL_REDUCE: op(_F.COLLECTIVE, 0, MANY, attributes=("to_apply",), optional=_REDUCING),
    Op.ALL_REDUCE_START: op(_F.COLLECTIVE, 0, MANY, attributes=("to_apply",), optional=_REDUCING),
    Op.ALL_REDUCE_DONE: op(_F.COLLECTIVE, 1),
    Op.ALL_TO_ALL: op(_F.COLLECTIVE, 0, MANY, optional=("dimensions", *_GROUPS, "constrain_layout")),
    Op.COLLECTIVE_BROADCAST: op(_F.COLLECTIVE, 0, MANY, optional=_GROUPS),
    Op.COLLECTIVE_PERMUTE: op(_F.COLLECTIVE, 0, MANY, attributes=("source_target_pairs",), optional=_PERMUTE),
    Op.COLLECTIVE_PERMUTE_START: op(_F.COLLECTIVE, 0, MANY, attributes=("source_target_pairs",), optional=_PERMUTE),
    Op.COLLECTIVE_PERMUTE_DONE: op(_F.COLLECTIVE, 1),
    Op.RAGGED_ALL_TO_ALL: op(_F.COLLECTIVE, 0, MANY, optional=("dimensions", *_GROUPS)),
    Op.REDUCE_SCATTER: op(_F.COLLECTIVE, 0, MANY, attributes=("to_apply", "dimensions"), optional=_REDUCING),
    Op.PARTITION_ID: op(_F.COLLECTIVE, 0),
    Op.REPLICA_ID: op(_F.COLLECTIVE, 0),
    # input and output
    Op.INFEED: op(_F.IO, 1, optional=("infeed_config",)),
    Op.OUTFEED: op(_F.IO, 2, optional=("outfeed_config", "outfeed_shape")),
    Op.SEND: op(_F.IO, 2, optional=_TRANSFER),
    Op.SEND_DONE: op(_F.IO, 1, optional=_TRANSFER),
    Op.RECV: op(_F.IO, 1, optional=_TRANSFER),
    Op.RECV_DONE: op(_F.IO, 1, optional=_TRANSFER),
}


def opcodes(families: Iterable[Family]) -> tuple[Op, ...]:
    """The opcodes of these families, in the order of the table."""
    wanted = frozenset(families)
    return tuple(o for o, row in OPSET.items() if row.family in wanted)


UNARY, BINARY = frozenset(opcodes([Family.UNARY])), frozenset(opcodes([Family.BINARY]))
