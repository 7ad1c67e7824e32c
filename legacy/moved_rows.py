"""Rows of a large result that are parts of rows of a large array: whole lines of the cache go past it. Both arrays
together fill the last cache, where a line would be read to be written over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from .builder import IndexValue, Unroll
from .elemental import Elemental, Index
from .leaf import Leaf
from .memory import LINE, address
from .registers import I32, memory_type

LARGEST_KEPT = 16 << 20
"""Bytes of a result up to which it is written through the caches."""

MANY = 4 << 20
"""Bytes of an array from which on reading it, too, takes room in them."""

TOGETHER = 4
"""Lines of an iteration."""

SHORTEST = 16
"""Lines of a row, at least."""

Follow = Callable[[Instruction, Sequence[int]], tuple[Instruction, list[int]] | None]
"""The operand from which an op that moves elements takes the one at a position, and the position there."""


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Writes a result. follow: of ops that keep neighbours neighbours."""

    e: Elemental
    leaf: Leaf
    follow: Follow

    def write(self, positions: Sequence[IndexValue], fast: int, region: Sequence[tuple[int, int]]) -> int:
        """Write the whole lines of the rows of a region, at these positions along other dimensions. Returns how many
        elements of a row they are: none, if its elements are computed, or lie otherwise.
        """
        code, shape, (low, high) = self.e.code, self.leaf.shape, region[fast]
        count = LINE // shape.dtype.bytes
        whole = (high - low) // count * count
        strides = [s for d, s in enumerate(shape.strides) if d != fast and shape.dims[d] != 1]
        lines = low % count == 0 and all(s % count == 0 for s in strides)
        aligned = self.leaf.alignment % LINE == 0
        if shape.dtype.is_complex or shape.bytes < LARGEST_KEPT or whole < SHORTEST * count or not (lines and aligned):
            return 0
        corner = [bounds[0] for bounds in region]
        found = self._source(corner)
        if found is None:
            return 0
        leaf, there = found
        if leaf.shape.strides[fast] != 1 or leaf.shape.bytes < MANY:
            return 0
        many = whole - whole % (TOGETHER * count)
        for first, end, step in ((low, low + many, TOGETHER * count), (low + many, low + whole, count)):
            if first == end:
                continue
            loop = code.loop(end - first, start=first, step=step, unroll=Unroll.NEVER)
            for k in range(0, step, count):
                here = [code.add(loop.index, k) if d == fast else p for d, p in enumerate(positions)]
                moved = [code.add(p, t - c) for p, t, c in zip(here, there, corner, strict=True)]
                self._line(leaf, moved, here, count)
            loop.close()
        return whole

    def _line(self, leaf: Instruction, moved: Sequence[IndexValue], here: Sequence[IndexValue], count: int) -> None:
        """Move a line: `count` elements from a position of a leaf to one of the result."""
        code, shape, dtype = self.e.code, self.leaf.shape, self.leaf.shape.dtype
        offset = code.value(Index.at(code, leaf.shape, moved).offset(leaf.shape))
        source = address(code, self.e.leaves[leaf], dtype, offset)
        line = code.b.load(source, typ=ir.VectorType(memory_type(dtype), count), align=dtype.bytes)
        target = address(code, self.leaf.pointer(self.e), dtype, code.weighted_sum(here, shape.strides))
        code.b.store(line, target, align=LINE).set_metadata("nontemporal", code.module.add_metadata([I32(1)]))

    def _source(self, at: Sequence[int]) -> tuple[Instruction, list[int]] | None:
        """The array in memory that holds the element at a position, and where."""
        found: tuple[Instruction, list[int]] | None = self.leaf.instruction, list(at)
        while found is not None and found[0] not in self.e.leaves:
            found = self.follow(*found)
        if found is None or found[0].opcode is Op.CONSTANT or found[0].shape.dtype is not self.leaf.shape.dtype:
            return None
        return found
