"""Where things lie in the memory of a call site, and in the block that a call may copy from it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from .abi import Buffer, CallFrame

INVOKE, HANDLER, IDENTITY, STATE, STATE_TYPE, OPAQUE, OPAQUE_SIZE, OWNER = range(0, 64, 8)
"""Offsets of words of a call site: the function that calls the handler, the handler, the number of the site, its state
and the type of that, the bytes that older versions get, and which thread uses the block of the site itself: its thread
pointer, 1 more while it is in a call; 0 before the first; ON_DEVICE if no thread does.
"""

ON_DEVICE = -1
"""As the owner: the handler is a device's, and each call has a block of its own."""

FRAME = 64
"""The offset of the block, behind those words."""

_WORD = 8


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """Offsets in a block: a call frame, pointers to the buffers of operands and of results, the buffers."""

    operands: int
    results: int

    @property
    def args(self) -> int:
        return ctypes.sizeof(CallFrame)

    @property
    def rets(self) -> int:
        return self.args + _WORD * self.operands

    def buffer(self, number: int) -> int:
        """The buffer of an operand, or of a result: these follow the operands."""
        return self.rets + _WORD * self.results + ctypes.sizeof(Buffer) * number

    @property
    def buffers(self) -> int:
        return self.operands + self.results

    @property
    def size(self) -> int:
        return self.buffer(self.buffers)

    @property
    def places(self) -> dict[int, int]:
        """Offset of a pointer within the block → the offset that it points to."""
        args, rets = CallFrame.args.offset + _ARGS, CallFrame.rets.offset + _ARGS
        numbers = range(self.buffers)
        return {args: self.args, rets: self.rets} | {self.args + _WORD * n: self.buffer(n) for n in numbers}


_ARGS = 32
"""Offset of the pointers in XLA_FFI_Args and XLA_FFI_Rets."""
