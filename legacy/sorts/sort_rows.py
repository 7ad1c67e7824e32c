"""Rows of a sort's operands in memory."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue
from ..core.registers import Register
from ..loops.memory import Pointer, load, store


@dataclass(frozen=True, slots=True)
class OperandRow:
    """One operand's row in one memory: the address of its first element, and the stride in elements."""

    start: ir.Value
    stride: int
    shape: Shape

    def read(self, code: Code, position: IndexValue) -> Register:
        return load(code, Pointer(self.start), self.shape.dtype, code.multiply(position, self.stride))

    def write(self, code: Code, position: IndexValue, value: Register) -> None:
        store(code, Pointer(self.start), self.shape.dtype, code.multiply(position, self.stride), value)


OperandRows = Sequence[OperandRow]
"""One row per operand, all of one length."""


@dataclass(frozen=True, slots=True)
class Target:
    """The destination and layout of a sorted operand: the whole of each row, or the part from element `start` on."""

    pointer: Pointer
    shape: Shape
    start: int


def at_starts(rows: OperandRows, starts: Sequence[Register]) -> list[OperandRow]:
    """Rows like these in other memory."""
    found = []
    for row, start in zip(rows, starts, strict=True):
        found.append(OperandRow(start, row.stride, row.shape))
    return found
