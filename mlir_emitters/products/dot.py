"""dot: one element as loops over the contracting dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Unroll, Value
from ..core.elements import ROUNDED, SMALL_INTEGERS, Scalar, encode, flatten, raw_type, round_to, unflatten, wrap_small
from ..core.facts import Code, Facts
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental, ElementRule, Indices, Reads
from ..loops.fetch import streams
from ..numerics import complex_math
from ..numerics.convert import convert_to
from ..reductions.complex_sums import Factor, outer_of_runs, sums_of_runs
from ..reductions.long_sums import ELEMENTS_TOGETHER, FEW_LANES, LANES, Carried, Chains, LongSums, PartialSums, long_sum
from ..reductions.sum_run import Form, SumRun, is_run, stored_of

MINIMUM_ALONG_PRODUCTS = 2 * FEW_LANES
"""Minimum products along memory whose sum has several partial sums."""

MINIMUM_BLOCK_PRODUCTS = 128
"""Minimum products of other sums that are in blocks."""

CHAIN_ADDITIONS = 48
"""Additions to a chain in these blocks."""

MINIMUM_ROW_PRODUCTS = 8
"""Minimum products of two short rows for which vectors are along the rows."""


def dimension_numbers(node: Node) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(lhs batch, rhs batch, lhs contracting, rhs contracting)."""
    keys = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    a, b, c, d = (tuple(node.attributes.get(key, ())) for key in keys)
    return a, b, c, d


def one_product(node: Node) -> bool:
    """Whether each sum is of one product. It starts at -0 then, so that, as in XLA, a zero keeps its sign."""
    return math.prod(node.inputs[0].dims[d] for d in dimension_numbers(node)[2]) == 1


def accumulator_of(node: Node) -> DType:
    """The dtype of sums: f32 for narrow floats, which are rounded once, and a float for integers made from floats."""
    dtype, operand = node.output.dtype, node.inputs[0].dtype
    if dtype.is_integer and operand.is_float:
        return DType.F64 if operand is DType.F64 else DType.F32
    return DType.F32 if dtype in ROUNDED else dtype


def dot_value(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    b = e.b
    lhs, rhs = node.inputs
    _, _, lhs_contract, rhs_contract = dimension_numbers(node)
    left, right = operand_indices(node, index)
    wide = accumulator_of(node)
    way = sum_way(b.facts, node)
    if way is not None and way.outer is not None:
        return unflatten(_sums_of_runs(e, node, index, way.outer).results([_zero(b, wide)] * 2), wide)
    if way is not None:
        value = narrow(b, wide, node.output.dtype, _long_sum(e, node, index, wide, way.arrays))
        return encode(b, node.output.dtype, value) if raw else value
    zero = b.constant(-0.0, _zero(b, wide).type) if one_product(node) and wide.component.is_float else _zero(b, wide)
    loops, carried = [], [zero] * (2 if wide.is_complex else 1)
    unroll = Unroll.SHORT if wide.bytes <= 2 else Unroll.ANY  # as in loops over narrow elements: loops.with_loops
    if _has_short_rows(b, node, wide):
        unroll = Unroll.NONE
    for ld, rd in zip(lhs_contract, rhs_contract, strict=True):
        loops.append(b.open_loop(0, lhs.dims[ld], 1, carried, unroll))
        left[ld] = right[rd] = loops[-1].index
        carried = loops[-1].carried
    x = yield lhs, tuple(left), False
    y = yield rhs, tuple(right), False
    with b.reassociating():
        results = flatten(
            multiply_add(
                b, wide, convert_to(b, lhs.dtype, wide, x), convert_to(b, rhs.dtype, wide, y), unflatten(carried, wide)
            )
        )
    results = b.close_loops(loops, results)
    value = narrow(b, wide, node.output.dtype, unflatten(results, wide))
    return encode(b, node.output.dtype, value) if raw else value


def _has_short_rows(b: Builder, node: Node, wide: DType) -> bool:
    """Whether both operands have short rows along the only contracting dimension. Unrolled, the loop over it would be
    gone when LLVM makes vectors: these would be of several results, whose rows it gathers. That is slower by far than
    to add up the lanes of vectors of a row. Processors without masks do not gather so, and rows must be whole vectors.
    """
    if b.strict or wide not in (DType.F32, DType.F64):
        return False
    _, _, left, right = dimension_numbers(node)
    lhs, rhs = node.inputs
    if len(left) != 1 or not lhs.strides[left[0]] == rhs.strides[right[0]] == 1:
        return False
    row = lhs.dims[left[0]]
    return row >= MINIMUM_ROW_PRODUCTS and (b.processor.masks or row % (b.vector_bits // (8 * wide.bytes)) == 0)


@dataclass(frozen=True, slots=True)
class SumWay:
    """How an element is added up, if not in one chain. outer: dimensions around the runs of complex numbers that are;
    arrays: of two runs whose products a function of sum_run.py adds up; else blocks.
    """

    outer: int | None = None
    arrays: tuple[Buffer, ...] = ()

    @property
    def name(self) -> str:
        return "complex_run" if self.outer is not None else "sum_run" if self.arrays else "blocks"

    @property
    def code(self) -> Code:
        return Code() if self.outer is not None else Code(shares=bool(self.arrays), walks=not self.arrays)


def sum_way(facts: Facts, node: Node) -> SumWay | None:
    """None for one chain."""
    wide, pairs = accumulator_of(node), _contracted(node)
    if wide.is_complex:
        arrays = [(x, [pair[side] for pair in pairs]) for side, x in enumerate(node.inputs)]
        outer = outer_of_runs(facts, arrays)
        if outer is not None:
            return SumWay(outer)
    sizes = [node.inputs[0].dims[d] for d in dimension_numbers(node)[2]]
    if wide.component not in (DType.F32, DType.F64) or facts.strict or not _has_partial_sums(node, sizes):
        return None
    return SumWay(arrays=_runs_of(facts, node, wide, pairs))


def _runs_of(facts: Facts, node: Node, wide: DType, pairs: Sequence[tuple[int, int]]) -> tuple[Buffer, ...]:
    """The two arrays in memory whose runs are multiplied; none if a function does not add up their products."""
    operands = node.inputs
    if wide not in (DType.F32, DType.F64) or any(x.dtype is not wide for x in operands) or len(pairs) != 1:
        return ()
    (along,) = pairs
    sources = [stored_of(x) for x in operands]
    if any(x.strides[d] != 1 for x, d in zip(operands, along, strict=True)):
        return ()
    length, single = operands[0].dims[along[0]], node.output.shape.size == 1
    found = tuple(x for x in sources if x is not None)
    return found if len(found) == 2 and is_run(facts, length, single) else ()


def _long_sum(e: Elemental, node: Node, index: Indices, wide: DType, arrays: Sequence[Buffer]) -> Scalar:
    """One element as a sum in blocks, over the contracting dimensions in the memory order of the left operand."""
    b, (lhs, rhs) = e.b, node.inputs
    order = _contracted(node)
    left, right = operand_indices(node, index)
    if arrays:
        return b.op("arith.addf", _zero(b, wide), _sum_run(e, node, left, right, wide, arrays))

    def visit(at: Sequence[Index], carried: Carried) -> tuple[list[Value], Carried]:
        for (ld, rd), i in zip(order, at, strict=True):
            left[ld] = right[rd] = i
        x = convert_to(b, lhs.dtype, wide, e.value(lhs, tuple(left)))
        y = convert_to(b, rhs.dtype, wide, e.value(rhs, tuple(right)))
        if isinstance(x, tuple) and isinstance(y, tuple):
            return flatten(complex_math.product_in_sum(b, x, y)), carried
        return [b.mulf(*flatten(x), *flatten(y))], carried

    zeros = [_zero(b, wide)] * (2 if wide.is_complex else 1)
    sizes, types = [lhs.dims[d] for d, _ in order], [zero.type for zero in zeros]
    sums = _sums_along_memory(b, sizes, types) if _follow_memory(node) else Chains(b, sizes, types, CHAIN_ADDITIONS)
    sums.add_up(visit)
    return unflatten(sums.results(zeros), wide)


def _sum_run(
    e: Elemental, node: Node, left: Sequence[Index], right: Sequence[Index], wide: DType, arrays: Sequence[Buffer]
) -> Value:
    """The sum of the products of two runs in memory. left, right: where they begin."""
    b, operands, element = e.b, node.inputs, raw_type(e.b.types, wide)
    (along,) = _contracted(node)
    starts = [e.offset(operand, tuple(start)) for operand, start in zip(operands, (left, right), strict=True)]
    places = [b.pointer(e.pointers[x.argument], start, element) for x, start in zip(arrays, starts, strict=True)]
    fetches = bool(streams(b.facts, operands, operands[0]))
    return SumRun(Form.PRODUCT, wide, fetches).call(b, places, operands[0].dims[along[0]])


def _contracted(node: Node) -> list[tuple[int, int]]:
    """The contracting dimensions of both operands in the memory order of the left one, without those of size 1."""
    lhs, (_, _, left, right) = node.inputs[0], dimension_numbers(node)
    pairs = sorted(zip(left, right, strict=True), key=lambda pair: -lhs.strides[pair[0]])
    return [pair for pair in pairs if lhs.dims[pair[0]] != 1]


def _sums_of_runs(e: Elemental, node: Node, index: Indices, outer: int) -> LongSums:
    """The parts of one element where both operands are complex numbers along memory."""

    def factor(side: int) -> Factor:
        dimensions = [pair[side] for pair in _contracted(node)]

        def place(prefix: Sequence[Index]) -> list[Index]:
            found = operand_indices(node, index)[side]
            for d, at in zip(dimensions, prefix, strict=False):
                found[d] = at
            return found

        return Factor(node.inputs[side], dimensions, place)

    return sums_of_runs(e, outer, factor(0), factor(1))


def _has_partial_sums(node: Node, sizes: Sequence[int]) -> bool:
    if not _follow_memory(node):
        return math.prod(sizes) >= MINIMUM_BLOCK_PRODUCTS
    lhs = node.inputs[0]
    fastest = min(dimension_numbers(node)[2], key=lambda d: (lhs.dims[d] == 1, lhs.strides[d]))
    return math.prod(sizes) >= MINIMUM_BLOCK_PRODUCTS or lhs.dims[fastest] >= MINIMUM_ALONG_PRODUCTS


def _sums_along_memory(b: Builder, sizes: Sequence[int], types: Sequence[ir.Type]) -> LongSums:
    if MINIMUM_ALONG_PRODUCTS <= sizes[-1] < LANES * ELEMENTS_TOGETHER:
        return PartialSums(b, sizes, types, min(ELEMENTS_TOGETHER, sizes[-1] // FEW_LANES), FEW_LANES)
    return long_sum(b, sizes, types, ELEMENTS_TOGETHER)


def _follow_memory(node: Node) -> bool:
    """Whether both operands are contiguous along a contracting dimension."""
    lhs, rhs = node.inputs
    _, _, lhs_contract, rhs_contract = dimension_numbers(node)
    return any((lhs.strides[a], rhs.strides[c]) == (1, 1) for a, c in zip(lhs_contract, rhs_contract, strict=True))


def operand_indices(node: Node, index: Indices) -> tuple[list[Index], list[Index]]:
    """Indices into the operands for an index of the result; 0 along the contracting dimensions."""
    lhs, rhs = node.inputs
    lhs_batch, rhs_batch, lhs_contract, rhs_contract = dimension_numbers(node)
    left: list[Index] = [0] * len(lhs.dims)
    right: list[Index] = [0] * len(rhs.dims)
    position = 0
    for ld, rd in zip(lhs_batch, rhs_batch, strict=True):
        left[ld] = right[rd] = index[position]
        position += 1
    for side, dims, taken in (
        (left, lhs.dims, {*lhs_batch, *lhs_contract}),
        (right, rhs.dims, {*rhs_batch, *rhs_contract}),
    ):
        for d in range(len(dims)):
            if d not in taken:
                side[d] = index[position]
                position += 1
    return left, right


def _zero(b: Builder, dtype: DType):
    if dtype is DType.PRED:
        return b.constant(0, b.types.i1)
    if dtype.component is DType.F32:
        return b.f32(0.0)
    return b.f64(0.0) if dtype.component is DType.F64 else b.constant(0, b.types.integer(dtype.bytes * 8))


def multiply_add(b: Builder, dtype: DType, x: Scalar, y: Scalar, total: Scalar) -> Scalar:
    if isinstance(x, tuple):
        assert isinstance(y, tuple) and isinstance(total, tuple)
        return complex_math.add(b, total, complex_math.product_in_sum(b, x, y))
    assert not isinstance(y, tuple) and not isinstance(total, tuple)
    if dtype is DType.PRED:
        return b.binary("ori", total, b.binary("andi", x, y))
    if dtype.is_float:
        return b.addf(total, b.mulf(x, y))
    return b.binary("addi", total, b.binary("muli", x, y))


def narrow(b: Builder, wide: DType, dtype: DType, value: Scalar) -> Scalar:
    """The accumulator as an element of the result."""
    if isinstance(value, tuple):
        return value
    if wide.is_float and dtype.is_integer:
        return convert_to(b, wide, dtype, value)
    if dtype in (DType.F8E5M2, DType.F8E4M3FN) and wide is DType.F32:
        value = round_to(b, DType.F16, value)  # as XLA:CPU, which has no product of these types
    if dtype in ROUNDED:
        return round_to(b, dtype, value)
    return wrap_small(b, dtype, value) if dtype in SMALL_INTEGERS else value


RULES: dict[Op, ElementRule] = {Op.DOT: dot_value}
