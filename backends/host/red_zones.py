"""Red zones: run each kernel on copies of its arguments between guard bytes, and report writes outside the arguments.

Slow; for debugging emitters. A read out of bounds sees guard bytes, so the results become wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...codegen.load import LoadedCode
from ...ffi.calls import raise_failed
from ...thunks.kinds import Access, KernelThunk, Thunk
from ...thunks.runner import Runner, split_record
from ..base import BackendError, MemoryFault
from .addresses import address_of, view
from .memory import POOL

ZONE = 4096
"""Guard bytes on each side of an argument."""

_PATTERN = (np.arange(2 * ZONE, dtype=np.uint64) * 37 + 0x5B).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Overrun:
    """Bytes [first, last] that a kernel changed but must not change, relative to the start of an argument."""

    argument: int
    size: int
    written: bool
    first: int
    last: int

    def __str__(self) -> str:
        place = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"argument {self.argument} ({self.size} bytes, {'written' if self.written else 'read only'}) at {place}"


class RedZoneError(MemoryFault):
    """A kernel wrote outside the buffers that it may write. overruns: the changed bytes."""

    def __init__(self, thunk: KernelThunk, overruns: tuple[Overrun, ...]):
        self.overruns = overruns
        places = "; ".join(map(str, overruns))
        super().__init__(
            thunk.symbol,
            thunk.name,
            f"kernel {thunk.symbol} ({thunk.name}) wrote out of bounds: {places}",
            "see its IR with ./testbed stages; the stack that emitted it is at fault",
        )


def _nothing(thunk: KernelThunk) -> None:
    pass


_note: Callable[[KernelThunk], object] = _nothing


def note_kernels(function: Callable[[KernelThunk], object]) -> None:
    """Call a function before each kernel that any observer of this kind runs, in this process."""
    global _note
    _note = function


def note_kernel(thunk: KernelThunk) -> None:
    """Call the function of `note_kernels`."""
    _note(thunk)


class RedZones:
    """An observer of the executor that runs kernels between guard bytes. address: number of an allocation → its
    address.
    """

    def __init__(self, code: LoadedCode, runner: Runner, flush_subnormals: bool, address: Callable[[int], int]):
        self._code, self._address = code, address
        self._run = runner.run_flushing if flush_subnormals else runner.run
        self._bodies = runner.bodies

    def __call__(self, thunk: Thunk, run: Callable[[], object]) -> None:
        """Run a kernel with guard bytes, any other thunk normally. Raises RedZoneError and then drops the results."""
        if not isinstance(thunk, KernelThunk):
            run()
            return
        pieces = [view(self._address(u.slice.allocation) + u.slice.offset, u.slice.size) for u in thunk.arguments]
        _note(thunk)
        guarded = [_Guarded(piece, number) for number, piece in enumerate(pieces)]
        self._call(thunk, [g.address for g in guarded])
        raise_failed()
        overruns = []
        for number, (use, piece, copy) in enumerate(zip(thunk.arguments, pieces, guarded)):
            written = use.access is Access.WRITE
            for first, last in copy.damage(None if written else piece):
                overruns.append(Overrun(number, piece.size, written, first, last))
        if overruns:
            raise RedZoneError(thunk, tuple(overruns))
        for use, piece, copy in zip(thunk.arguments, pieces, guarded):
            if use.access is Access.WRITE:
                piece[:] = copy.inside

    def _call(self, thunk: KernelThunk, arguments: list[int]) -> None:
        """Call the kernel through the runner, so that subnormals are handled as in a normal run."""
        function, count = self._code.address(thunk.symbol), len(arguments)
        if thunk.split is None:
            record = [function, count]
        else:  # in one chunk, on this thread: others would have scratch memory without guards
            whole = replace(thunk.split, least=thunk.split.extent)
            record = split_record(function, whole, count, self._bodies[count])
        words = np.zeros(4 + len(record) + count, np.uint64)  # a descriptor, a word that stays 0, a record
        begin = address_of(words)
        words[:3] = begin + 32, begin + words.nbytes, begin + 24
        words[4:] = record + arguments
        if self._run(begin) < 0:
            raise BackendError(f"the runner knows no kernel of {len(arguments)} arguments")


class _Guarded:
    """A copy of some bytes between two guard zones, aligned to 64 bytes.

    Each argument has different guard bytes, so that a kernel that copies one zone into another is detected.
    """

    def __init__(self, piece: np.ndarray, number: int):
        self._block = POOL.allocate(piece.size + 2 * ZONE)
        self._low, self._high = self._block[:ZONE], self._block[ZONE + piece.size :]
        pattern = _PATTERN ^ np.uint8((number * 0x3D + 1) % 256)
        self._below, self._above = pattern[:ZONE], pattern[ZONE:]
        self._low[:], self._high[:] = self._below, self._above
        self.inside = self._block[ZONE : ZONE + piece.size]
        self.inside[:] = piece
        self.address = address_of(self._block) + ZONE

    def damage(self, original: np.ndarray | None) -> list[tuple[int, int]]:
        """First and last changed byte of each region: zone below, inside (if `original` is given), zone above."""
        checks = [(-ZONE, self._low, self._below)]
        if original is not None:
            checks.append((0, self.inside, original))
        checks.append((self.inside.size, self._high, self._above))
        found = []
        for start, now, before in checks:
            changed = np.flatnonzero(now != before)
            if changed.size:
                found.append((start + int(changed[0]), start + int(changed[-1])))
        return found
