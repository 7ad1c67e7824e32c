"""Products of which one side has a few columns, and the other lies along the contracting dimension: dot products of
vectors of both, several rows at once (dot_narrow_micro.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from llvmlite import ir

from ...codegen.processors import Processor
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ..core.builder import IndexValue, Once, Unroll
from ..core.registers import I64, memory_type
from ..core.stack import alloca
from ..core.view import View
from ..loops.elemental import Elemental
from ..loops.form import Fit, Results, Task, Unfit, form, needs
from ..loops.memory import Pointer, address, load
from ..loops.ranges import Steps, bounds, loops_over, pieces
from .dot import accumulator_dtype, rounded
from .dot_dims import DotDims
from .dot_narrow_tile import FLOATS, Narrow, PackColumns, height_of, pitch_of
from .dot_operands import give
from .dot_pairs import PARTS
from .dot_problem import COMPLEX, WIDE, Side, positions_of_step, sides_of

MAXIMUM_COLUMNS = 8
"""Columns up to which the tile of large products, a vector of them wide or more, is slower: with 16 registers one less,
where the tile need not copy the many rows.
"""

MINIMUM_ROWS = 16
"""Minimum rows for which a copy of the columns is used often enough."""

MINIMUM_VECTORS = 3
"""Minimum vectors of a row for which the sum over their lanes takes less time than the products."""

MAXIMUM_COLUMN_BYTES = 1 << 18
"""Bytes on the stack that columns may be copied to: they stay in the second cache."""

BAND_ROWS = 64
"""Rows of a band: their pages' addresses stay in a processor, and their sums in the first cache."""

FAR_ROW, FAR_HEIGHT = 1 << 11, 8
"""Minimum bytes of a row of the wide side for which the next rows are fetched, and the most rows at once then: a
processor can hold this number of streams and of addresses that are fetched.
"""


@dataclass(frozen=True, slots=True)
class NarrowProblem:
    """wide: the side with many rows; few: that with few columns; swapped: whether wide is B of `sides_of`; exchanged:
    whether that is the left operand. row, column: the distances of the result's elements along wide and few. parts: of
    an element, if it is complex: its products are those of rows and columns of parts (PackColumns). dtype: of
    sums, or of their parts; lanes: of a vector of these. banded: whether a band of rows has its sums on the stack.
    each: rows of the wide side in a step, if the steps number these.
    """

    wide: Side
    few: Side
    swapped: bool
    exchanged: bool
    row: int
    column: int
    depth: int
    parts: int
    dtype: DType
    lanes: int
    processor: Processor
    banded: bool = False
    each: int | None = None

    @property
    def columns(self) -> int:
        """Columns of parts."""
        return self.few.size * self.parts

    @property
    def length(self) -> int:
        """Parts of a row."""
        return self.depth * self.parts

    @property
    def block(self) -> int:
        """Elements, or their parts, of a column that are multiplied with a band of rows: the columns take half of the
        first cache.
        """
        return self.processor.first_cache_bytes // 2 // (self.columns * self.dtype.bytes) // self.lanes * self.lanes

    @property
    def is_whole(self) -> bool:
        """Whether all rows are one band of one block."""
        return not self.banded and self.length <= self.block

    @property
    def far(self) -> bool:
        """Whether the next rows are fetched: the wide side takes at least three quarters of the last cache."""
        row = self.wide.free_stride * self.parts * self.wide.operand.shape.dtype.component.bytes
        return self.wide.size * row >= 3 * self.processor.last_cache_bytes // 4 and row >= FAR_ROW

    @property
    def height(self) -> int:
        """Rows at once."""
        most = height_of(self.columns, self.processor.vector_registers)
        return min(most, FAR_HEIGHT) if self.far else most


def narrow_of(view: View, instruction: Instruction) -> NarrowProblem:
    """The form of such a dot. Raises Unfit if it does not fit or does not pay off."""
    dtype, operands = accumulator_dtype(instruction), instruction.operands[:2]
    given = {o.shape.dtype for o in operands}
    is_float = dtype in WIDE and given <= WIDE[dtype] & FLOATS and instruction.shape.dtype.is_float
    is_complex = dtype in COMPLEX and given == {instruction.shape.dtype}
    needs(is_float or is_complex, f"sums of {dtype.value}, or of operands that are not converted to it as vectors")
    needs(not view.strict, "sums are strict")
    needs(all(o in view.leaves for o in operands), "an operand is computed")
    parts_, dtype = (PARTS, dtype.component) if is_complex else (1, dtype)
    left, right, rows, exchanged = sides_of(instruction)
    depth = math.prod(operands[0].shape.dims[d] for d in DotDims.of(instruction).lhs_contracting)
    lanes, reasons = max(view.vector_bits, 128) // dtype.bits, []
    for swapped, wide, few in ((False, left, right), (True, right, left)):
        most = MAXIMUM_COLUMNS if swapped or view.processor.vector_registers > 16 else MAXIMUM_COLUMNS - 1
        strides = (1, rows) if swapped else (rows, 1)
        found = NarrowProblem(wide, few, swapped, exchanged, *strides, depth, parts_, dtype, lanes, view.processor)
        reasons.append(_declines(found, most))
        if not reasons[-1]:
            return found
    raise Unfit(f"left: {reasons[0]}; right: {reasons[1]}")


def _declines(problem: NarrowProblem, most: int) -> str:
    """Why the wide side of a product is none; nothing if it is. most: columns of the other side."""
    if problem.wide.size < MINIMUM_ROWS:
        return f"{problem.wide.size} rows, fewer than {MINIMUM_ROWS}"
    if not 1 <= problem.columns <= most:
        return f"{problem.columns} columns, not 1 to {most}"
    if problem.wide.contracted_stride != 1:
        return f"rows have elements {problem.wide.contracted_stride} apart"
    if problem.length < MINIMUM_VECTORS * problem.lanes:
        return f"rows of {problem.length}, shorter than {MINIMUM_VECTORS} vectors of {problem.lanes}"
    size = pitch_of(problem.length, problem.lanes) * problem.columns * problem.dtype.bytes
    return "" if size <= MAXIMUM_COLUMN_BYTES else f"columns of {size} bytes, more than {MAXIMUM_COLUMN_BYTES}"


def emit_narrow_dot(e: Elemental, results: Results, problem: NarrowProblem, steps: Steps | None) -> None:
    """Emit a dot into the buffer of the result, or all that follows it for each element."""
    code, (instruction,), wide = e.code, results.products, problem.wide
    result = results.first.pointer(e)
    dtype, around = problem.dtype, steps if problem.each is None else None
    begin, end = bounds(code, None if problem.each is None else steps, wide.size)
    packed = Pointer(alloca(code, memory_type(dtype), pitch_of(problem.length, problem.lanes) * problem.columns))
    sums = Pointer(alloca(code, memory_type(dtype), BAND_ROWS * problem.columns)) if problem.banded else None
    sizes = instruction.shape.dims[: len(wide.loops)]
    with loops_over(code, around, sizes, range(len(sizes)), Unroll.NEVER) as batch:
        place = code.weighted_sum(batch, instruction.shape.strides[: len(batch)])
        loops = _Rows(e, instruction, problem, packed, batch, place)
        loops.pack()
        one = problem.is_whole
        bands = Once(begin, ()) if one else code.range(begin, end, BAND_ROWS, unroll=Unroll.NEVER)
        count = code.subtract(end, bands.index)
        count = count if one else code.minimum(count, BAND_ROWS)
        loops.multiply(bands.index, count, sums or result)
        if sums is not None:
            loops.give(bands.index, count, sums, results)
        bands.close()


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one product. packed: its columns; batch: the positions of the loops around; place: its first result's
    offset.
    """

    e: Elemental
    instruction: Instruction
    problem: NarrowProblem
    packed: Pointer
    batch: Sequence[IndexValue]
    place: IndexValue

    def _blocks(self) -> Iterator[tuple[IndexValue, int]]:
        """Loops over the blocks of the depth: (the first element or part, their number)."""
        return pieces(self.e.code, self.problem.length, self.problem.block)

    def pack(self) -> None:
        """Pack the columns, block by block."""
        code, few, dtype = self.e.code, self.problem.few, self.problem.dtype
        source, lanes = few.operand.shape.dtype, self.problem.lanes
        start, strides = code.weighted_sum(self.batch, few.loops), (few.free_stride, few.contracted_stride)
        for first, count in self._blocks():
            element = code.divide(first, self.problem.parts)
            place = code.add(start, code.multiply(element, few.contracted_stride))
            columns = address(code, self.e.leaves[few.operand], source, place)
            PackColumns(source, dtype, lanes).call(code, columns, self._packed(first), (few.size, count), *strides)

    def _packed(self, first: IndexValue) -> ir.Value:
        code = self.e.code
        return address(code, self.packed, self.problem.dtype, code.multiply(first, self.problem.columns))

    def multiply(self, top: IndexValue, count: IndexValue, to: Pointer) -> None:
        """Store the sums of `count` rows from `top` on in the result, or in a band that begins with them."""
        e, code, p, dtype = self.e, self.e.code, self.problem, self.problem.dtype
        wide, columns = p.wide, p.columns
        distances = (columns, 1) if p.banded else (p.row * p.parts, p.column if p.parts == 1 else 1)
        at = 0 if p.banded else code.multiply(code.add(self.place, code.multiply(top, p.row)), p.parts)
        start = code.add(code.weighted_sum(self.batch, wide.loops), code.multiply(top, wide.free_stride))
        start = code.multiply(start, p.parts)
        source = wide.operand.shape.dtype.component
        dense = distances == (columns, 1) or (columns == 1 and distances[0] == 1)
        for first, depth in self._blocks():
            narrow = Narrow(source, dtype, p.height, columns, p.lanes, p.far, depth % p.lanes != 0, dense)
            rows = address(code, e.leaves[wide.operand], source, code.add(start, first))
            target = address(code, to, dtype, at)
            later = code.b.icmp_unsigned("!=", code.value(first), I64(0))
            adds, distance = code.b.zext(later, I64), wide.free_stride * p.parts
            narrow.call(code, rows, self._packed(first), target, count, depth, distance, distances, adds)

    def give(self, top: IndexValue, count: IndexValue, sums: Pointer, results: Results) -> None:
        """Round the sums of `count` rows from `top` on, and give them on."""
        e, code, p, shape = self.e, self.e.code, self.problem, self.instruction.shape
        dtype = accumulator_dtype(self.instruction)
        with code.range(0, count, unroll=Unroll.NEVER) as r, code.loop(p.few.size, unroll=Unroll.NEVER) as column:
            total = load(code, sums, dtype, code.add(code.multiply(r, p.few.size), column))
            value = total if p.parts > 1 else rounded(code, dtype, shape.dtype, total)
            row = code.add(top, r)
            inside = code.add(code.multiply(row, p.row), code.multiply(column, p.column))
            linear = code.add(self.place, inside)
            places = [(row, p.wide), (column, p.few)]
            give(e, results, self.batch, places[::-1] if p.swapped != p.exchanged else places, linear, value)


@form(
    "dot/narrow",
    emit_narrow_dot,
    MAXIMUM_COLUMNS="columns of the few side",
    MINIMUM_ROWS="rows of the wide side",
    MINIMUM_VECTORS="vectors of a row",
    MAXIMUM_COLUMN_BYTES="bytes of the columns",
)
def narrow(task: Task) -> Fit:
    """Products of a few columns with many contiguous rows: dot products of vectors of both.

    Steps may be some of the batches, or blocks of rows of the wide side.
    """
    root = task.product(Op.DOT)
    found = narrow_of(task.view, root)
    apart = found.parts > 1 and found.few.size > 1 and found.column > 1  # neither parts nor columns are neighbours
    rounds = root.shape.dtype.component is not found.dtype
    found = replace(found, banded=not task.results.ends or rounds or apart)
    if task.partition is None or all(d < len(found.wide.loops) for d in task.numbered):
        return Fit(found, own=(root,))
    each = positions_of_step(root, task.partition, columns=found.swapped)
    return Fit(replace(found, each=each), each is not None, (root,))
