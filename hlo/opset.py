"""The table of HLO's 133 opcodes, one row of facts each; lists of opcodes are derived from it.

A row says to which family an opcode belongs, how many operands it takes, which dtypes, which attributes, what it means
(the reference function, run by the evaluator) and how far a result may lie from it, in units in the last place (ulp).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .dtypes import COMPLEX, FLOAT, INTEGER, UNSIGNED, DType
from .opcodes import Op
from .opset_rows import (
    ANY,
    DEFAULT_ULP,
    EXACT,
    NUMBER,
    PRED,
    Family,
    Row,
    binary,
    elementwise,
    function,
    op,
    typed,
    unary,
)
from .reference import collective, control, convert, convolution, indexing, linalg, random, region, shape, sorting
from .reference import complex as cx
from .reference import elementwise as ew
from .reference import special as sp

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
    Op.ABS: unary(NUMBER - UNSIGNED, ew.absolute),
    Op.ACOS: function(FLOAT | COMPLEX, sp.acos),
    Op.ACOSH: function(FLOAT | COMPLEX, sp.acosh),
    Op.ASIN: function(FLOAT | COMPLEX, sp.asin),
    Op.ASINH: function(FLOAT | COMPLEX, sp.asinh),
    Op.ATANH: function(FLOAT | COMPLEX, sp.atanh),
    Op.CBRT: function(FLOAT | COMPLEX, sp.cbrt, ulp=70),
    Op.CEIL: unary(FLOAT, np.ceil),
    Op.COSINE: function(FLOAT | COMPLEX, sp.cosine),
    Op.COSH: function(FLOAT | COMPLEX, sp.cosh),
    Op.COUNT_LEADING_ZEROS: typed(_F.UNARY, 1, INTEGER, ew.count_leading_zeros),
    Op.ERF: function(FLOAT, sp.erf),
    Op.EXPONENTIAL: function(FLOAT | COMPLEX, sp.exponential),
    Op.EXPONENTIAL_MINUS_ONE: function(FLOAT | COMPLEX, sp.expm1),
    Op.FLOOR: unary(FLOAT, np.floor),
    Op.IMAG: unary(FLOAT | COMPLEX, np.imag),
    Op.IS_FINITE: unary(FLOAT, np.isfinite),
    Op.LOG: function(FLOAT | COMPLEX, sp.log),
    Op.LOG_PLUS_ONE: function(FLOAT | COMPLEX, sp.log1p),
    Op.LOGISTIC: function(FLOAT | COMPLEX, sp.logistic),
    Op.NEGATE: unary(NUMBER, ew.negate),
    Op.NOT: unary(INTEGER | PRED, np.bitwise_not),
    Op.POPCNT: typed(_F.UNARY, 1, INTEGER, ew.popcnt),
    Op.REAL: unary(FLOAT | COMPLEX, np.real),
    Op.ROUND_NEAREST_AFZ: unary(FLOAT, ew.round_nearest_afz),
    Op.ROUND_NEAREST_EVEN: unary(FLOAT, np.rint),
    Op.RSQRT: function(FLOAT | COMPLEX, sp.rsqrt),
    Op.SIGN: unary(NUMBER - UNSIGNED, ew.sign),
    Op.SINE: function(FLOAT | COMPLEX, sp.sine),
    Op.SINH: function(FLOAT | COMPLEX, sp.sinh),
    Op.SQRT: function(FLOAT | COMPLEX, sp.sqrt),
    Op.TAN: function(FLOAT | COMPLEX, sp.tan, ulp=16),
    Op.TANH: function(FLOAT | COMPLEX, sp.tanh),
    # conversions
    Op.CONVERT: typed(_F.CONVERT, 1, ANY, convert.convert),
    Op.BITCAST_CONVERT: typed(_F.CONVERT, 1, ANY, convert.bitcast_convert),
    Op.REDUCE_PRECISION: typed(_F.CONVERT, 1, FLOAT, convert.reduce_precision, ("exponent_bits", "mantissa_bits")),
    Op.STOCHASTIC_CONVERT: typed(_F.CONVERT, 2, FLOAT, convert.stochastic_convert),
    # binary
    Op.ADD: binary(ANY, ew.add),
    Op.AND: binary(INTEGER | PRED, np.bitwise_and),
    Op.ATAN2: binary(FLOAT | COMPLEX, sp.atan2, ulp=DEFAULT_ULP, precise=True),
    Op.COMPARE: typed(_F.BINARY, 2, ANY, ew.compare, ("direction",), ("type",)),
    Op.COMPLEX: binary(frozenset({DType.F32, DType.F64}), cx.make_complex),
    Op.DIVIDE: binary(NUMBER, ew.divide),
    Op.MAXIMUM: binary(INTEGER | FLOAT | PRED, ew.maximum),
    Op.MINIMUM: binary(INTEGER | FLOAT | PRED, ew.minimum),
    Op.MULHI: binary(INTEGER, ew.mulhi),
    Op.MULTIPLY: binary(ANY, ew.multiply),
    Op.OR: binary(INTEGER | PRED, np.bitwise_or),
    Op.POWER: binary(NUMBER, sp.power, ulp=DEFAULT_ULP),
    Op.REMAINDER: binary(INTEGER | FLOAT, ew.remainder),
    Op.SHIFT_LEFT: typed(_F.BINARY, 2, INTEGER, ew.shift_left),
    Op.SHIFT_RIGHT_ARITHMETIC: typed(_F.BINARY, 2, INTEGER, ew.shift_right_arithmetic),
    Op.SHIFT_RIGHT_LOGICAL: typed(_F.BINARY, 2, INTEGER, ew.shift_right_logical),
    Op.SUBTRACT: binary(NUMBER, ew.subtract),
    Op.XOR: binary(INTEGER | PRED, np.bitwise_xor),
    # ternary
    Op.CLAMP: elementwise(_F.TERNARY, 3, INTEGER | FLOAT | PRED, ew.clamp, EXACT),
    Op.SELECT: typed(_F.TERNARY, 3, ANY, ew.select),
    # data movement
    Op.BITCAST: op(_F.SHAPE, 1, reference=convert.bitcast),
    Op.BROADCAST: op(_F.SHAPE, 1, reference=shape.broadcast, optional=("dimensions",)),
    Op.CONCATENATE: op(_F.SHAPE, 0, None, shape.concatenate, attributes=("dimensions",)),
    Op.COPY: op(_F.SHAPE, 1, reference=shape.copy),
    Op.DYNAMIC_RESHAPE: op(_F.SHAPE, 1, None, shape.dynamic_reshape),
    Op.DYNAMIC_SLICE: op(_F.SHAPE, 1, None, shape.dynamic_slice, attributes=("dynamic_slice_sizes",)),
    Op.DYNAMIC_UPDATE_SLICE: op(_F.SHAPE, 2, None, shape.dynamic_update_slice),
    Op.GATHER: op(
        _F.SHAPE,
        2,
        reference=indexing.gather,
        attributes=("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes"),
        optional=("operand_batching_dims", "start_indices_batching_dims", "indices_are_sorted"),
    ),
    Op.GET_DIMENSION_SIZE: op(_F.SHAPE, 1, reference=shape.get_dimension_size, attributes=("dimensions",)),
    Op.IOTA: op(_F.SHAPE, 0, reference=shape.iota, dtypes=NUMBER, attributes=("iota_dimension",)),
    Op.PAD: op(_F.SHAPE, 2, reference=shape.pad, attributes=("padding",)),
    Op.RESHAPE: op(_F.SHAPE, 1, reference=shape.reshape, optional=("inferred_dimension",)),
    Op.REVERSE: op(_F.SHAPE, 1, reference=shape.reverse, attributes=("dimensions",)),
    Op.SCATTER: op(
        _F.SHAPE,
        3,
        None,
        indexing.scatter,
        attributes=(
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "index_vector_dim",
            "to_apply",
        ),
        optional=("input_batching_dims", "scatter_indices_batching_dims", "indices_are_sorted", "unique_indices"),
    ),
    Op.SET_DIMENSION_SIZE: op(_F.SHAPE, 2, reference=shape.set_dimension_size, attributes=("dimensions",)),
    Op.SLICE: op(_F.SHAPE, 1, reference=shape.slice_, attributes=("slice",)),
    Op.TRANSPOSE: op(_F.SHAPE, 1, reference=shape.transpose, attributes=("dimensions",)),
    # computations of scalars applied to arrays
    Op.MAP: op(_F.REGION, 0, None, region.map_, attributes=("to_apply",), optional=("dimensions",), ulp=DEFAULT_ULP),
    Op.REDUCE: op(_F.REGION, 2, None, region.reduce, attributes=("dimensions", "to_apply"), ulp=DEFAULT_ULP),
    Op.REDUCE_WINDOW: op(
        _F.REGION, 2, None, region.reduce_window, attributes=("to_apply",), optional=("window",), ulp=DEFAULT_ULP
    ),
    Op.SCAN: op(
        _F.REGION,
        0,
        None,
        region.scan,
        attributes=("dimensions", "to_apply", "num_carries"),
        optional=("is_reverse", "is_associative"),
        ulp=DEFAULT_ULP,
    ),
    Op.SELECT_AND_SCATTER: op(
        _F.REGION,
        3,
        reference=region.select_and_scatter,
        attributes=("select", "scatter"),
        optional=("window",),
        ulp=DEFAULT_ULP,
    ),
    Op.SORT: op(_F.REGION, 1, None, sorting.sort, attributes=("dimensions", "to_apply"), optional=("is_stable",)),
    Op.TOPK: op(_F.REGION, 1, reference=sorting.topk, attributes=("k",), optional=("largest",)),
    # linear algebra
    Op.BATCH_NORM_GRAD: op(
        _F.LINALG,
        5,
        reference=linalg.batch_norm_grad,
        dtypes=FLOAT,
        attributes=("epsilon", "feature_index"),
        ulp=DEFAULT_ULP,
    ),
    Op.BATCH_NORM_INFERENCE: op(
        _F.LINALG,
        5,
        reference=linalg.batch_norm_inference,
        dtypes=FLOAT,
        attributes=("epsilon", "feature_index"),
        ulp=DEFAULT_ULP,
    ),
    Op.BATCH_NORM_TRAINING: op(
        _F.LINALG,
        3,
        reference=linalg.batch_norm_training,
        dtypes=FLOAT,
        attributes=("epsilon", "feature_index"),
        ulp=DEFAULT_ULP,
    ),
    Op.CHOLESKY: op(
        _F.LINALG, 1, reference=linalg.cholesky, dtypes=FLOAT | COMPLEX, optional=("lower",), ulp=DEFAULT_ULP
    ),
    Op.CONVOLUTION: op(
        _F.LINALG,
        2,
        None,
        convolution.convolution,
        dtypes=NUMBER,
        attributes=("dim_labels",),
        optional=(*_CONVOLUTION, "convolution_kind", "sparsity_config"),
        ulp=DEFAULT_ULP,
    ),
    Op.DOT: op(_F.LINALG, 2, None, linalg.dot, optional=(*_DOT, *_BATCH), ulp=DEFAULT_ULP),
    Op.FFT: op(
        _F.LINALG,
        1,
        reference=linalg.fft,
        dtypes=frozenset({DType.F32, DType.F64}) | COMPLEX,
        attributes=("fft_type", "fft_length"),
        ulp=DEFAULT_ULP,
    ),
    Op.RAGGED_DOT: op(
        _F.LINALG,
        3,
        reference=linalg.ragged_dot,
        ulp=DEFAULT_ULP,
        optional=("lhs_ragged_dims", "rhs_group_dims", *_DOT, *_BATCH),
    ),
    Op.SCALED_DOT: op(
        _F.LINALG, 4, reference=linalg.scaled_dot, dtypes=FLOAT, optional=(*_DOT, *_BATCH), ulp=DEFAULT_ULP
    ),
    Op.TRIANGULAR_SOLVE: op(
        _F.LINALG,
        2,
        reference=linalg.triangular_solve,
        dtypes=FLOAT | COMPLEX,
        optional=("left_side", "lower", "unit_diagonal", "transpose_a"),
        ulp=DEFAULT_ULP,
    ),
    # control and structure
    Op.ADD_DEPENDENCY: op(_F.CONTROL, 2, reference=control.identity),
    Op.AFTER_ALL: op(_F.CONTROL, 0, None, control.token),
    Op.CALL: op(_F.CONTROL, 0, None, control.call, attributes=("to_apply",), optional=("is_composite", _ALIASING)),
    Op.CONDITIONAL: op(
        _F.CONTROL,
        1,
        None,
        control.conditional,
        optional=("branch_computations", "true_computation", "false_computation"),
    ),
    Op.CONSTANT: op(_F.CONTROL, 0, reference=control.constant),
    Op.CUSTOM_CALL: op(
        _F.CONTROL,
        0,
        None,
        control.custom_call,
        attributes=("custom_call_target",),
        optional=(
            *(*_CONVOLUTION, _ALIASING, "dim_labels", "padding_type", "literal", "to_apply", "called_computations"),
            *("operand_layout_constraints", "custom_call_has_side_effect", "schedule", "api_version"),
        ),
    ),
    Op.DOMAIN: op(_F.CONTROL, 1, reference=control.identity, attributes=("domain",)),
    Op.FUSION: op(_F.CONTROL, 0, None, control.call, attributes=("calls", "kind"), optional=(_ALIASING,)),
    Op.GET_TUPLE_ELEMENT: op(_F.CONTROL, 1, reference=control.get_tuple_element, attributes=("index",)),
    Op.OPT_BARRIER: op(_F.CONTROL, 1, reference=control.identity),
    Op.PARAMETER: op(_F.CONTROL, 0, reason="the evaluator binds parameters itself"),
    Op.TUPLE: op(_F.CONTROL, 0, None, control.make_tuple),
    Op.WHILE: op(_F.CONTROL, 1, reference=control.while_, attributes=("condition", "body")),
    # random numbers
    Op.RNG: op(_F.RNG, 0, None, random.rng, attributes=("distribution",)),
    Op.RNG_BIT_GENERATOR: op(_F.RNG, 1, reference=random.rng_bit_generator, dtypes=INTEGER, attributes=("algorithm",)),
    Op.RNG_GET_AND_UPDATE_STATE: op(_F.RNG, 0, reference=random.rng_get_and_update_state, attributes=("delta",)),
    # asynchronous pairs
    Op.ASYNC_START: op(_F.ASYNC, 0, None, control.async_start, attributes=("calls",), optional=(*_THREAD, _ALIASING)),
    Op.ASYNC_UPDATE: op(_F.ASYNC, 1, reference=control.identity, optional=("calls", *_THREAD)),
    Op.ASYNC_DONE: op(_F.ASYNC, 1, reference=control.async_done, optional=("calls", *_THREAD)),
    Op.COPY_START: op(_F.ASYNC, 1, reference=control.copy_start, optional=("cross_program_prefetch_index",)),
    Op.COPY_DONE: op(_F.ASYNC, 1, reference=control.copy_done),
    # collectives
    Op.ALL_GATHER: op(_F.COLLECTIVE, 0, None, collective.all_gather, attributes=("dimensions",), optional=_COLLECTIVE),
    Op.ALL_GATHER_START: op(
        _F.COLLECTIVE, 0, None, collective.all_gather_start, attributes=("dimensions",), optional=_COLLECTIVE
    ),
    Op.ALL_GATHER_DONE: op(_F.COLLECTIVE, 1, reference=collective.pair_done),
    Op.ALL_REDUCE: op(_F.COLLECTIVE, 0, None, collective.all_reduce, attributes=("to_apply",), optional=_REDUCING),
    Op.ALL_REDUCE_START: op(
        _F.COLLECTIVE, 0, None, collective.all_reduce_start, attributes=("to_apply",), optional=_REDUCING
    ),
    Op.ALL_REDUCE_DONE: op(_F.COLLECTIVE, 1, reference=collective.all_reduce_done),
    Op.ALL_TO_ALL: op(
        _F.COLLECTIVE, 0, None, collective.all_to_all, optional=("dimensions", *_GROUPS, "constrain_layout")
    ),
    Op.COLLECTIVE_BROADCAST: op(_F.COLLECTIVE, 0, None, collective.broadcast, optional=_GROUPS),
    Op.COLLECTIVE_PERMUTE: op(
        _F.COLLECTIVE,
        0,
        None,
        collective.permute,
        attributes=("source_target_pairs",),
        optional=_PERMUTE,
    ),
    Op.COLLECTIVE_PERMUTE_START: op(
        _F.COLLECTIVE,
        0,
        None,
        collective.permute_start,
        attributes=("source_target_pairs",),
        optional=_PERMUTE,
    ),
    Op.COLLECTIVE_PERMUTE_DONE: op(_F.COLLECTIVE, 1, reference=collective.pair_done),
    Op.RAGGED_ALL_TO_ALL: op(_F.COLLECTIVE, 0, None, collective.ragged_all_to_all, optional=("dimensions", *_GROUPS)),
    Op.REDUCE_SCATTER: op(
        _F.COLLECTIVE, 0, None, collective.reduce_scatter, attributes=("to_apply", "dimensions"), optional=_REDUCING
    ),
    Op.PARTITION_ID: op(_F.COLLECTIVE, 0, reference=collective.partition_id),
    Op.REPLICA_ID: op(_F.COLLECTIVE, 0, reference=collective.replica_id),
    # input and output
    Op.INFEED: op(_F.IO, 1, reference=control.infeed, optional=("infeed_config",)),
    Op.OUTFEED: op(_F.IO, 2, reference=control.outfeed, optional=("outfeed_config", "outfeed_shape")),
    Op.SEND: op(_F.IO, 2, reference=control.send, optional=_TRANSFER),
    Op.SEND_DONE: op(_F.IO, 1, reference=control.token, optional=_TRANSFER),
    Op.RECV: op(_F.IO, 1, reference=control.recv, optional=_TRANSFER),
    Op.RECV_DONE: op(_F.IO, 1, reference=control.recv_done, optional=_TRANSFER),
}


def opcodes(families: Iterable[Family]) -> tuple[Op, ...]:
    """Opcodes of some families, in the table's order."""
    wanted = frozenset(families)
    return tuple(o for o, row in OPSET.items() if row.family in wanted)


UNARY, BINARY, TERNARY = (frozenset(opcodes([f])) for f in (Family.UNARY, Family.BINARY, Family.TERNARY))
ELEMENTWISE = frozenset(o for o, row in OPSET.items() if row.elementwise)
