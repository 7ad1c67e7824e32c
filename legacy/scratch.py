"""Scratch memory of a kernel: what its request offers, or a few KiB of its own stack."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from ..planning.plan import KernelRequest
from ..planning.scratch import ON_STACK
from .builder import Code
from .registers import I8
from .stack import alloca


@dataclass(frozen=True, slots=True)
class Scratch:
    """`size` bytes at most, in the argument if there is one, else on the stack."""

    argument: ir.Value | None
    size: int

    @staticmethod
    def of(request: KernelRequest, function: ir.Function) -> Scratch:
        if request.scratch < 0:
            return Scratch(None, ON_STACK)
        return Scratch(function.args[request.scratch], request.scratch_bytes)

    def take(self, code: Code, size: int) -> ir.Value:
        """The address of `size` bytes, 64-byte aligned. The argument's are the same for all who take some."""
        if size > self.size:
            raise AssertionError(f"a kernel takes {size} bytes of scratch memory, the Plan bounds it by {self.size}")
        return self.argument if self.argument is not None else alloca(code, I8, size)
