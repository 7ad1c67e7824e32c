"""FLOPs, transcendentals and bytes accessed of instructions, by the rules of XLA's HloCostAnalysis.

As in XLA, a while loop counts as one iteration, a conditional as the maximum over its branches (for each of the three
numbers separately), and a custom call costs nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from ..ir import Computation, Instruction, Module
from ..opcodes import Op
from ..opset import BINARY, UNARY
from ..records import dataclass
from ..shapes import Shape

POINTER = 8
"""Bytes of one entry in a tuple's table of pointers."""
IMMEDIATE = 8
"""A constant of at most this many elements inside a fusion is part of its code: it reads no bytes."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The work of an instruction.

    flops: operations other than transcendental ones; transcendentals: evaluations of exp, tanh and the like;
    bytes: bytes read plus bytes written.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.transcendentals + other.transcendentals, self.bytes + other.bytes)

    def times(self, count: float, bytes: float) -> Cost:
        """Scale flops and transcendentals by `count`; `bytes` are the caller's."""
        return Cost(self.flops * count, self.transcendentals * count, bytes)


def size_of(shape: Shape) -> int:
    """Bytes that a value of this shape takes: an array's elements, a tuple's table of pointers, 0 for a token."""
    if shape.is_tuple:
        return POINTER * len(shape.elements)
    packed = _PACKED.search(shape.layout.extras) if shape.layout is not None else None
    return -(-shape.size * int(packed[1]) // 8) if packed else shape.bytes


_PACKED = re.compile(r"E\((\d{1,3})\)")
"""The part of a layout's text that gives the bits per element, e.g. E(4)."""


def analyse(module: Module) -> CostAnalysis:
    """Costs of all instructions of a module."""
    analysis = CostAnalysis()
    for computation in module.computations:
        analysis.of_computation(computation)
    return analysis


class CostAnalysis:
    """Costs by instruction, each computed once."""

    def __init__(self) -> None:
        self.costs: dict[Instruction, Cost] = {}
        self._sums: dict[Computation, Cost] = {}

    def of_computation(self, computation: Computation) -> Cost:
        """The sum of the costs of its instructions."""
        known = self._sums.get(computation)
        if known is None:
            known = sum((self.of(i) for i in computation.instructions), Cost())
            self._sums[computation] = known
        return known

    def of(self, instruction: Instruction) -> Cost:
        known = self.costs.get(instruction)
        if known is None:
            known = RULES.get(instruction.opcode, _data_movement)(instruction, self)
            self.costs[instruction] = known
        return known


CostRule = Callable[[Instruction, CostAnalysis], Cost]
"""(instruction, the analysis, for computations that it calls) → its cost."""


# -- helpers ----------------------------------------------------------------------------------------------------------
def _touched(i: Instruction) -> float:
    return float(_leaf_bytes(i.shape) + sum(_leaf_bytes(o.shape) for o in i.operands))


def _elements(shape: Shape) -> int:
    """Number of elements of an array, or of the first array of a tuple; 0 for other shapes."""
    return _elements(shape.elements[0]) if shape.is_tuple and shape.elements else shape.size if shape.is_array else 0


def _window_size(i: Instruction) -> int:
    window = i.attributes.get("window")
    return math.prod(d.size for d in window.dims) if window else 1


def _callee(i: Instruction, analysis: CostAnalysis, key: str = "to_apply") -> Cost:
    return analysis.of_computation(i.attributes[key])


# -- rules ------------------------------------------------------------------------------------------------------------
def _data_movement(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(bytes=_touched(i))


def _nothing(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost()


def _elementwise(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(flops=i.shape.size, bytes=_touched(i))


def _transcendental(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(transcendentals=i.shape.size, bytes=_touched(i))


def _slice(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(bytes=2 * size_of(i.shape))


def _dynamic_slice(i: Instruction, _: CostAnalysis) -> Cost:
    index = size_of(i.operands[1].shape) if len(i.operands) > 1 else 0
    return Cost(bytes=2 * size_of(i.shape) + index)


def _dynamic_update_slice(i: Instruction, _: CostAnalysis) -> Cost:
    index = size_of(i.operands[2].shape) if len(i.operands) > 2 else 0
    return Cost(bytes=2 * size_of(i.operands[1].shape) + index)


def _tuple(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(bytes=size_of(i.shape))


def _gather(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(bytes=2 * size_of(i.shape) + size_of(i.operands[1].shape))


def _scatter(i: Instruction, analysis: CostAnalysis) -> Cost:
    n = len(i.operands) // 2
    updates = i.operands[n + 1 :]
    moved = 3 * sum(size_of(u.shape) for u in updates) + size_of(i.operands[n].shape)
    return _callee(i, analysis).times(updates[0].shape.size, moved)


def _dot(i: Instruction, _: CostAnalysis) -> Cost:
    lhs = i.operands[0].shape
    width = math.prod(lhs.dims[d] for d in i.attributes.get("lhs_contracting_dims", ()))
    return Cost(flops=2 * i.shape.size * width, bytes=_touched(i))


def _convolution(i: Instruction, _: CostAnalysis) -> Cost:
    dims, window = i.attributes["dim_labels"], i.attributes.get("window")
    lhs, rhs, out = i.operands[0].shape, i.operands[1].shape, i.shape
    positions = 1
    for n, d in enumerate(window.dims if window else ()):
        inputs, outputs = lhs.dims[dims.input_spatial[n]], out.dims[dims.output_spatial[n]]
        kernel = rhs.dims[dims.kernel_spatial[n]]
        positions *= sum(_valid(d, k, inputs, outputs) for k in range(kernel))
    features = lhs.dims[dims.input_feature] // i.attributes.get("feature_group_count", 1)
    batch = lhs.dims[dims.input_batch] // i.attributes.get("batch_group_count", 1)
    return Cost(flops=2 * features * out.dims[dims.output_feature] * batch * positions, bytes=_touched(i))


def _valid(d, k: int, inputs: int, outputs: int) -> int:  # type: ignore[no-untyped-def]
    """Number of outputs along one dimension for which kernel element k reads an input element.

    The other outputs read padding or a hole that the base dilation makes.
    """
    first = k * d.rhs_dilate - d.pad_low
    if d.lhs_dilate == 1:  # outputs o with 0 <= first + o * stride < inputs
        low = max(0, -(first // d.stride))
        high = min(outputs, (inputs - 1 - first) // d.stride + 1)
        return max(0, high - low)
    places = (first + o * d.stride for o in range(outputs))
    return sum(p % d.lhs_dilate == 0 and 0 <= p // d.lhs_dilate < inputs for p in places)


def _map(i: Instruction, analysis: CostAnalysis) -> Cost:
    return _callee(i, analysis).times(i.shape.size, _touched(i))


def _reduce(i: Instruction, analysis: CostAnalysis) -> Cost:
    count = _elements(i.operands[0].shape) - _elements(i.shape)
    return _callee(i, analysis).times(count, _touched(i))


def _reduce_window(i: Instruction, analysis: CostAnalysis) -> Cost:
    outputs = _elements(i.shape)
    count = (_window_size(i) - 1) * outputs
    spread = _cumulative(i)
    if spread:
        count = outputs // spread + spread - 1
    return _callee(i, analysis).times(count, _touched(i))


def _cumulative(i: Instruction) -> int:
    """Size of the dimension whose full reduction this reduce-window puts at every place; 0 for other reduce-windows."""
    window = i.attributes.get("window")
    dims = window.dims if window else ()
    reduced = [n for n, d in enumerate(dims) if d.size != 1]
    padded = [n for n, d in enumerate(dims) if d.pad_low or d.pad_high]
    if len(reduced) != 1 or len(padded) != 1 or i.shape.is_tuple:
        return 0
    d, span = dims[reduced[0]], i.shape.dims[reduced[0]]
    return span if d.pad_low and d.pad_low == d.pad_high == span - 1 and d.size == 2 * d.pad_low + 1 else 0


def _select_and_scatter(i: Instruction, analysis: CostAnalysis) -> Cost:
    source = i.operands[1].shape.size
    select = _callee(i, analysis, "select").times(source * (_window_size(i) - 1), 0)
    return select + _callee(i, analysis, "scatter").times(source, _touched(i))


def _transpose(i: Instruction, analysis: CostAnalysis) -> Cost:
    """A transpose costs nothing where the layouts make it a bitcast."""
    if i.shape.rank == 0:
        return Cost()
    operand, dims = i.operands[0].shape, i.attributes["dimensions"]
    return (
        Cost()
        if tuple(dims[d] for d in i.shape.minor_to_major) == operand.minor_to_major
        else _data_movement(i, analysis)
    )


def _fft(i: Instruction, _: CostAnalysis) -> Cost:
    logs = math.prod(max(n.bit_length() - 1, 0) for n in i.attributes["fft_length"])
    return Cost(flops=8 * logs * _elements(i.operands[0].shape), bytes=_touched(i))


def _triangular_solve(i: Instruction, _: CostAnalysis) -> Cost:
    a, b = i.operands[0].shape, i.operands[1].shape
    return Cost(flops=2 * a.dims[-1] * b.size, bytes=size_of(i.shape) + size_of(a) / 2 + size_of(b))


def _cholesky(i: Instruction, _: CostAnalysis) -> Cost:
    a = i.operands[0].shape
    return Cost(flops=a.dims[-1] * a.size // 3, bytes=size_of(a))


def _all_reduce(i: Instruction, _: CostAnalysis) -> Cost:
    leaves = [leaf for _, leaf in i.shape.leaves() if leaf.is_array]
    moved = sum(map(size_of, leaves)) + sum(size_of(o.shape) for o in i.operands)
    return Cost(flops=sum(leaf.size for leaf in leaves), bytes=moved)


def _random(i: Instruction, _: CostAnalysis) -> Cost:
    count = sum(leaf.size for _, leaf in i.shape.leaves() if leaf.is_array)
    return Cost(transcendentals=count, bytes=_touched(i))


def _sort(i: Instruction, _: CostAnalysis) -> Cost:
    n = _elements(i.operands[0].shape)
    return Cost(flops=n * max(n - 1, 0).bit_length(), bytes=_touched(i))


def _call(i: Instruction, analysis: CostAnalysis) -> Cost:
    return _callee(i, analysis)


def _while(i: Instruction, analysis: CostAnalysis) -> Cost:
    return _callee(i, analysis, "body") + _callee(i, analysis, "condition")


def _conditional(i: Instruction, analysis: CostAnalysis) -> Cost:
    branches = [analysis.of_computation(c) for c in i.called()]
    return Cost(
        max(c.flops for c in branches), max(c.transcendentals for c in branches), max(c.bytes for c in branches)
    )


def _scan(i: Instruction, analysis: CostAnalysis) -> Cost:
    """XLA counts one step per element of the initial carry."""
    return _callee(i, analysis).times(_elements(i.operands[-1].shape) if i.operands else 1, _touched(i))


def _infeed(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(bytes=_leaf_bytes(i.shape))


def _outfeed(i: Instruction, _: CostAnalysis) -> Cost:
    return Cost(bytes=sum(_leaf_bytes(o.shape) for o in i.operands))


def _async_start(i: Instruction, analysis: CostAnalysis) -> Cost:
    return _callee(i, analysis, "calls")


# -- fusions ----------------------------------------------------------------------------------------------------------
def _fusion(i: Instruction, analysis: CostAnalysis) -> Cost:
    """The work of its body; the bytes of its results, of the parts of parameters that it reads, of large constants."""
    body: Computation = i.attributes["calls"]
    work, root = analysis.of_computation(body), body.root
    roots = root.operands if root.opcode is Op.TUPLE and i.shape.is_tuple else (root,)
    moved = sum(
        size_of(r.operands[1].shape) if r.opcode is Op.DYNAMIC_UPDATE_SLICE else _leaf_bytes(r.shape) for r in roots
    )
    for inner in body.instructions:
        if inner.opcode is Op.CONSTANT and inner.shape.size > IMMEDIATE:
            moved += size_of(inner.shape)
        elif inner.opcode is Op.PARAMETER:
            moved += _read(inner, body)
    return Cost(work.flops, work.transcendentals, moved)


def _leaf_bytes(shape: Shape) -> int:
    return sum(size_of(leaf) for _, leaf in shape.leaves())


def _read(value: Instruction, body: Computation) -> int:
    """Bytes of a fusion's parameter (or of a leaf of it) that the body reads."""
    if value.shape.is_tuple:
        users = (u for u in body.users[value] if u.opcode is Op.GET_TUPLE_ELEMENT)
        return sum(_read(u, body) for u in users)
    size, whole = 0, False
    for user in body.users[value]:
        if user.opcode is Op.SLICE or (user.opcode is Op.DYNAMIC_SLICE and user.operands[0] is value):
            size += size_of(user.shape)
        elif user.opcode in (Op.BROADCAST, Op.RESHAPE):
            size += size_of(value.shape)
        elif user.opcode is Op.FUSION:
            inner: Computation = user.attributes["calls"]
            size += sum(_read(p, inner) for p, o in zip(inner.parameters, user.operands) if o is value)
        elif user.opcode is not Op.DYNAMIC_UPDATE_SLICE or user.operands[0] is not value:
            size, whole = size + (0 if whole else size_of(value.shape)), True
    return size


TRANSCENDENTAL = (
    *(Op.EXPONENTIAL, Op.LOG, Op.LOGISTIC, Op.POWER, Op.SQRT, Op.CBRT, Op.RSQRT, Op.TANH, Op.SINE, Op.COSINE),
    *(Op.EXPONENTIAL_MINUS_ONE, Op.LOG_PLUS_ONE, Op.ATAN2, Op.ERF, Op.TAN, Op.ACOS, Op.ACOSH, Op.ASIN, Op.ASINH),
    *(Op.ATANH, Op.COSH, Op.SINH),
)
FREE = (
    *(Op.PARAMETER, Op.CONSTANT, Op.GET_TUPLE_ELEMENT, Op.BITCAST, Op.DOMAIN, Op.AFTER_ALL, Op.ADD_DEPENDENCY),
    Op.CUSTOM_CALL,
)

RULES: Mapping[Op, CostRule] = {
    **dict.fromkeys(UNARY | (BINARY - {Op.COMPARE}), _elementwise),
    **dict.fromkeys((Op.CONVERT, Op.REDUCE_PRECISION, Op.STOCHASTIC_CONVERT, Op.BITCAST_CONVERT), _elementwise),
    **dict.fromkeys((Op.COMPARE, Op.SELECT, Op.CLAMP), _elementwise),
    **dict.fromkeys(TRANSCENDENTAL, _transcendental),
    **dict.fromkeys(FREE, _nothing),
    Op.SLICE: _slice,
    Op.DYNAMIC_SLICE: _dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: _dynamic_update_slice,
    Op.TUPLE: _tuple,
    Op.GATHER: _gather,
    Op.SCATTER: _scatter,
    Op.DOT: _dot,
    Op.CONVOLUTION: _convolution,
    Op.MAP: _map,
    Op.REDUCE: _reduce,
    Op.REDUCE_WINDOW: _reduce_window,
    Op.SELECT_AND_SCATTER: _select_and_scatter,
    Op.TRANSPOSE: _transpose,
    Op.FFT: _fft,
    Op.TRIANGULAR_SOLVE: _triangular_solve,
    Op.CHOLESKY: _cholesky,
    Op.ALL_REDUCE: _all_reduce,
    Op.ALL_REDUCE_START: _all_reduce,
    Op.RNG: _random,
    Op.RNG_BIT_GENERATOR: _random,
    Op.SORT: _sort,
    Op.CALL: _call,
    Op.WHILE: _while,
    Op.CONDITIONAL: _conditional,
    Op.INFEED: _infeed,
    Op.OUTFEED: _outfeed,
    Op.FUSION: _fusion,
    Op.ASYNC_START: _async_start,
    Op.SCAN: _scan,
}
"""The cost of each opcode. An opcode without a row costs the bytes of its operands and result."""
