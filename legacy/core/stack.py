"""Memory of a kernel: small arrays on the stack for values that it keeps between two loops, and its scratch memory."""

from __future__ import annotations

from llvmlite import ir

from ...hlo.records import dataclass
from ...planning.plan import KernelRequest
from ...planning.scratch import ON_STACK
from .builder import Code, IndexValue
from .registers import BOOL, I8, POINTER, Register, flatten, unflatten

ALIGNMENT = 64
"""In bytes, of arrays on the stack."""


def alloca(code: Code, type_: ir.Type, count: int) -> ir.Value:
    """Stack memory for `count` elements, aligned to ALIGNMENT, as an opaque pointer."""
    builder = code.root.builder
    with builder.goto_entry_block():
        space = builder.alloca(ir.ArrayType(type_, count))
    space.align, space.type = ALIGNMENT, POINTER
    return space


class StackArray:
    """`count` values of the form of `like`; each of its registers has an array of its own. A pred is a byte there: LLVM
    makes no vectors of bits in memory.
    """

    def __init__(self, code: Code, like: Register, count: int):
        self.code, self.like = code, like
        self.types = [I8 if register.type == BOOL else register.type for register in flatten(like)]
        self.spaces = [alloca(code, type_, count) for type_ in self.types]

    def read(self, position: IndexValue) -> Register:
        b = self.code.b
        found = [b.load(self._slot(k, position), typ=type_) for k, type_ in enumerate(self.types)]
        registers = zip(found, flatten(self.like), strict=True)
        return unflatten(self.like, [b.icmp_unsigned("!=", x, I8(0)) if y.type == BOOL else x for x, y in registers])

    def write(self, position: IndexValue, value: Register) -> None:
        for k, register in enumerate(flatten(value)):
            stored = self.code.b.zext(register, I8) if register.type == BOOL else register
            self.code.b.store(stored, self._slot(k, position))

    def fill(self, count: int, value: Register, start: int = 0) -> None:
        with self.code.loop(count) as i:
            self.write(self.code.add(i, start), value)

    def _slot(self, k: int, position: IndexValue) -> ir.Value:
        return self.code.b.gep(self.spaces[k], [self.code.value(position)], inbounds=True, source_etype=self.types[k])


@dataclass(frozen=True, slots=True)
class Scratch:
    """Scratch memory of a kernel: at most `size` bytes, in the argument that its request provides, or a few KiB of its
    stack.
    """

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
