"""Scratch memory of a kernel: the argument that its request provides, or the stack."""

from __future__ import annotations

from ...hlo.records import dataclass
from ...planning.allocation import POOL_ALIGNMENT
from ...planning.scratch import ON_STACK
from ..core.builder import Builder, Value


@dataclass(frozen=True, slots=True)
class Scratch:
    """argument: the argument with `size` bytes of scratch memory; None for the stack."""

    argument: Value | None = None
    size: int = ON_STACK

    def take(self, b: Builder, size: int) -> Value:
        """A pointer to `size` bytes. With an argument, all calls return the same memory, but for little of a device's
        item: the stacks of neighbouring items share cache lines.
        """
        if size > self.size:
            raise AssertionError(f"a kernel takes {size} bytes of scratch memory, the Plan bounds it by {self.size}")
        stack = self.argument is None or (b.by_element and size <= ON_STACK)
        return b.alloca(b.types.i8, size, POOL_ALIGNMENT) if stack else self.argument
