"""Memory of a sort's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer
from ..core.elements import Scalar
from ..core.graph import Buffer
from ..loops.elemental import load_element, store_element


@dataclass(frozen=True, slots=True)
class Lane:
    """The memory of one operand's row: an address, the offset of the first element there, the stride in elements."""

    base: Pointer
    offset: Index
    stride: int
    buffer: Buffer

    def place(self, b: Builder, position: Index) -> Index:
        return b.add(self.offset, b.mul(position, self.stride))

    def read(self, b: Builder, position: Index) -> Scalar:
        return load_element(b, self.base, self.buffer.dtype, self.place(b, position))

    def write(self, b: Builder, position: Index, value: Scalar) -> None:
        store_element(b, self.base, self.buffer.dtype, self.place(b, position), value)


Source: TypeAlias = Callable[[Index], Sequence[Scalar]]
"""The raw elements of all operands at a position of a row."""


def read_all(b: Builder, lanes: Sequence[Lane], position: Index) -> list[Scalar]:
    return [lane.read(b, position) for lane in lanes]
