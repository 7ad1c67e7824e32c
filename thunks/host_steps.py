"""The steps of a host program that run straight on, as lines of MLIR: kernels, copies, events, checks, meetings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..planning.allocation import BufferSlice
from .checks import CALLS, Argument, call_of
from .events import mark_of
from .host_lines import Lines
from .host_locals import Local
from .host_parts import CHUNK, symbol_name
from .kinds import (
    Check,
    CollectiveDoneThunk,
    CollectiveStartThunk,
    CopyThunk,
    DeviceIdThunk,
    InfeedThunk,
    KernelThunk,
    Meeting,
    OutfeedThunk,
    ProfileThunk,
    Split,
    Thunk,
    slice_of,
)

STOP, POSITION, EVENTS, PARALLEL_FOR, LEFT = range(5)
"""Indices of control words."""

DEVICE_WORDS = 3
"""Words behind the loops of a program that depends on its device."""

PROFILE = "testbed_profile"
"""The function that notes an event (events.py)."""


@dataclass(eq=False, kw_only=True)
class Steps(Lines):
    """device: the first of the DEVICE_WORDS. meetings: their numbers. symbols, split: the functions that are called,
    whole or in chunks, and their numbers of arguments. frame: the most arguments of a split kernel. locals: the
    variables of the loops around this point.
    """

    device: int
    meetings: Mapping[Thunk, int]
    symbols: dict[str, int] = field(default_factory=dict)
    split: dict[str, tuple[int, Split]] = field(default_factory=dict)
    frame: int = 0
    locals: list[Local] = field(default_factory=list)

    def place(self, part: BufferSlice) -> str:
        for local in self.locals:
            if local.holds(part):
                return self.pointer(local.name, local.lead + part.offset - local.part.offset)
        return self.memory(part)

    def memory(self, part: BufferSlice) -> str:
        """The address of memory itself, also while a variable stands for it."""
        return self.pointer(f"%base{part.allocation}", part.offset)

    def word(self, index: int) -> str:
        return self.pointer("%control", 8 * index)

    def calls(self, thunks: Sequence[Thunk]) -> None:
        for thunk in thunks:
            STRAIGHT[type(thunk)](self, thunk)

    def kernel(self, thunk: KernelThunk) -> None:
        places = [self.place(use.slice) for use in thunk.arguments]
        if thunk.split is None:
            self.call(thunk.symbol, places)
        else:
            self.share(thunk.symbol, places, thunk.split)

    def call(self, symbol: str, arguments: Sequence[str]) -> None:
        self.symbols[symbol] = len(arguments)
        types = ", ".join(["!llvm.ptr"] * len(arguments))
        self.line(f"func.call {symbol_name(symbol)}({', '.join(arguments)}) : ({types}) -> ()")

    def share(self, symbol: str, places: Sequence[str], split: Split) -> None:
        """Let the pool call the kernel for each chunk. Its arguments stand in an array on the stack."""
        self.split[symbol] = len(places), split
        self.frame = max(self.frame, len(places))
        for number, place in enumerate(places):
            self.line(f"llvm.store {place}, {self.pointer('%arguments', 8 * number)} : !llvm.ptr, !llvm.ptr")
        function = self.load(self.word(PARALLEL_FOR), "!llvm.ptr")
        body = self.value(f"llvm.mlir.addressof {symbol_name(symbol + CHUNK)} : !llvm.ptr")
        sizes = ", ".join(map(self.constant, (split.extent, split.chunk, split.private)))
        types = "(!llvm.ptr, !llvm.ptr, i64, i64, i64, !llvm.ptr) -> ()"
        self.line(f"llvm.call {function}({body}, %arguments, {sizes}, %control) : !llvm.ptr, {types}")

    def event(self, thunk: ProfileThunk) -> None:
        mark = self.constant(mark_of(thunk.id, thunk.begin))
        number = self.value(f"llvm.inttoptr {mark} : i64 to !llvm.ptr")
        self.call(PROFILE, [self.load(self.word(EVENTS), "!llvm.ptr"), number])

    def meet(self, thunk: Meeting) -> None:
        """Call the function for what is outside."""
        function = self.load(self.word(self.device), "!llvm.ptr")
        number = self.value(f"llvm.inttoptr {self.constant(self.meetings[thunk])} : i64 to !llvm.ptr")
        arguments = ", ".join(["%control", number, self.place(slice_of(thunk))])
        types = "(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()"
        self.line(f"llvm.call {function}({arguments}) : !llvm.ptr, {types}")

    def device_id(self, thunk: DeviceIdThunk) -> None:
        number = self.load(self.word(self.device + 1 + thunk.partition))
        narrow = self.value(f"arith.trunci {number} : i64 to i32")
        self.line(f"llvm.store {narrow}, {self.place(thunk.destination)} : i32, !llvm.ptr")

    def check(self, thunk: Check) -> None:
        call = call_of(thunk)
        self.call(call.function, [self.argument(a) for a in call.arguments])

    def argument(self, argument: Argument) -> str:
        """What a function of checks.py gets."""
        match argument:
            case BufferSlice():
                return self.place(argument)
            case int():
                signed = argument - (1 << 64) if argument >> 63 else argument
                return self.value(f"llvm.inttoptr {self.constant(signed)} : i64 to !llvm.ptr")
            case _:
                return self.load(self.word(EVENTS), "!llvm.ptr")

    def copy(self, thunk: CopyThunk) -> None:
        if thunk.source.size:
            self.copied(self.place(thunk.destination), self.place(thunk.source), thunk.source.size)

    def copied(self, to: str, source: str, size: int) -> None:
        kind = "(!llvm.ptr, !llvm.ptr, i64) -> ()"
        self.line(f'"llvm.intr.memcpy"({to}, {source}, {self.constant(size)}) <{{isVolatile = false}}> : {kind}')


STRAIGHT: dict[type, Callable[..., None]] = {
    KernelThunk: Steps.kernel,
    CopyThunk: Steps.copy,
    ProfileThunk: Steps.event,
    DeviceIdThunk: Steps.device_id,
    CollectiveStartThunk: Steps.meet,
    CollectiveDoneThunk: Steps.meet,
    InfeedThunk: Steps.meet,
    OutfeedThunk: Steps.meet,
    **dict.fromkeys(CALLS, Steps.check),
}
