"""Kernels of devices whose operands lie across their results: a group of items takes a square of both.

It reads the operands along their memory and writes the results along theirs. Between, operands are in its own memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from llvmlite import ir

from ...codegen.options import GroupShape
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.builder import IndexValue
from ..core.registers import I64
from ..loops.access import Access
from ..loops.elemental import Elemental, Index
from ..loops.form import Fit, Task, at_least, form, known, needs
from ..loops.leaf import is_whole
from ..loops.tiles import tile_of
from ..movement.update import is_update
from ..reductions.results import finishes, products_of_all
from .group import ALIGNMENT_BYTES, Group, SharedArray


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares of a shape. across, fast: their dimensions; side: their size along each; leaves: what is read across."""

    shape: Shape
    across: int
    fast: int
    side: int
    leaves: tuple[Access, ...]

    @property
    def outer(self) -> list[int]:
        """The dimensions that a square has one position of, the slowest first."""
        return [d for d in reversed(self.shape.minor_to_major) if d not in (self.across, self.fast)]

    @property
    def counts(self) -> list[int]:
        """Of positions along these, and of squares along the two dimensions."""
        dims = self.shape.dims
        return [dims[d] for d in self.outer] + [-(-dims[d] // self.side) for d in (self.across, self.fast)]

    def grouped(self, group: GroupShape) -> tuple[int, int, int]:
        return math.prod(self.counts), group.across, group.down


class SquareKernel:
    """The square that is a group's step."""

    def __init__(self, e: Elemental, squares: Squares, group: Group):
        self.e, self.code, self.squares, self.group = e, e.code, squares, group
        self.line = squares.side + 1  # lines that follow each other begin in different banks of the memory

    def emit(self, finish: Callable[[Index], None]) -> None:
        """Emit `finish(index)` for each element, what is read across it bound there."""
        code, squares = self.code, self.squares
        copies: list[tuple[Access, SharedArray]] = []
        for crossing in squares.leaves:
            copy = self._copied(crossing)
            if copy is not None:
                copies.append((crossing, copy))
        if copies:
            self.group.barrier()
        for y, x, positions in self._elements(squares.across, squares.fast):
            place = code.add(code.multiply(x, self.line), y)
            for crossing, array in copies:
                self.e.bind(crossing.value, self._index(crossing, positions), array.read(code.value(place)))
            finish(Index.at(code, squares.shape, positions))

    def _copied(self, crossing: Access) -> SharedArray | None:
        """An operand's part of the square in the group's memory; None if there is no room."""
        code, leaf, count = self.code, crossing.value, self.squares.side * self.line
        if self.group.used + count * leaf.shape.dtype.bytes + ALIGNMENT_BYTES > self.group.shape.memory:
            return None
        array: SharedArray | None = None
        for x, y, positions in self._elements(self.squares.fast, self.squares.across):
            value = self.e.value(leaf, self._index(crossing, positions))
            array = array or SharedArray(self.group, value, count)
            array.write(code.value(code.add(code.multiply(x, self.line), y)), value)
        return array

    def _index(self, crossing: Access, positions: Sequence[IndexValue]) -> Index:
        return Index.at(self.code, crossing.value.shape, [positions[role] for role in crossing.roles])

    def _elements(self, down: int, across: int) -> Iterator[tuple[IndexValue, IndexValue, list[IndexValue]]]:
        """(Its place in the square, down and across, its positions) of each of an item's elements; neighbouring items
        are neighbours across. Code of elements outside of the shape is skipped.
        """
        code, group, squares = self.code, self.group, self.squares
        counts = squares.counts
        *outer, first, second = code.split(group.step, counts)
        positions: list[IndexValue] = [0] * squares.shape.rank
        for d, place in zip(squares.outer, outer, strict=True):
            positions[d] = place
        starts = {squares.across: code.multiply(first, squares.side), squares.fast: code.multiply(second, squares.side)}
        for slow in range(0, squares.side, group.shape.down):
            for quick in range(0, squares.side, group.shape.across):
                y, x = code.add(group.down, slow), code.add(group.across, quick)
                positions[down], positions[across] = code.add(starts[down], y), code.add(starts[across], x)
                tests = [self._below(positions[d], squares.shape.dims[d]) for d in (squares.across, squares.fast)]
                cut = [test for test in tests if test is not None]
                with code.when(code.all_of(cut)):
                    yield y, x, list(positions)

    def _below(self, position: IndexValue, size: int) -> ir.Value | None:
        """Whether a position is one of the shape; None if it always is."""
        if size % self.squares.side == 0:
            return None
        return self.code.b.icmp_unsigned("<", self.code.value(position), I64(size))


@form("groups/squares", lambda e, results, given, group: SquareKernel(e, given, group).emit(finishes(e, results)))
def squares(task: Task) -> Fit:
    """Arrays read across the order of memory: a group takes a square of operands and results."""
    view, roots, group = task.view, task.results.roots, task.group
    assert group is not None
    products_of_all(task, None)
    for root in roots:
        own = is_update(root) or (is_whole(root) and root not in view.leaves)
        needs(not own, f"{root.name} is written by loops of its own")
    shape, side = roots[0].shape, group.across * group.columns
    across, fast, crossings = known(tile_of(view, roots, shape), "nothing large is read across")
    needs(side % group.across == side % group.down == 0, f"squares of {side} are not for all items")
    for d in (across, fast):
        at_least(shape.dims[d], group.across, "elements of a side")
    leaves = {(c.value, c.roles): c for c in crossings if c.exact and c.across == across and fast in c.roles}
    return Fit(Squares(shape, across, fast, side, tuple(leaves.values())))
