"""dot: as an elemental rule (one sum per element), and as a root over columns, if the free dimension of one side is the
fastest in memory. Sums of floats may be reassociated, narrow floats are summed in f32, integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue, Unroll
from ..core.registers import Register, flatten, real_constant, register_type
from ..core.view import View
from ..loops.access import fastest_dimension
from ..loops.elemental import Elemental, ElementRule, Index, ReadAll, Reads
from ..loops.fetch import streams_of
from ..loops.form import Fit, Results, Task, form, known
from ..loops.leaf import write_all
from ..loops.linear import source_of
from ..loops.memory import address
from ..loops.nest import NARROW_BYTES
from ..loops.ranges import Steps, column_blocks, columns_fit
from ..numerics import complex_math
from ..numerics.convert import convert
from ..numerics.narrow import NARROW
from ..numerics.typed import real_of
from ..reductions.columns import ROWS_TOGETHER, row_passes
from ..reductions.long_sums import CHAIN_TERMS, OUTSIDE_TERMS, UNBOUNDED, PartialArrays, PartialSums
from ..reductions.reduce import reassociation
from ..reductions.sum_run import SumRun, Term, is_run
from .dot_dims import DotDims

MINIMUM_RUN_PRODUCTS = 8
"""Minimum products of two runs in memory that are added up in vectors along them. Without masks, they must be whole
vectors: what is left over would be a loop, and LLVM does not gather there.
"""

MINIMUM_COLUMNS = 8
"""Columns at least, for which sums are on the stack."""

COLUMN_TERMS = 64
"""Products of a partial sum of a column. Libraries add up several hundred in one register."""

FAR_ROWS = 8
"""Rows that a pass reads of a right operand that comes from memory: with ROWS_TOGETHER, its loads wait longer."""


def accumulator_dtype(instruction: Instruction) -> DType:
    """The dtype of the sums: the result's, but f32 for narrow floats, and a float dtype if an operand is a float."""
    dtype = instruction.shape.dtype
    operands = [o.shape.dtype for o in instruction.operands[:2]]
    if dtype.is_integer and any(d.is_float for d in operands):
        return DType.F64 if DType.F64 in operands else DType.F32
    return DType.F32 if dtype in NARROW else dtype


THROUGH_HALF = frozenset({DType.F8E5M2, DType.F8E4M3FN})
"""Results that XLA:CPU rounds to f16 first."""


def rounded(code: Code, dtype: DType, target: DType, total: Register) -> Register:
    """A sum of dtype `dtype` as an element of the result."""
    if target in THROUGH_HALF and dtype is DType.F32:
        dtype, total = DType.F16, convert(code, dtype, DType.F16, total)
    return convert(code, dtype, target, total)


def zero(dtype: DType, of_float: float = 0.0) -> Register:
    part = register_type(dtype.component)
    value = real_constant(part, of_float) if dtype.component.is_float else part(0)
    return (value, value) if dtype.is_complex else value


def first_sum(instruction: Instruction) -> Register:
    """What the first product is added to: 0, but -0 before the only one. Then, as in XLA, a zero keeps its sign."""
    lhs = instruction.operands[0].shape
    products = math.prod(lhs.dims[d] for d in DotDims.of(instruction).lhs_contracting)
    return zero(accumulator_dtype(instruction), -0.0 if products == 1 else 0.0)


def in_parts(view: View, dtype: DType, length: int, most: int = CHAIN_TERMS) -> bool:
    """Whether a sum of `length` products is made of partial sums (partial.py) of `most` terms."""
    return length > most and not view.strict and (dtype.component.is_float or dtype.is_complex)


def multiply_add(
    code: Code, dtype: DType, total: Register, a: Register, b: Register, in_order: bool = False
) -> Register:
    """total + a·b in the accumulator's dtype. in_order: sums of floats must not be reassociated."""
    if dtype.is_complex:
        real = real_of(code, dtype)
        pairs = [complex_math.pair(value) for value in (total, a, b)]
        return complex_math.add(real, pairs[0], complex_math.multiply_for_sum(real, pairs[1], pairs[2]))
    if dtype is DType.PRED:
        return code.b.or_(total, code.b.and_(a, b))
    if dtype.is_integer:
        return code.b.add(total, code.b.mul(a, b))
    product = code.b.fmul(a, b)
    if in_order:
        return code.b.fadd(total, product)
    with reassociation(code):
        return code.b.fadd(total, product, flags=code.flags)


def dot(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    code, dims = e.code, DotDims.of(instruction)
    lhs = instruction.operands[0]
    dtype = accumulator_dtype(instruction)
    total = first_sum(instruction)
    sizes = [lhs.shape.dims[d] for d in dims.lhs_contracting]
    if 0 in sizes:
        return rounded(code, dtype, instruction.shape.dtype, total)
    loops, inner = [], [0] * len(sizes)
    way = way_of(e.view, instruction)
    if way.run:
        return rounded(code, dtype, instruction.shape.dtype, _run(e, instruction, way, index))
    if way.in_parts:
        return (yield from _dot_in_parts(e, instruction, index))
    for k in contracting_order(lhs.shape, dims):
        loops.append(code.loop(sizes[k], carried=[total], unroll=way.unroll))
        inner[k], total = loops[-1].index, loops[-1].carried[0]
    a, b = yield from _factors(e, instruction, index, inner)
    total = multiply_add(code, dtype, total, a, b)
    for loop in reversed(loops):
        total = loop.close([total])[0]
    return rounded(code, dtype, instruction.shape.dtype, total)


def _factors(e: Elemental, instruction: Instruction, index: Index, inner: Sequence[IndexValue]) -> ReadAll:
    """The factors of a product of an element, converted. inner: its place along the contracting dimensions."""
    code, dtype, operands = e.code, accumulator_dtype(instruction), instruction.operands[:2]
    values = []
    for operand, place in zip(operands, DotDims.of(instruction).operand_positions(index.multi, inner), strict=True):
        values.append((yield operand, Index.at(code, operand.shape, place)))
    return [convert(code, o.shape.dtype, dtype, value) for o, value in zip(operands, values, strict=True)]


def _are_short_runs(view: View, instruction: Instruction, dtype: DType) -> bool:
    """Whether a sum is of products of two short runs in memory. LLVM would unroll its loop, make vectors of several
    sums, and gather what these read, which took four times as long as vectors of a run and the sum of their lanes.
    """
    dims, shapes = DotDims.of(instruction), [o.shape for o in instruction.operands[:2]]
    if view.strict or not dtype.is_float or len(dims.lhs_contracting) != 1:
        return False
    (left,), (right,) = dims.lhs_contracting, dims.rhs_contracting
    length = shapes[0].dims[left]
    fills = view.processor.masks or length % (view.vector_bits // (8 * dtype.bytes)) == 0
    return length >= MINIMUM_RUN_PRODUCTS and fills and shapes[0].strides[left] == shapes[1].strides[right] == 1


def _dot_in_parts(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    """One element as a sum of partial sums."""
    code, dims = e.code, DotDims.of(instruction)
    lhs = instruction.operands[0]
    dtype, order = accumulator_dtype(instruction), contracting_order(lhs.shape, dims)
    inner: list[IndexValue] = [0] * len(order)
    sums = PartialSums(code, [first_sum(instruction)], [lhs.shape.dims[dims.lhs_contracting[k]] for k in order])
    for (total,) in sums.steps():
        for k, position in zip(order, sums.positions, strict=True):
            inner[k] = position
        a, b = yield from _factors(e, instruction, index, inner)
        sums.put([multiply_add(code, dtype, total, a, b, in_order=True)])
    return rounded(code, dtype, instruction.shape.dtype, sums.totals()[0])


@dataclass(frozen=True, slots=True)
class Way:
    """How an element of a dot is computed. unroll: the mode of its loops. in_parts: as partial sums. run: the arrays of
    which a function that kernels share adds up the products; ahead: whether what follows is fetched. shares, walks: as
    of Fit.
    """

    unroll: Unroll
    in_parts: bool = False
    run: tuple[Instruction, ...] = ()
    ahead: bool = False

    @property
    def shares(self) -> bool:
        return bool(self.run)

    @property
    def walks(self) -> bool:
        return self.in_parts and not self.run


def way_of(view: View, instruction: Instruction) -> Way:
    """How an element is computed, wherever it is needed by itself."""
    dims, operands, dtype = DotDims.of(instruction), instruction.operands[:2], accumulator_dtype(instruction)
    length = math.prod(operands[0].shape.dims[d] for d in dims.lhs_contracting)
    if not in_parts(view, dtype, length, CHAIN_TERMS - 1):
        unroll = Unroll.SHORT if dtype.bytes <= NARROW_BYTES else Unroll.FREELY
        return Way(Unroll.NEVER if _are_short_runs(view, instruction, dtype) else unroll)
    sides = zip(operands, (dims.lhs_contracting, dims.rhs_contracting), strict=True)
    rows = all(len(along) == 1 and operand.shape.strides[along[0]] == 1 for operand, along in sides)
    sources = tuple(x for o in operands if o.shape.dtype is dtype and (x := source_of(o, view.leaves)) is not None)
    known = dtype in (DType.F32, DType.F64) and len(sources) == 2
    if not known or not rows or not is_run(view, length, instruction.shape.size == 1):
        return Way(Unroll.FREELY, True)
    return Way(Unroll.FREELY, True, sources, bool(streams_of(view, operands, operands[0].shape)))


def _run(e: Elemental, instruction: Instruction, way: Way, index: Index) -> ir.Value:
    """One element, by a function of sum_run.py."""
    code, dims, operands = e.code, DotDims.of(instruction), instruction.operands[:2]
    dtype, arrays = accumulator_dtype(instruction), []
    for source, operand, place in zip(way.run, operands, dims.operand_positions(index.multi, [0]), strict=True):
        at = Index.at(code, operand.shape, place).offset(operand.shape)
        arrays.append(address(code, e.leaves[source], dtype, at))
    total = SumRun(Term.PRODUCT, dtype, way.ahead).call(code, arrays, operands[0].shape.dims[dims.lhs_contracting[0]])
    return code.b.fadd(flatten(first_sum(instruction))[0], total)


def contracting_order(lhs: Shape, dims: DotDims) -> list[int]:
    """Indices of the contracting dimensions, the slowest in the left operand's memory first."""
    return sorted(range(len(dims.lhs_contracting)), key=lambda k: -lhs.strides[dims.lhs_contracting[k]])


RULES: dict[Op, ElementRule] = {Op.DOT: dot}


def column_dimension(instruction: Instruction) -> int | None:
    """The result dimension to vectorise over: the fastest of the right operand, otherwise that of the left operand.

    It may be one of batches where it is the fastest of both and of the result, and numbers are complex: of others,
    passes have made a reduction.
    """
    dims = DotDims.of(instruction)
    lhs, rhs = (o.shape for o in instruction.operands[:2])
    if any(lhs.dims[d] == 0 for d in dims.lhs_contracting):
        return None
    for of_rhs, shape in ((True, rhs), (False, lhs)):
        fastest = fastest_dimension(shape)
        found = dims.result_dimension(of_rhs, fastest) if fastest is not None else None
        if found is not None and instruction.shape.dims[found] >= MINIMUM_COLUMNS:
            return found
    if not instruction.shape.dtype.is_complex:
        return None
    found, *places = map(fastest_dimension, (instruction.shape, lhs, rhs))
    batched = [None if d is None else dims.batch_dimension(of_rhs == 1, d) for of_rhs, d in enumerate(places)]
    if found is None or batched != [found, found] or instruction.shape.dims[found] < MINIMUM_COLUMNS:
        return None
    return found


def columns_of(view: View, instruction: Instruction) -> int:
    """The most columns of a block, of whose sums up to three arrays lie in the first cache. A row of the operand is
    read along its columns: a shorter piece ends before a processor foresees the next line, and needs its page's address
    again.
    """
    return view.processor.first_cache_bytes // 4 // accumulator_dtype(instruction).bytes


@dataclass(frozen=True, slots=True)
class DotColumns:
    """column: the dimension of the result that columns are along; most: columns of a block. each: rows of a pass.
    apart: whether sums are made of partial ones.
    """

    column: int
    most: int
    each: int
    apart: bool


def emit_column_dot(e: Elemental, results: Results, given: DotColumns, steps: Steps | None = None) -> None:
    """For each block of columns: compute the sums on the stack, then all results per element, with its value bound."""
    code, (instruction,) = e.code, results.products
    result, column, most = instruction.shape, given.column, given.most
    dtype = accumulator_dtype(instruction)
    sums = PartialArrays(code, [first_sum(instruction)], min(most, result.dims[column]))
    order = [d for d in reversed(result.minor_to_major) if d != column]
    for positions, start, block in column_blocks(code, steps, result.dims, order, column, most):
        sums.start(block)
        _accumulate(e, instruction, sums, given, positions, start, block)
        with code.loop(block) as i:
            positions[column] = code.add(start, i)
            index = Index.at(code, result, positions)
            e.bind(instruction, index, rounded(code, dtype, result.dtype, sums.read(i)[0]))
            write_all(e, results.leaves, index)


def _accumulate(
    e: Elemental,
    instruction: Instruction,
    sums: PartialArrays,
    given: DotColumns,
    positions: list[IndexValue],
    start: IndexValue,
    block: int,
) -> None:
    """Add up the sums of one block. The fastest contracting dimension advances several elements at a time."""
    code, dims = e.code, DotDims.of(instruction)
    lhs, rhs = instruction.operands[:2]
    dtype = accumulator_dtype(instruction)
    order = contracting_order(lhs.shape, dims)
    inner: list[IndexValue] = [0] * len(order)
    sizes = [lhs.shape.dims[dims.lhs_contracting[k]] for k in order] or [1]
    apart, each = given.apart, given.each
    for rows, places in row_passes(sums, sizes, each, COLUMN_TERMS if apart else UNBOUNDED, OUTSIDE_TERMS, each):
        with code.loop(block) as i:
            positions[given.column] = code.add(start, i)
            (total,) = sums.read(i)
            for r in range(rows):
                for k, place in zip(order, [*places[:-1], code.add(places[-1], r)], strict=False):
                    inner[k] = place
                left, right = dims.operand_positions(positions, inner)
                a = convert(code, lhs.shape.dtype, dtype, e.value(lhs, Index.at(code, lhs.shape, left)))
                b = convert(code, rhs.shape.dtype, dtype, e.value(rhs, Index.at(code, rhs.shape, right)))
                total = multiply_add(code, dtype, total, a, b, apart)
            sums.write(i, [total])


@form("dot/columns", emit_column_dot, MINIMUM_COLUMNS="columns")
def columns(task: Task) -> Fit:
    """Products with neighbours in an operand and in the result: blocks of columns, whose sums are on the stack."""
    view, root = task.view, task.product(Op.DOT)
    reason = f"no dimension of at least {MINIMUM_COLUMNS} is the fastest of an operand and of the result"
    column, most = known(column_dimension(root), reason), columns_of(view, root)
    in_steps = columns_fit(task.partition, task.numbered, column, root.shape.dims[column], most)
    lhs, rhs = (o.shape for o in root.operands[:2])
    far = 3 * view.processor.last_cache_bytes // 4
    each = FAR_ROWS if rhs.size * rhs.dtype.bytes >= far else ROWS_TOGETHER
    terms = math.prod(lhs.dims[d] for d in DotDims.of(root).lhs_contracting)
    apart = in_parts(view, accumulator_dtype(root), terms, COLUMN_TERMS)
    return Fit(DotColumns(column, most, each, apart), in_steps, (root,))
