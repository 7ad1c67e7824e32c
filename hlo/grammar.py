"""Which attributes an opcode's text must have, and how many operands it takes. One row an opcode."""

from __future__ import annotations

from dataclasses import dataclass

from .opcodes import Op

MANY = 1 << 30


@dataclass(frozen=True, slots=True)
class Row:
    """low..high: number of operands. required: attributes without which the text is refused."""

    low: int
    high: int
    required: tuple[str, ...] = ()

    @property
    def arity(self) -> str:
        """`2 operands`, `1 operand or more`, for messages."""
        plural = "s" if self.low != 1 else ""
        return f"{self.low} operand{plural}" + ("" if self.low == self.high else " or more")


def _row(low: int, high: int | None = None, *required: str) -> Row:
    return Row(low, low if high is None else high, required)


UNARY_OPS = tuple(list(Op)[:33])
BINARY_OPS = (
    Op.ADD,
    Op.AND,
    Op.ATAN2,
    Op.COMPLEX,
    Op.DIVIDE,
    Op.MAXIMUM,
    Op.MINIMUM,
    Op.MULHI,
    Op.MULTIPLY,
    Op.OR,
    Op.POWER,
    Op.REMAINDER,
    Op.SHIFT_LEFT,
    Op.SHIFT_RIGHT_ARITHMETIC,
    Op.SHIFT_RIGHT_LOGICAL,
    Op.SUBTRACT,
    Op.XOR,
)

GRAMMAR: dict[Op, Row] = {
    **{op: _row(1) for op in UNARY_OPS},
    **{op: _row(2) for op in BINARY_OPS},
    Op.CONVERT: _row(1),
    Op.BITCAST_CONVERT: _row(1),
    Op.REDUCE_PRECISION: _row(1, 1, "exponent_bits", "mantissa_bits"),
    Op.STOCHASTIC_CONVERT: _row(2),
    Op.COMPARE: _row(2, 2, "direction"),
    Op.CLAMP: _row(3),
    Op.SELECT: _row(3),
    Op.BITCAST: _row(1),
    Op.BROADCAST: _row(1, 1),
    Op.CONCATENATE: _row(0, MANY, "dimensions"),
    Op.COPY: _row(1),
    Op.DYNAMIC_RESHAPE: _row(1, MANY),
    Op.DYNAMIC_SLICE: _row(1, MANY, "dynamic_slice_sizes"),
    Op.DYNAMIC_UPDATE_SLICE: _row(2, MANY),
    Op.GATHER: _row(2, 2, "offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes"),
    Op.GET_DIMENSION_SIZE: _row(1, 1, "dimensions"),
    Op.IOTA: _row(0, 0, "iota_dimension"),
    Op.PAD: _row(2, 2, "padding"),
    Op.RESHAPE: _row(1),
    Op.REVERSE: _row(1, 1, "dimensions"),
    Op.SCATTER: _row(
        3,
        MANY,
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "index_vector_dim",
        "to_apply",
    ),
    Op.SET_DIMENSION_SIZE: _row(2, 2, "dimensions"),
    Op.SLICE: _row(1, 1, "slice"),
    Op.TRANSPOSE: _row(1, 1, "dimensions"),
    Op.MAP: _row(0, MANY, "to_apply"),
    Op.REDUCE: _row(2, MANY, "dimensions", "to_apply"),
    Op.REDUCE_WINDOW: _row(2, MANY, "to_apply"),
    Op.SCAN: _row(0, MANY, "dimensions", "to_apply", "num_carries"),
    Op.SELECT_AND_SCATTER: _row(3, 3, "select", "scatter"),
    Op.SORT: _row(1, MANY, "dimensions", "to_apply"),
    Op.TOPK: _row(1, 1, "k"),
    Op.BATCH_NORM_GRAD: _row(5, 5, "epsilon", "feature_index"),
    Op.BATCH_NORM_INFERENCE: _row(5, 5, "epsilon", "feature_index"),
    Op.BATCH_NORM_TRAINING: _row(3, 3, "epsilon", "feature_index"),
    Op.CHOLESKY: _row(1),
    Op.CONVOLUTION: _row(2, MANY, "dim_labels"),
    Op.DOT: _row(2, MANY),
    Op.FFT: _row(1, 1, "fft_type", "fft_length"),
    Op.RAGGED_DOT: _row(3, 3),
    Op.SCALED_DOT: _row(4, 4),
    Op.TRIANGULAR_SOLVE: _row(2),
    Op.ADD_DEPENDENCY: _row(2),
    Op.AFTER_ALL: _row(0, MANY),
    Op.CALL: _row(0, MANY, "to_apply"),
    Op.CONDITIONAL: _row(1, MANY),
    Op.CONSTANT: _row(0),
    Op.CUSTOM_CALL: _row(0, MANY, "custom_call_target"),
    Op.DOMAIN: _row(1, 1, "domain"),
    Op.FUSION: _row(0, MANY, "calls", "kind"),
    Op.GET_TUPLE_ELEMENT: _row(1, 1, "index"),
    Op.OPT_BARRIER: _row(1),
    Op.PARAMETER: _row(0),
    Op.TUPLE: _row(0, MANY),
    Op.WHILE: _row(1, 1, "condition", "body"),
    Op.RNG: _row(0, MANY, "distribution"),
    Op.RNG_BIT_GENERATOR: _row(1, 1, "algorithm"),
    Op.RNG_GET_AND_UPDATE_STATE: _row(0, 0, "delta"),
    Op.ASYNC_START: _row(0, MANY, "calls"),
    Op.ASYNC_UPDATE: _row(1),
    Op.ASYNC_DONE: _row(1),
    Op.COPY_START: _row(1),
    Op.COPY_DONE: _row(1),
    Op.ALL_GATHER: _row(0, MANY, "dimensions"),
    Op.ALL_GATHER_START: _row(0, MANY, "dimensions"),
    Op.ALL_GATHER_DONE: _row(1),
    Op.ALL_REDUCE: _row(0, MANY, "to_apply"),
    Op.ALL_REDUCE_START: _row(0, MANY, "to_apply"),
    Op.ALL_REDUCE_DONE: _row(1),
    Op.ALL_TO_ALL: _row(0, MANY),
    Op.COLLECTIVE_BROADCAST: _row(0, MANY),
    Op.COLLECTIVE_PERMUTE: _row(0, MANY, "source_target_pairs"),
    Op.COLLECTIVE_PERMUTE_START: _row(0, MANY, "source_target_pairs"),
    Op.COLLECTIVE_PERMUTE_DONE: _row(1),
    Op.RAGGED_ALL_TO_ALL: _row(0, MANY),
    Op.REDUCE_SCATTER: _row(0, MANY, "to_apply", "dimensions"),
    Op.PARTITION_ID: _row(0),
    Op.REPLICA_ID: _row(0),
    Op.INFEED: _row(1),
    Op.OUTFEED: _row(2),
    Op.SEND: _row(2),
    Op.SEND_DONE: _row(1),
    Op.RECV: _row(1),
    Op.RECV_DONE: _row(1),
}
