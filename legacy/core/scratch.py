"""Scratch memory of a kernel: the argument that its request provides, or a few KiB of its stack."""

from __future__ import annotations

from llvmlite import ir

from ...hlo.records import dataclass
from ...planning.plan import KernelRequest
from ...planning.scratch import ON_STACK
from .builder import Code
from .registers import I8
from .stack import alloca


@dataclass(frozen=True, slots=True)
class Scratch:
    """At most `size` bytes, in the argument if there is one, otherwise on the stack."""

    argument: ir.Value | None
    size: int

    @staticmethod
    def of(request: KernelRequest, function: ir.Function) -> Scratch:
        if request.scratch < 0:
            return Scratch(None, ON_STACK)
        return Scratch(function.args[request.scratch], request.scratch_bytes)

    def take(self, code: Code, size: int) -> ir.Value:
        """The address of `size` bytes, aligned to 64 bytes. With an argument, all calls return the same memory.

        On devices what fits is on the stack all the same: there neighbouring items' stacks share cache lines.
        """
        if size > self.size:
            raise AssertionError(f"a kernel takes {size} bytes of scratch memory, the Plan bounds it by {self.size}")
        if self.argument is None or (code.view.by_element and size <= ON_STACK):
            return alloca(code, I8, size)
        return self.argument
