"""The items of a device that compute a step of a kernel together: their numbers, and the memory that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlir import ir

from ...codegen.options import ACROSS, BARRIER, DOWN, GROUP_SPACE, STEP, GroupShape
from ..core.builder import Builder, Value
from ..core.elements import Scalar, flatten
from ..core.memory import bytes_of
from ..core.slots import Slots

ALIGNMENT_BYTES = 64
"""Bytes to which arrays in a group's memory are aligned."""


def parameter_types(b: Builder, shape: GroupShape) -> list[ir.Type]:
    """Of a kernel that groups compute, behind its buffers: the group's memory."""
    return [_memory(b, shape.memory, b.types.i8)]


def _memory(b: Builder, count: int, element: ir.Type) -> ir.Type:
    return ir.MemRefType.get([count], element, memory_space=ir.IntegerAttr.get(b.types.i64, GROUP_SPACE))


class Group:
    """The group that runs the function under construction. used: bytes of its memory that are taken.

    step, across, down: the step's number and the item's, until the next barrier.
    """

    def __init__(self, b: Builder, shape: GroupShape, parameters: Sequence[Value]):
        self.b, self.shape, self.used = b, shape, 0
        (self._bytes,) = parameters
        self.renew()

    def _number(self, name: str) -> Value:
        i64 = self.b.types.i64
        return self.b.call(self.b.external(name, [], i64), i64, [])

    def renew(self) -> None:
        """Ask for the numbers again: at the beginning of a loop with barriers, and behind it."""
        self.step, self.across, self.down = (self._number(name) for name in (STEP, ACROSS, DOWN))

    def barrier(self) -> None:
        """Wait until all items of the group have come here. Every item must come here as often as the others."""
        b = self.b
        b.operation("func.call", [], [], {"callee": ir.FlatSymbolRefAttr.get(b.external(BARRIER, [], None))})
        self.renew()

    @contextmanager
    def only(self, condition: Value) -> Iterator[None]:
        """What is built inside runs in the items for which a condition holds."""
        branch = self.b.branch(condition, [])
        with branch.side(0):
            yield
        with branch.side(1):
            pass

    def take(self, type: ir.Type, count: int) -> Value:
        """Memory for `count` scalars that the items share; truth values are bytes there."""
        b = self.b
        element = b.types.i8 if type == b.types.i1 else type
        place, self.used = self.used, self.used + -(-bytes_of(element) * count // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        assert self.used <= self.shape.memory, "kernels that need more have no form for groups"
        return b.at_entry("memref.view", _memory(b, count, element), [self._bytes, b.at(place)])

    def slots(self, types: Sequence[ir.Type], count: int) -> Slots:
        """Memory for `count` values of parts of these types."""
        return Slots(self.b, types, [self.take(type, count) for type in types])


def types_of(value: Scalar) -> list[ir.Type]:
    """The types of the parts of a value."""
    return [part.type for part in flatten(value)]
