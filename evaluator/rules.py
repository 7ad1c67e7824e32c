"""The meaning of each opcode: RULES has one reference function per opcode, as EMIT has one emitter in the two stacks.

`Op.TANH: numpy(sp.tanh)` states how the function is called (its form) and which function it is. A parameter has no
row: the evaluator binds parameters to arguments itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from .reference import collective, control, convert, convolution, indexing, linalg, random, region, shape, sorting
from .reference import complex as cx
from .reference import elementwise as ew
from .reference import special as sp


class Form(Enum):
    """How a reference function is called."""

    NUMPY = "(*arrays) -> array, in working precision; the evaluator widens and rounds"
    TYPED = "(instruction, *arrays) -> array of the result's dtype; arrays may broadcast against each other"
    RULE = "(instruction, operands, context) -> value"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference function and how it is called.

    precise: real numbers compute in a wider type and round once, complex numbers in their own; only for Form.NUMPY.
    """

    form: Form
    function: Callable[..., Any]
    precise: bool = False


Rules: TypeAlias = Mapping[Op, Reference]


def numpy(function: Callable[..., Any], *, precise: bool = False) -> Reference:
    """An elementwise function that needs only the arrays."""
    return Reference(Form.NUMPY, function, precise)


def typed(function: Callable[..., Any]) -> Reference:
    """An elementwise function that also needs the instruction."""
    return Reference(Form.TYPED, function)


def rule(function: Callable[..., Any]) -> Reference:
    """Any other function: it gets the instruction, the operands unchanged, and the Context."""
    return Reference(Form.RULE, function)


RULES: dict[Op, Reference] = {
    # unary
    Op.ABS: numpy(ew.absolute),
    Op.ACOS: numpy(sp.acos, precise=True),
    Op.ACOSH: numpy(sp.acosh, precise=True),
    Op.ASIN: numpy(sp.asin, precise=True),
    Op.ASINH: numpy(sp.asinh, precise=True),
    Op.ATANH: numpy(sp.atanh, precise=True),
    Op.CBRT: numpy(sp.cbrt, precise=True),
    Op.CEIL: numpy(np.ceil),
    Op.COSINE: numpy(sp.cosine, precise=True),
    Op.COSH: numpy(sp.cosh, precise=True),
    Op.COUNT_LEADING_ZEROS: typed(ew.count_leading_zeros),
    Op.ERF: numpy(sp.erf, precise=True),
    Op.EXPONENTIAL: numpy(sp.exponential, precise=True),
    Op.EXPONENTIAL_MINUS_ONE: numpy(sp.expm1, precise=True),
    Op.FLOOR: numpy(np.floor),
    Op.IMAG: numpy(np.imag),
    Op.IS_FINITE: numpy(np.isfinite),
    Op.LOG: numpy(sp.log, precise=True),
    Op.LOG_PLUS_ONE: numpy(sp.log1p, precise=True),
    Op.LOGISTIC: numpy(sp.logistic, precise=True),
    Op.NEGATE: numpy(ew.negate),
    Op.NOT: numpy(np.bitwise_not),
    Op.POPCNT: typed(ew.popcnt),
    Op.REAL: numpy(np.real),
    Op.ROUND_NEAREST_AFZ: numpy(ew.round_nearest_afz),
    Op.ROUND_NEAREST_EVEN: numpy(np.rint),
    Op.RSQRT: numpy(sp.rsqrt, precise=True),
    Op.SIGN: numpy(ew.sign),
    Op.SINE: numpy(sp.sine, precise=True),
    Op.SINH: numpy(sp.sinh, precise=True),
    Op.SQRT: numpy(sp.sqrt),
    Op.TAN: numpy(sp.tan, precise=True),
    Op.TANH: numpy(sp.tanh, precise=True),
    # conversions
    Op.CONVERT: typed(convert.convert),
    Op.BITCAST_CONVERT: typed(convert.bitcast_convert),
    Op.REDUCE_PRECISION: typed(convert.reduce_precision),
    Op.STOCHASTIC_CONVERT: typed(convert.stochastic_convert),
    # binary
    Op.ADD: numpy(ew.add),
    Op.AND: numpy(np.bitwise_and),
    Op.ATAN2: numpy(sp.atan2, precise=True),
    Op.COMPARE: typed(ew.compare),
    Op.COMPLEX: numpy(cx.make_complex),
    Op.DIVIDE: numpy(ew.divide),
    Op.MAXIMUM: numpy(ew.maximum),
    Op.MINIMUM: numpy(ew.minimum),
    Op.MULHI: typed(ew.mulhi),
    Op.MULTIPLY: numpy(ew.multiply),
    Op.OR: numpy(np.bitwise_or),
    Op.POWER: numpy(sp.power),
    Op.REMAINDER: numpy(ew.remainder),
    Op.SHIFT_LEFT: typed(ew.shift_left),
    Op.SHIFT_RIGHT_ARITHMETIC: typed(ew.shift_right_arithmetic),
    Op.SHIFT_RIGHT_LOGICAL: typed(ew.shift_right_logical),
    Op.SUBTRACT: numpy(ew.subtract),
    Op.XOR: numpy(np.bitwise_xor),
    # ternary
    Op.CLAMP: numpy(ew.clamp),
    Op.SELECT: typed(ew.select),
    # data movement
    Op.BITCAST: rule(convert.bitcast),
    Op.BROADCAST: rule(shape.broadcast),
    Op.CONCATENATE: rule(shape.concatenate),
    Op.COPY: rule(shape.copy),
    Op.DYNAMIC_RESHAPE: rule(shape.dynamic_reshape),
    Op.DYNAMIC_SLICE: rule(shape.dynamic_slice),
    Op.DYNAMIC_UPDATE_SLICE: rule(shape.dynamic_update_slice),
    Op.GATHER: rule(indexing.gather),
    Op.GET_DIMENSION_SIZE: rule(shape.get_dimension_size),
    Op.IOTA: rule(shape.iota),
    Op.PAD: rule(shape.pad),
    Op.RESHAPE: rule(shape.reshape),
    Op.REVERSE: rule(shape.reverse),
    Op.SCATTER: rule(indexing.scatter),
    Op.SET_DIMENSION_SIZE: rule(shape.set_dimension_size),
    Op.SLICE: rule(shape.slice_),
    Op.TRANSPOSE: rule(shape.transpose),
    # computations of scalars applied to arrays
    Op.MAP: rule(region.map_),
    Op.REDUCE: rule(region.reduce),
    Op.REDUCE_WINDOW: rule(region.reduce_window),
    Op.SCAN: rule(region.scan),
    Op.SELECT_AND_SCATTER: rule(region.select_and_scatter),
    Op.SORT: rule(sorting.sort),
    Op.TOPK: rule(sorting.topk),
    # linear algebra
    Op.BATCH_NORM_GRAD: rule(linalg.batch_norm_grad),
    Op.BATCH_NORM_INFERENCE: rule(linalg.batch_norm_inference),
    Op.BATCH_NORM_TRAINING: rule(linalg.batch_norm_training),
    Op.CHOLESKY: rule(linalg.cholesky),
    Op.CONVOLUTION: rule(convolution.convolution),
    Op.DOT: rule(linalg.dot),
    Op.FFT: rule(linalg.fft),
    Op.RAGGED_DOT: rule(linalg.ragged_dot),
    Op.SCALED_DOT: rule(linalg.scaled_dot),
    Op.TRIANGULAR_SOLVE: rule(linalg.triangular_solve),
    # control and structure
    Op.ADD_DEPENDENCY: rule(control.identity),
    Op.AFTER_ALL: rule(control.token),
    Op.CALL: rule(control.call),
    Op.CONDITIONAL: rule(control.conditional),
    Op.CONSTANT: rule(control.constant),
    Op.CUSTOM_CALL: rule(control.custom_call),
    Op.DOMAIN: rule(control.identity),
    Op.FUSION: rule(control.call),
    Op.GET_TUPLE_ELEMENT: rule(control.get_tuple_element),
    Op.OPT_BARRIER: rule(control.identity),
    Op.TUPLE: rule(control.make_tuple),
    Op.WHILE: rule(control.while_),
    # random numbers
    Op.RNG: rule(random.rng),
    Op.RNG_BIT_GENERATOR: rule(random.rng_bit_generator),
    Op.RNG_GET_AND_UPDATE_STATE: rule(random.rng_get_and_update_state),
    # asynchronous pairs
    Op.ASYNC_START: rule(control.async_start),
    Op.ASYNC_UPDATE: rule(control.identity),
    Op.ASYNC_DONE: rule(control.async_done),
    Op.COPY_START: rule(control.copy_start),
    Op.COPY_DONE: rule(control.copy_done),
    # collectives
    Op.ALL_GATHER: rule(collective.all_gather),
    Op.ALL_GATHER_START: rule(collective.all_gather_start),
    Op.ALL_GATHER_DONE: rule(collective.pair_done),
    Op.ALL_REDUCE: rule(collective.all_reduce),
    Op.ALL_REDUCE_START: rule(collective.all_reduce_start),
    Op.ALL_REDUCE_DONE: rule(collective.all_reduce_done),
    Op.ALL_TO_ALL: rule(collective.all_to_all),
    Op.COLLECTIVE_BROADCAST: rule(collective.broadcast),
    Op.COLLECTIVE_PERMUTE: rule(collective.permute),
    Op.COLLECTIVE_PERMUTE_START: rule(collective.permute_start),
    Op.COLLECTIVE_PERMUTE_DONE: rule(collective.pair_done),
    Op.RAGGED_ALL_TO_ALL: rule(collective.ragged_all_to_all),
    Op.REDUCE_SCATTER: rule(collective.reduce_scatter),
    Op.PARTITION_ID: rule(collective.partition_id),
    Op.REPLICA_ID: rule(collective.replica_id),
    # input and output
    Op.INFEED: rule(control.infeed),
    Op.OUTFEED: rule(control.outfeed),
    Op.SEND: rule(control.send),
    Op.SEND_DONE: rule(control.token),
    Op.RECV: rule(control.recv),
    Op.RECV_DONE: rule(control.recv_done),
}
