"""Reductions over columns: which they are, and sums of few, whose rows follow each other in memory, as one run, by a
function that kernels share.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..hlo.dtypes import DType
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from .builder import Code, IndexValue, Unroll
from .elemental import Elemental, Index
from .fetch import streams_of
from .memory import address
from .partial import LINE_BYTES
from .ranges import Steps, loops_over
from .reduce import simple_op
from .registers import memory_type
from .sum_run import SumRun, Term, is_run, source_of


def is_column_reduce(code: Code, instruction: Instruction) -> bool:
    """Whether the fastest dimension in memory is kept and long enough for vectors."""
    source = instruction.operands[0].shape
    fastest = next((d for d in source.minor_to_major if source.dims[d] != 1), None)
    return (
        fastest is not None
        and fastest not in instruction.dimensions
        and source.dims[fastest] >= (FEWEST if _has_enough_of_few(code, instruction) else VECTOR)
        and all(source.dims[d] for d in instruction.dimensions)
        and bool(instruction.dimensions)
    )


VECTOR, FEWEST = 8, 5
"""Columns from which on rows are reduced into them; of numbers of 32 bits and more, for which no step takes more than
an operation or two, fewer are enough: a nest over results would gather elements of several rows.
"""


GATHERING = 512
"""Bits of vectors of processors on which a nest over results of bf16 is vectors of several rows. With others, fewer
columns are enough of bf16, too: they would be scalars.
"""


def _has_enough_of_few(code: Code, instruction: Instruction) -> bool:
    """Whether FEWEST columns are enough."""
    dtype, op = instruction.operands[0].shape.dtype, simple_op(instruction.called()[0])
    compares = dtype.is_float and op is not None and op.opcode in (Op.MAXIMUM, Op.MINIMUM)
    if dtype is DType.BF16:
        return op is not None and code.vector_bits < GATHERING
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
class _Shape:
    """outer: dimensions before the reduced ones; rows: elements of these; columns: dimensions after them."""

    outer: list[int]
    rows: int
    columns: list[int]
    width: int


def _shape_of(reduction: Instruction) -> _Shape | None:
    source, reduced = reduction.operands[0].shape, sorted(reduction.dimensions)
    if not reduced or reduced != list(range(reduced[0], reduced[-1] + 1)) or not source.is_row_major:
        return None
    columns = list(range(reduced[-1] + 1, source.rank))
    width = math.prod(source.dims[d] for d in columns)
    most = LINE_BYTES // source.dtype.bytes
    if width & (width - 1) or not 1 < width <= most or not reduction.shape.is_row_major:
        return None
    return _Shape(list(range(reduced[0])), math.prod(source.dims[d] for d in reduced), columns, width)


def emit_columns_of_run(
    e: Elemental, reduction: Instruction, finish: Callable[[Index], None], steps: Steps | None
) -> bool:
    """Emit a sum over columns, each result followed by `finish` with its value bound; False if no function does it."""
    code, (operand, init) = e.code, reduction.operands
    dtype, root = operand.shape.dtype, reduction.called()[0].root
    if root.opcode is not Op.ADD or dtype not in (DType.F32, DType.F64):
        return False
    shape, source = _shape_of(reduction), source_of(operand, e.leaves)
    inside = () if steps is None else steps.dimensions
    if shape is None or source is None or any(d >= len(shape.outer) for d in inside):
        return False
    count, dims = shape.rows * shape.width, operand.shape.dims
    if not is_run(code, count):
        return False
    start = e.value(init, e.scalar(init.shape))
    helper = SumRun(Term.ELEMENT, dtype, bool(streams_of(e, [operand], operand.shape)), shape.width)
    with loops_over(code, steps, inside, dims, shape.outer, Unroll.NEVER) as places:
        first = code.weighted_sum([places[d] for d in shape.outer], [operand.shape.strides[d] for d in shape.outer])
        sums = helper.call_into(code, [address(code, e.leaves[source], dtype, first)], count)
        column = code.loop(shape.width)
        sizes = [dims[d] for d in shape.columns]
        positions: list[IndexValue] = [places[d] for d in shape.outer]
        positions += code.split(column.index, sizes, list(reversed(range(len(sizes)))))
        index = Index.at(code, reduction.shape, positions)
        slot = code.b.gep(sums, [code.value(column.index)], inbounds=True, source_etype=memory_type(dtype))
        e.bind(reduction, index, code.b.fadd(start, code.b.load(slot, typ=memory_type(dtype), align=dtype.bytes)))
        finish(index)
        column.close()
    return True
