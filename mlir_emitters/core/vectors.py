"""Vectors of a few lanes in registers: what shuffles, splits and joins them."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from .arithmetic import Value
from .memory import Memory


class Vectors(Memory):
    """Creates operations on vectors."""

    def vector(self, lanes: int, element: ir.Type) -> ir.VectorType:
        return ir.VectorType.get([lanes], element)

    def lane(self, vector: Value, number: int) -> Value:
        """A scalar: the lane with this number."""
        at = {"static_position": ir.DenseI64ArrayAttr.get([number])}
        return self.op("vector.extract", vector, type=ir.VectorType(vector.type).element_type, attributes=at)

    def filled(self, number: float | int, type: ir.VectorType) -> Value:
        """A vector whose lanes are all this number."""
        element = type.element_type
        number = float(number) if self.is_float(element) else int(number)
        return self.op("vector.broadcast", self.constant(number, element), type=type)

    def shuffled(self, lanes: Sequence[int], first: Value, second: Value | None = None) -> Value:
        """A vector of these lanes of `first`, or, numbered behind them, of `second`."""
        type = ir.VectorType.get([len(lanes)], ir.VectorType(first.type).element_type)
        mask = {"mask": ir.DenseI64ArrayAttr.get(list(lanes))}
        return self.op("vector.shuffle", first, first if second is None else second, type=type, attributes=mask)

    def halves(self, vector: Value) -> tuple[Value, Value]:
        """The lower lanes and the upper ones."""
        half = ir.VectorType(vector.type).shape[0] // 2
        return self.shuffled(range(half), vector), self.shuffled(range(half, 2 * half), vector)

    def joined(self, vectors: Sequence[Value]) -> Value:
        """One vector of several, by halves."""
        if len(vectors) == 1:
            return vectors[0]
        half = len(vectors) // 2
        low, high = self.joined(vectors[:half]), self.joined(vectors[half:])
        return self.shuffled(range(2 * ir.VectorType(low.type).shape[0]), low, high)
