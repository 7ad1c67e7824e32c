"""Results whose rows are all alike, as those of a short array that is broadcast, or of an iota along rows: some rows
are computed once, into a block on the stack, which is then copied as whole vectors.
"""

from __future__ import annotations

import math

from llvmlite import ir

from ...codegen.processors import Processor
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.graph import walk
from ..core.registers import memory_type
from ..core.stack import alloca
from ..core.view import View
from ..loops.access import live_dimensions, values_of
from ..loops.elemental import Elemental, Index
from ..loops.form import Fit, Task, at_least, at_most, form, needs
from ..loops.leaf import Leaf
from ..loops.memory import Pointer, is_splat, store
from ..loops.ranges import Steps, bounds, loops_over
from ..numerics.elementwise import EMIT
from ..numerics.narrow import NARROW
from .padded_rows import in_whole_rows

MINIMUM_BLOCK_BYTES = 1 << 10
"""Bytes of a block, at least: a loop over it is worth its beginning."""

MAXIMUM_BLOCK_BYTES = Processor().first_cache_bytes // 2
"""And at most: it stays in the first cache of any processor."""

MAXIMUM_MOVED_BYTES = 1 << 7
"""Bytes of a row that is only moved, or counted, at most: of longer ones LLVM's vectors are full. Others are made by
operations on each element; to count in narrow floats takes several, too.
"""

MINIMUM_BYTES = 1 << 13
"""Minimum bytes of a result for which the block pays."""


@dataclass(frozen=True, slots=True)
class RepeatedRows:
    """period: elements that repeat, along these dimensions, the slowest first; together: how often in a block; count:
    how often in the result.
    """

    dimensions: tuple[int, ...]
    period: int
    together: int
    count: int

    @staticmethod
    def of(view: View, leaf: Leaf) -> RepeatedRows:
        """Those of a result. Raises Unfit if it has none, or they are too long or too few."""
        root, shape = leaf.instruction, leaf.shape
        needs(not view.by_element, "for a device")
        alone = not (leaf.path or leaf.in_place or root in view.leaves or root.shape.is_tuple)
        needs(alone, "the result is in memory, written in place, or an element of a tuple")
        at_least(shape.bytes, MINIMUM_BYTES, "bytes")
        needs(root.opcode in EMIT or root.opcode in _MOVES, f"{root.opcode.value} is the root")
        order = live_dimensions(shape)[::-1]
        varies = _varying(view, root)
        needs(varies, "all elements are alike")
        needs(order[0] not in varies, "rows differ along the slowest dimension")
        inside = order[min(order.index(d) for d in varies) :]
        period = math.prod(shape.dims[d] for d in inside)
        size, count = period * shape.dtype.bytes, shape.size // period
        computes = shape.dtype in NARROW or any(i.opcode in EMIT for i in walk([root], view.leaves))
        most = MAXIMUM_BLOCK_BYTES if computes else MAXIMUM_MOVED_BYTES
        at_most(size, most, "bytes of a row")
        line = view.processor.line_bytes
        whole = line // math.gcd(size, line)
        together = -(-max(1, MINIMUM_BLOCK_BYTES // size) // whole) * whole
        at_most(together * size, MAXIMUM_BLOCK_BYTES, "bytes of a block")
        needs(2 * together <= count, f"{count} rows, fewer than two blocks of {together}")
        return RepeatedRows(tuple(inside), period, together, count)

    def emit(self, e: Elemental, leaf: Leaf, steps: Steps | None) -> None:
        code, dtype = e.code, leaf.shape.dtype
        part, parts = memory_type(dtype), 2 if dtype.is_complex else 1
        size = self.together * self.period * parts
        block = Pointer(alloca(code, part, size))
        self._fill(e, leaf, block)
        period = self.period * parts
        again = code.loop(size - period, start=period) if self.together > 1 else None
        if again is not None:
            _copy(code, block, code.subtract(again.index, period), block, again.index, part)
            again.close()

        begin, end = bounds(code, steps, self.count)
        stop = code.subtract(end, self.together - 1)
        rows = code.range(begin, stop, self.together, carried=[code.value(begin)], unroll=Unroll.NEVER)
        lanes = code.view.processor.line_bytes // dtype.component.bytes
        with code.loop(size, step=lanes) as line:
            place = code.add(code.multiply(rows.index, period), line)
            _copy(code, block, line, leaf.pointer(e), place, ir.VectorType(part, lanes))
        (rest,) = rows.close([code.value(code.add(rows.index, self.together))])
        code.define(rest, code.scope, again=True)

        first = code.multiply(rest, period)
        with code.range(0, code.multiply(code.subtract(end, rest), period)) as last:
            _copy(code, block, last, leaf.pointer(e), code.add(first, last), part)

    def _fill(self, e: Elemental, leaf: Leaf, block: Pointer) -> None:
        """Compute the elements of a period, whose other positions are 0, into the block."""
        code, shape = e.code, leaf.shape
        with loops_over(code, None, shape.dims, self.dimensions) as positions:
            value = leaf.value(e, Index.at(code, shape, positions))
            store(code, block, shape.dtype, code.weighted_sum(positions, shape.strides), value)


def _copy(code: Code, source: Pointer, here: IndexValue, target: Pointer, there: IndexValue, type_: ir.Type) -> None:
    """Copy one value of a type between places that are counted in its elements."""
    element = type_.element if isinstance(type_, ir.VectorType) else type_
    align = {"half": 2, "float": 4, "double": 8}.get(str(element)) or element.width // 8
    b = code.b
    value = b.load(b.gep(source.value, [code.value(here)], inbounds=True, source_etype=element), typ=type_, align=align)
    b.store(value, b.gep(target.value, [code.value(there)], inbounds=True, source_etype=element), align=align)


_MOVES = frozenset({Op.BROADCAST, Op.IOTA, Op.CONSTANT})


def _varying(view: View, root: Instruction) -> set[int]:
    """The dimensions of an array along which its elements may differ."""
    found: set[int] = set()
    for access in values_of(view, [root], _FOLLOWED):
        i, live = access.value, set(live_dimensions(access.value.shape))
        if i.opcode is Op.IOTA:
            live &= {i.attributes["iota_dimension"]}
        if i in view.leaves or not (i.opcode in _FOLLOWED or (i.opcode is Op.CONSTANT and is_splat(i.literal))):
            found.update(access.roles[d] for d in live)
    return found


_FOLLOWED = EMIT.keys() | {Op.BROADCAST}


@form(
    "repeated/rows",
    lambda e, results, given, steps: given.emit(e, results.first, steps),
    MINIMUM_BYTES="bytes of the result",
    MAXIMUM_MOVED_BYTES="bytes of a row that is only moved",
    MAXIMUM_BLOCK_BYTES="bytes of a row",
)
def rows(task: Task) -> Fit:
    """Rows that are all alike: computed once, and copied as whole vectors."""
    needs(task.results.alone, f"{len(task.results.leaves)} results")
    return Fit(RepeatedRows.of(task.view, task.results.first), in_whole_rows(task))
