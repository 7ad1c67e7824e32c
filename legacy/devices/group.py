"""The items of a device that compute a step of a kernel together: their numbers, and the memory that they share."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...codegen.options import ACROSS, BARRIER, DOWN, GROUP_SPACE, STEP, GroupShape
from ...hlo.records import dataclass
from ..core.builder import Code
from ..core.registers import BOOL, I8, I64, Register, flatten, unflatten
from ..core.stack import StackArray

SHARED = ir.PointerType(addrspace=GROUP_SPACE)
PARAMETERS: Sequence[ir.Type] = (SHARED,)
"""Of a kernel that groups compute, behind its buffers: the group's memory."""

ALIGNMENT_BYTES = 64
"""Bytes to which arrays in a group's memory are aligned."""


@dataclass(eq=False)
class Group:
    """The group that runs the function under construction. used: bytes of its memory that are taken.

    step, across, down: the step's number and the item's, until the next barrier.
    """

    code: Code
    shape: GroupShape
    used: int = 0

    def __post_init__(self) -> None:
        self._memory = self.code.function.args[-1]
        self.renew()

    def _call(self, name: str, type_: ir.Type) -> ir.Value:
        code, module = self.code, self.code.module
        function = module.globals.get(name) or ir.Function(module, ir.FunctionType(type_, []), name)
        value = code.b.call(function, [])
        code.define(value, code.scope)
        return value

    def renew(self) -> None:
        """Ask for the numbers again: at the beginning of a loop with barriers, and behind it."""
        self.step, self.across, self.down = (self._call(name, I64) for name in (STEP, ACROSS, DOWN))

    def barrier(self) -> None:
        """Wait until all items of the group have come here. Every item must come here as often as the others."""
        self._call(BARRIER, ir.VoidType())
        self.renew()

    def take(self, bytes: int) -> ir.Value:
        """The address of memory that the items share."""
        place, self.used = self.used, self.used + -(-bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        assert self.used <= self.shape.memory, "kernels that need more have no form for groups"
        with self.code.root.builder.goto_entry_block():
            return self.code.root.builder.gep(self._memory, [I64(place)], inbounds=True, source_etype=I8)


class SharedArray(StackArray):
    """`count` values of the form of `like` in the memory of a group; truth values are bytes there."""

    def __init__(self, group: Group, like: Register, count: int):
        self.code, self.like = group.code, like
        self._registers = [register.type for register in flatten(like)]
        self.types = [I8 if type_ == BOOL else type_ for type_ in self._registers]
        self.spaces = [group.take(size_of(type_) * count) for type_ in self.types]

    def read(self, position: int | ir.Value) -> Register:
        b, found = self.code.b, []
        for k, (type_, register) in enumerate(zip(self.types, self._registers, strict=True)):
            value = b.load(self._slot(k, position), typ=type_)
            found.append(value if register == type_ else b.trunc(value, register))
        return unflatten(self.like, found)

    def write(self, position: int | ir.Value, value: Register) -> None:
        b = self.code.b
        for k, (type_, register) in enumerate(zip(self.types, flatten(value), strict=True)):
            b.store(register if register.type == type_ else b.zext(register, type_), self._slot(k, position))


def size_of(type_: ir.Type) -> int:
    """Bytes of a register's type in memory."""
    floats = {ir.HalfType: 2, ir.FloatType: 4, ir.DoubleType: 8}
    return floats.get(type(type_)) or -(-type_.width // 8)
