"""Maxima, minima, and, or along memory whose last elements fill no vector: these are taken with some before them, which
count twice. As a loop of their own they are scalars, which take longer than all vectors of a short row.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from ...hlo.ir import Instruction
from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ..core.builder import Code, Unroll
from ..core.registers import Register
from ..core.view import View
from ..loops.along import Along, Reduced
from ..loops.elemental import Index
from ..loops.linear import is_linear
from ..numerics.narrow import NARROW

IDEMPOTENT = frozenset({Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR})

FEWEST = 16
"""Minimum elements of a row for which LLVM makes vectors of it."""

PIECE = 64
"""Bytes that a piece has at most, as values that are compared."""

TOGETHER = 16
"""Pieces in one turn of a loop. A row of more has a loop of whole pieces, and a second one for the last."""

CHEAP = 4
"""Operations of an element at most: each piece has code of its own."""


class Chain(Protocol):
    """What is carried along the elements of its only operand."""

    @property
    def code(self) -> Code: ...

    @property
    def operands(self) -> Sequence[Instruction]: ...

    def combine(self, accumulators: Sequence[Register], values: Sequence[Register], /) -> list[Register]: ...

    def merge(self, first: Sequence[Register], second: Sequence[Register], /) -> list[Register]: ...


def piece_of(view: View, operand: Instruction, op: Op, along: Reduced) -> int | None:
    """Elements of a piece of a row, if a reduction by `op` should be in pieces."""
    size, dtype = along.sizes[-1] if along.dense else 0, operand.shape.dtype
    if size < FEWEST or op not in IDEMPOTENT or dtype.is_complex or view.by_element or not _is_cheap(view, operand):
        return None
    piece = min(PIECE // (4 if dtype in NARROW else dtype.bytes), 1 << (size.bit_length() - 1))
    joined = len(along.sizes) < len(along.order) and not dtype.is_float
    return piece if size % piece or len(along.sizes) > 1 or joined else None


def _is_cheap(view: View, operand: Instruction) -> bool:
    """Whether an element takes few operations on what is in memory in the same order."""
    if not is_linear(operand, view.leaves):
        return False
    found = {operand}
    for instruction in (waiting := [operand]):
        if instruction not in view.leaves:
            new = {x for x in instruction.operands if x.shape.size != 1} - found
            found |= new
            waiting.extend(new)
    made = [x for x in waiting if x not in view.leaves]
    return len(made) <= CHEAP and not any(x.opcode in EXPENSIVE for x in made)


def reduce_overlapping(
    chain: Chain, accumulators: list[Register], along: Along, piece: int
) -> Generator[tuple[Instruction, Index], Register, list[Register]]:
    """The accumulators after all elements, of which the last dimension is in pieces. Each row begins with the first
    accumulators, so that it waits for no other.
    """
    code, (*outer, size) = chain.code, along.sizes
    first, loops = accumulators, []
    for length in outer:
        loops.append(code.loop(length, carried=accumulators, unroll=Unroll.SHORT))
        accumulators = list(loops[-1].carried)
    prefix = [loop.index for loop in loops]
    found = first
    for count, starts in _loops(size, piece):
        row = code.loop(count, carried=found, unroll=Unroll.VECTORS if count == piece else Unroll.FREELY)
        found = list(row.carried)
        for start in starts:
            value = yield chain.operands[0], along.place([*prefix, code.add(row.index, start)])
            found = chain.combine(found, [value])
        found = list(row.close(found))
    if loops:
        found = chain.merge(accumulators, found)
    for loop in reversed(loops):
        found = list(loop.close(found))
    return found


def _loops(size: int, piece: int) -> list[tuple[int, list[int]]]:
    """Loops over a row: (iterations, starts of what an iteration takes)."""
    whole = size - size % piece
    if whole // piece <= TOGETHER:
        return [(piece, [*range(0, size - piece, piece), size - piece])]
    return [(whole, [0]), *([(piece, [size - piece])] if whole < size else [])]
