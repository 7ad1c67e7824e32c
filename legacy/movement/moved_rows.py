"""Rows of a large result that are parts of rows of a large array: whole lines of the cache go past it. Both arrays
together fill the last cache, where a line would be read to be written over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import IndexValue, Unroll
from ..core.registers import I32, memory_type
from ..core.view import View
from ..loops.elemental import Elemental, Index
from ..loops.leaf import Leaf
from ..loops.memory import address

TOGETHER = 4
"""Lines of an iteration."""

SHORTEST = 16
"""Lines of a row, at least."""

Follow = Callable[[Instruction, Sequence[int]], tuple[Instruction, list[int]] | None]
"""The operand from which an op that moves elements takes the one at a position, and the position there."""


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Whole lines of the rows of a region. source: the array in memory; there: where the region's first element lies in
    it; corner: where in the result. count: elements of a line; whole: of a row's lines.
    """

    source: Instruction
    there: tuple[int, ...]
    corner: tuple[int, ...]
    count: int
    whole: int

    @staticmethod
    def of(view: View, leaf: Leaf, region: Sequence[tuple[int, int]], follow: Follow) -> MovedRows | None:
        """None if elements of the region are computed, or lie otherwise, or are few. follow: of ops that keep
        neighbours neighbours.
        """
        shape, fast = leaf.shape, leaf.shape.minor_to_major[0]
        line, cache = view.processor.line_bytes, view.processor.last_cache_bytes
        (low, high), count = region[fast], line // shape.dtype.bytes
        whole = (high - low) // count * count
        strides = [s for d, s in enumerate(shape.strides) if d != fast and shape.dims[d] != 1]
        lines = low % count == 0 and all(s % count == 0 for s in strides) and leaf.alignment % line == 0
        if shape.dtype.is_complex or shape.bytes < cache or whole < SHORTEST * count or not lines:
            return None
        corner = tuple(bounds[0] for bounds in region)
        found: tuple[Instruction, list[int]] | None = leaf.instruction, list(corner)
        while found is not None and found[0] not in view.leaves:
            found = follow(*found)
        if found is None or found[0].opcode is Op.CONSTANT or found[0].shape.dtype is not shape.dtype:
            return None
        source, there = found
        large = source.shape.strides[fast] == 1 and source.shape.bytes >= cache // 4  # reading it takes room there, too
        return MovedRows(source, tuple(there), corner, count, whole) if large else None

    def write(self, e: Elemental, leaf: Leaf, positions: Sequence[IndexValue]) -> None:
        """Write them, at these positions along other dimensions."""
        code, count, fast = e.code, self.count, leaf.shape.minor_to_major[0]
        low, many = self.corner[fast], self.whole - self.whole % (TOGETHER * count)
        for first, end, step in ((low, low + many, TOGETHER * count), (low + many, low + self.whole, count)):
            if first == end:
                continue
            with code.loop(end - first, start=first, step=step, unroll=Unroll.NEVER) as i:
                for k in range(0, step, count):
                    here = [code.add(i, k) if d == fast else p for d, p in enumerate(positions)]
                    moved = [code.add(p, t - c) for p, t, c in zip(here, self.there, self.corner, strict=True)]
                    self._line(e, leaf, moved, here)

    def _line(self, e: Elemental, leaf: Leaf, moved: Sequence[IndexValue], here: Sequence[IndexValue]) -> None:
        """Move a line from a position of the source to one of the result."""
        code, shape, dtype, count = e.code, leaf.shape, leaf.shape.dtype, self.count
        offset = code.value(Index.at(code, self.source.shape, moved).offset(self.source.shape))
        source = address(code, e.leaves[self.source], dtype, offset)
        line = code.b.load(source, typ=ir.VectorType(memory_type(dtype), count), align=dtype.bytes)
        target = address(code, leaf.pointer(e), dtype, code.weighted_sum(here, shape.strides))
        code.b.store(line, target, align=count * dtype.bytes).set_metadata(
            "nontemporal", code.module.add_metadata([I32(1)])
        )
