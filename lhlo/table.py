"""OP_FORMS, the form of each LHLO op: the memrefs that it reads and writes, its regions, and its required attributes.

Fixed ops take memref operands. Mixed ops list any number of memrefs in their last region (docs/lhlo.md says why).
"""

from __future__ import annotations

from ..hlo.opcodes import Op
from ..hlo.records import dataclass

INT, FLAG, STRING, LIST, ELEMENTS = "integer", "integer", "string", "dense_array", "dense_int_or_fp_elements"


@dataclass(frozen=True, slots=True)
class OpForm:
    """The form of one LHLO op.

    inputs, outputs: operand counts of a fixed op. variadic: any number of index operands, all of one type, may
    follow the inputs. bodies: the HLO attributes whose computations are the op's body regions, in order. required:
    (name, kind) of each attribute that must be present.
    """

    inputs: int = 0
    outputs: int = 1
    variadic: bool = False
    mixed: bool = False
    bodies: tuple[str, ...] = ()
    required: tuple[tuple[str, str], ...] = ()


def fixed(inputs: int, outputs: int = 1, *, variadic: bool = False, **required: str) -> OpForm:
    return OpForm(inputs, outputs, variadic, required=tuple(required.items()))


def mixed(*bodies: str, **required: str) -> OpForm:
    return OpForm(mixed=True, bodies=bodies, required=tuple(required.items()))


_UNARY = (
    Op.ABS,
    Op.ACOS,
    Op.ACOSH,
    Op.ASIN,
    Op.ASINH,
    Op.ATANH,
    Op.CBRT,
    Op.CEIL,
    Op.COSINE,
    Op.COSH,
    Op.COUNT_LEADING_ZEROS,
    Op.ERF,
    Op.EXPONENTIAL,
    Op.EXPONENTIAL_MINUS_ONE,
    Op.FLOOR,
    Op.IMAG,
    Op.IS_FINITE,
    Op.LOG,
    Op.LOG_PLUS_ONE,
    Op.LOGISTIC,
    Op.NEGATE,
    Op.NOT,
    Op.POPCNT,
    Op.REAL,
    Op.ROUND_NEAREST_AFZ,
    Op.ROUND_NEAREST_EVEN,
    Op.RSQRT,
    Op.SIGN,
    Op.SINE,
    Op.SINH,
    Op.SQRT,
    Op.TAN,
    Op.TANH,
    Op.CONVERT,
    Op.BITCAST_CONVERT,
    Op.BITCAST,
    Op.COPY,
    Op.RESHAPE,
    Op.CHOLESKY,
    Op.FFT,
    Op.GET_DIMENSION_SIZE,
)
_BINARY = (
    Op.STOCHASTIC_CONVERT,
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
    Op.GATHER,
    Op.SET_DIMENSION_SIZE,
    Op.CONVOLUTION,
    Op.DOT,
    Op.TRIANGULAR_SOLVE,
    Op.RNG,
)
_MIXED = (
    Op.TUPLE,
    Op.CUSTOM_CALL,
    Op.ADD_DEPENDENCY,
    Op.AFTER_ALL,
    Op.DOMAIN,
    Op.OPT_BARRIER,
    Op.RNG_BIT_GENERATOR,
    Op.ASYNC_START,
    Op.ASYNC_UPDATE,
    Op.ASYNC_DONE,
    Op.COPY_START,
    Op.COPY_DONE,
    Op.ALL_GATHER,
    Op.ALL_GATHER_START,
    Op.ALL_GATHER_DONE,
    Op.ALL_REDUCE_DONE,
    Op.ALL_TO_ALL,
    Op.COLLECTIVE_BROADCAST,
    Op.COLLECTIVE_PERMUTE,
    Op.COLLECTIVE_PERMUTE_START,
    Op.COLLECTIVE_PERMUTE_DONE,
    Op.RAGGED_ALL_TO_ALL,
    Op.INFEED,
    Op.OUTFEED,
    Op.SEND,
    Op.SEND_DONE,
    Op.RECV,
    Op.RECV_DONE,
)

OP_FORMS: dict[Op, OpForm] = {
    **dict.fromkeys(_UNARY, fixed(1)),
    **dict.fromkeys(_BINARY, fixed(2)),
    **dict.fromkeys(_MIXED, mixed()),
    Op.COMPARE: fixed(2, direction=STRING),
    Op.REDUCE_PRECISION: fixed(1, exponent_bits=INT, mantissa_bits=INT),
    Op.CLAMP: fixed(3),
    Op.SELECT: fixed(3),
    Op.BROADCAST: fixed(1),
    Op.CONCATENATE: mixed(dimensions=LIST),
    Op.DYNAMIC_RESHAPE: fixed(1, variadic=True),
    Op.DYNAMIC_SLICE: fixed(1, variadic=True, dynamic_slice_sizes=LIST),
    Op.DYNAMIC_UPDATE_SLICE: fixed(2, variadic=True),
    Op.IOTA: fixed(0, iota_dimension=INT),
    Op.PAD: fixed(2, edge_padding_low=LIST, edge_padding_high=LIST, interior_padding=LIST),
    Op.REVERSE: fixed(1, dimensions=LIST),
    Op.SCATTER: mixed("to_apply"),
    Op.SLICE: fixed(1, start_indices=LIST, limit_indices=LIST, strides=LIST),
    Op.TRANSPOSE: fixed(1, dimensions=LIST),
    Op.MAP: mixed("to_apply"),
    Op.REDUCE: mixed("to_apply", dimensions=LIST),
    Op.REDUCE_WINDOW: mixed("to_apply"),
    Op.SCAN: mixed("to_apply"),
    Op.SELECT_AND_SCATTER: mixed("select", "scatter"),
    Op.SORT: mixed("to_apply", dimensions=LIST),
    Op.TOPK: fixed(1, 2),
    Op.BATCH_NORM_GRAD: fixed(5, 3),
    Op.BATCH_NORM_INFERENCE: fixed(5),
    Op.BATCH_NORM_TRAINING: fixed(3, 3),
    Op.RAGGED_DOT: fixed(3),
    Op.SCALED_DOT: fixed(4),
    Op.CALL: mixed("to_apply"),
    Op.CONSTANT: fixed(0, value=ELEMENTS),
    Op.FUSION: mixed("calls"),
    Op.GET_TUPLE_ELEMENT: mixed(index=INT, first=INT),
    Op.RNG_GET_AND_UPDATE_STATE: fixed(0),
    Op.ALL_REDUCE: mixed("to_apply"),
    Op.ALL_REDUCE_START: mixed("to_apply"),
    Op.REDUCE_SCATTER: mixed("to_apply"),
    Op.PARTITION_ID: fixed(0),
    Op.REPLICA_ID: fixed(0),
}
"""All opcodes except parameter (a block argument) and while and conditional (structural ops below)."""


MEMREF, PROFILER = '"!builtin.memref"', "@lhlo::@profiler"
"""Types of operands, as IRDL refers to them."""

_INTERVAL = (("name", STRING), ("id", INT))


@dataclass(frozen=True, slots=True)
class Structural:
    """An op of programs that is no kernel: its operand count, its result count (0 or 1), its region names.

    operand: the type of its operands. required: (name, kind) of each attribute that must be present.
    """

    operands: int
    results: int = 0
    regions: tuple[str, ...] = ()
    operand: str = MEMREF
    required: tuple[tuple[str, str], ...] = ()


STRUCTURAL: dict[str, Structural] = {
    "while": Structural(1, regions=("condition", "body")),
    "case": Structural(1, regions=("branches",)),
    "branch": Structural(0, regions=("steps",)),
    "view": Structural(1, results=1),
    "profile_start": Structural(1, operand=PROFILER, required=_INTERVAL),
    "profile_end": Structural(1, operand=PROFILER, required=_INTERVAL),
}

MNEMONIC: dict[Op, str] = {op: op.value.replace("-", "_") for op in Op} | {Op.CONDITIONAL: "case"}
OPCODE: dict[str, Op] = {"lhlo." + mnemonic: op for op, mnemonic in MNEMONIC.items() if op in OP_FORMS}
"""Full op name → opcode, for the ops of OP_FORMS."""
