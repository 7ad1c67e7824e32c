"""Arrays of neighbours' values: on the stack, or in memory that items of a device share."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from .builder import Builder, Index, Value
from .memory import bytes_of


class Slots:
    """At each place, one element for each of some values of these types. alignment: of an access, in bytes; None: as
    large as an element.
    """

    def __init__(self, b: Builder, types: Sequence[ir.Type], arrays: Sequence[Value], alignment: int | None = None):
        self.b, self.types, self.arrays, self.alignment = b, types, arrays, alignment

    @staticmethod
    def for_values(b: Builder, values: Sequence[Value], count: int, alignment: int | None = None) -> Slots:
        """`count` places on the stack for such values."""
        types = [value.type for value in values]
        return Slots(b, types, [b.alloca(type, count, 64) for type in types], alignment)

    def read(self, at: Index) -> list[Value]:
        b, arrays = self.b, zip(self.arrays, self.types, strict=True)
        return [b.load(b.pointer(x, at, type), type, self.alignment or bytes_of(type)) for x, type in arrays]

    def write(self, at: Index, values: Sequence[Value]) -> None:
        b = self.b
        for array, type, value in zip(self.arrays, self.types, values, strict=True):
            b.store(value, b.pointer(array, at, type), self.alignment or bytes_of(type))
