"""Where a kernel keeps what it needs while it runs: in the argument that its request offers for it, or on the stack."""

from __future__ import annotations

from dataclasses import dataclass

from ..planning.plan import POOL_ALIGNMENT
from ..planning.scratch import ON_STACK
from .builder import Builder, Value


@dataclass(frozen=True, slots=True)
class Scratch:
    """argument: the one that is offered, of `size` bytes; without one, the stack."""

    argument: Value | None = None
    size: int = ON_STACK

    def take(self, b: Builder, size: int) -> Value:
        """A pointer to `size` bytes. In the argument, it is its first byte every time."""
        if size > self.size:
            raise AssertionError(f"a kernel takes {size} bytes of scratch memory, the Plan bounds it by {self.size}")
        return b.alloca(b.types.i8, size, POOL_ALIGNMENT) if self.argument is None else self.argument
