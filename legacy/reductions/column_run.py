"""Reductions over columns: which they are, and sums of few, whose rows follow each other in memory, as one run, by a
function that kernels share.
"""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import IndexValue, Unroll
from ..core.registers import memory_type
from ..core.view import View
from ..loops.access import fastest_dimension
from ..loops.elemental import Elemental, Index
from ..loops.fetch import streams_of
from ..loops.form import Fit, Results, Task, Unfit, form, needs
from ..loops.leaf import write_all
from ..loops.linear import source_of
from ..loops.memory import address
from ..loops.ranges import Steps, loops_over
from . import sum_run
from .long_sums import LINE_BYTES
from .reduce import simple_op
from .sum_run import MAXIMUM_LENGTH, MINIMUM_LENGTH, SumRun, Term, is_run


def is_column_reduce(view: View, instruction: Instruction) -> bool:
    """Whether the fastest dimension in memory is kept and long enough for vectors."""
    source = instruction.operands[0].shape
    fastest = fastest_dimension(source)
    return (
        fastest is not None
        and fastest not in instruction.dimensions
        and source.dims[fastest] >= (MINIMUM_WIDE_COLUMNS if _has_enough_of_few(view, instruction) else MINIMUM_COLUMNS)
        and all(source.dims[d] for d in instruction.dimensions)
        and bool(instruction.dimensions)
    )


MINIMUM_COLUMNS = 8
"""Columns at least, for rows to be reduced into them."""

MINIMUM_WIDE_COLUMNS = 5
"""As above, for numbers of 32 bits and more, for which no step takes more than an operation or two: a nest over results
would gather elements of several rows.
"""


def _has_enough_of_few(view: View, instruction: Instruction) -> bool:
    """Whether MINIMUM_WIDE_COLUMNS columns are enough. Of bf16 they are where processors do not gather: a nest over
    results would be scalars there, and is vectors of several rows elsewhere.
    """
    dtype, op = instruction.operands[0].shape.dtype, simple_op(instruction.called()[0])
    compares = dtype.is_float and op is not None and op.opcode in (Op.MAXIMUM, Op.MINIMUM)
    if dtype is DType.BF16:
        return op is not None and not view.processor.gathers
    return dtype.bytes >= 4 and op is not None and not compares


def same_columns(a: Instruction, b: Instruction) -> bool:
    """Whether two reductions read arrays of one shape in one order and have results of one shape."""
    first, second = a.operands[0].shape, b.operands[0].shape
    results = [shape.without_layout().dims for i in (a, b) for _, shape in i.shape.leaves()]
    return (
        first.dims == second.dims
        and first.strides == second.strides
        and sorted(a.dimensions) == sorted(b.dimensions)
        and len(set(results)) == 1
    )


@dataclass(frozen=True, slots=True)
class ColumnRun:
    """A sum whose columns are neighbours, and whose rows follow each other. outer: the number of dimensions before the
    reduced ones; rows: elements of these; columns: dimensions after them; width: elements of these. ahead: whether what
    follows is fetched.
    """

    source: Instruction
    outer: int
    rows: int
    columns: tuple[int, ...]
    width: int
    ahead: bool

    @staticmethod
    def of(view: View, reduction: Instruction) -> ColumnRun:
        """Raises Unfit."""
        operand, simple, reduced = reduction.operands[0], simple_op(reduction.called()[0]), sorted(reduction.dimensions)
        shape, source = operand.shape, source_of(operand, view.leaves)
        is_sum = simple is not None and simple.opcode is Op.ADD and shape.dtype in (DType.F32, DType.F64)
        needs(is_sum, "no sum of f32 or f64")
        follows = reduced == list(range(reduced[0], reduced[-1] + 1)) and shape.is_row_major
        needs(follows and reduction.shape.is_row_major, "rows do not follow each other in memory")
        columns = tuple(range(reduced[-1] + 1, shape.rank))
        width, most = math.prod(shape.dims[d] for d in columns), LINE_BYTES // shape.dtype.bytes
        needs(width & (width - 1) == 0 and 1 < width <= most, f"{width} columns are no power of two up to {most}")
        rows = math.prod(shape.dims[d] for d in reduced)
        if source is None or not is_run(view, rows * width):
            raise Unfit(f"no array in memory has runs of {rows * width} elements, {MINIMUM_LENGTH} to {MAXIMUM_LENGTH}")
        return ColumnRun(source, reduced[0], rows, columns, width, bool(streams_of(view, [operand], shape)))


def emit(e: Elemental, results: Results, given: ColumnRun, steps: Steps | None) -> None:
    """Emit the sum, each result followed by what depends on it, with its value bound."""
    code, (reduction,) = e.code, results.products
    operand, init = reduction.operands
    dtype, dims, outer = operand.shape.dtype, operand.shape.dims, range(given.outer)
    start = e.number(init)
    helper = SumRun(Term.ELEMENT, dtype, given.ahead, given.width)
    with loops_over(code, steps, dims, outer, Unroll.NEVER) as places:
        first = code.weighted_sum([places[d] for d in outer], [operand.shape.strides[d] for d in outer])
        sums = helper.call_into(code, [address(code, e.leaves[given.source], dtype, first)], given.rows * given.width)
        with code.loop(given.width) as column:
            sizes = [dims[d] for d in given.columns]
            positions: list[IndexValue] = [places[d] for d in outer]
            positions += code.split(column, sizes)
            index = Index.at(code, reduction.shape, positions)
            slot = code.b.gep(sums, [code.value(column)], inbounds=True, source_etype=memory_type(dtype))
            e.bind(reduction, index, code.b.fadd(start, code.b.load(slot, typ=memory_type(dtype), align=dtype.bytes)))
            write_all(e, results.leaves, index)


@form("reduce/run", emit, sum_run, MINIMUM_LENGTH="elements of a run", MAXIMUM_LENGTH="elements of a run")
def run(task: Task) -> Fit:
    """Sums of a few columns whose rows follow each other in memory: one run, by a function that kernels share."""
    first, products = task.product(Op.REDUCE), task.results.products
    needs(len(products) == 1, f"{len(products)} reductions over the same columns")
    found = ColumnRun.of(task.view, first)
    needs(all(d < found.outer for d in task.numbered), "steps number columns")
    return Fit(found, own=products, shares=True)
