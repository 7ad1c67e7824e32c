"""The compiled executor: thunks become one native function (host_module.py), which Python calls once a run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Container

from ..codegen.cache import ObjectCache
from ..codegen.load import LoadedCode
from ..codegen.pool import pool
from ..hlo.later import np
from ..hlo.records import dataclass, replace
from .events import MOST_EVENTS, EventBuffer
from .host_module import ENTRY, VERSION, HostModule, host_module
from .host_steps import DEVICE_WORDS, EVENTS, LEFT, PARALLEL_FOR, POSITION, STOP
from .kinds import SequentialThunk
from .rounds import Native, Round, paced


def host_program_of(
    root: SequentialThunk,
    code: LoadedCode,
    cache: ObjectCache | None,
    handlers: Container[str] = (),
    built: HostModule | None = None,
) -> HostProgram | None:
    """The host program of thunks, if it is in the code and has the control words of this version.

    None, too, if the one in the code is of other thunks: what the thunks say is what runs. handlers: symbols of kernels
    that call handlers. built: of the same thunks, if the code was made in this process; that of a program with loops
    knows no handlers.
    """
    if VERSION not in code.addresses:
        return None
    made_of = ctypes.c_int64.from_address(code.address(VERSION)).value
    module = host_module(root, handlers=handlers) if built is None or built.loops else built
    return HostProgram(module, code, cache) if made_of in (0, module.digest) else None


@dataclass(frozen=True, eq=False)
class HostProgram:
    """A host program in memory. Threads share it; each uses frames of its own. cache: of the pool's code."""

    module: HostModule
    code: LoadedCode
    cache: ObjectCache | None = None

    @property
    def address(self) -> int:
        """The address of the native function: i64 (ptr bases, ptr control), as in host_module.py."""
        return self.code.address(ENTRY)

    def frame(self, bases: np.ndarray, variable: Collection[int], most_events: int = MOST_EVENTS) -> HostFrame:
        """A frame on allocations. bases: their addresses (uint64), by index. variable: those that change."""
        return HostFrame(self, bases, variable, most_events)


class HostFrame:
    """The memory of a run's control flow. It serves one run at a time.

    bases, control: the arguments of the native function. events: what profile thunks note; None if there are none.
    limits: iterations of each loop at a time, as they were found to take LOOP_SECONDS.
    """

    def __init__(self, program: HostProgram, bases: np.ndarray, variable: Collection[int], most_events: int):
        self.program = program
        self.bases = np.array(bases, np.uint64)
        self._variable = np.array(sorted(variable), np.intp)
        loops = program.module.loops
        slices = [part for loop in loops for part in loop.written]
        first = program.module.words
        self.control = np.zeros(first + len(slices), np.uint64)
        self.control[LEFT : LEFT + len(loops)] = 1
        self._device = self.control[first - DEVICE_WORDS : first] if program.module.meets else None
        if self._device is not None:
            from .outside import MEET

            self._device[0] = MEET
        self.events = EventBuffer(most_events) if program.module.notes_events else None
        if self.events is not None:
            self.control[EVENTS] = self.events.address
        if program.module.splits:
            self.control[PARALLEL_FOR] = pool(program.cache).parallel_for
        self._written = self.control[first:]
        self._allocations = np.array([s.allocation for s in slices], np.intp)
        self._offsets = np.array([s.offset for s in slices], np.uint64)
        self._place_written()
        self.rounds = _rounds(program.module)
        self.address: int = self.control.ctypes.data
        self._native = self._make_native()
        self.limits = [1] * len(self.rounds)
        self.run: Callable[[], object] = self._native.run
        if self.rounds:
            self.run = paced(self._native, self.rounds, self.limits)

    def go_on(self, status: int) -> None:
        """Run to the end from where the native function returned a positive status."""
        pending = [status]

        def run() -> int:
            return pending.pop() if pending else self._native.run()

        paced(replace(self._native, run=run, restart=lambda: None), self.rounds, self.limits)()

    def rebind(self, bases: np.ndarray) -> None:
        """Read the addresses of the variable allocations again."""
        self.bases[self._variable] = bases[self._variable]
        self._place_written()

    def stop(self, wanted: bool = True) -> None:
        """Let a run in another thread end before its next kernel, with undefined results. False: runs go on again."""
        self.control[STOP] = wanted

    def place(self, replica: int, partition: int) -> None:
        """Say which device the frame is."""
        if self._device is not None:
            self._device[1:] = replica, partition

    def _place_written(self) -> None:
        if len(self._written):
            self._written[:] = self.bases[self._allocations] + self._offsets

    def _make_native(self) -> Native:
        function = _FUNCTION(self.program.address)
        bases, control = self.bases.ctypes.data, self.control.ctypes.data

        def run() -> int:
            return function(bases, control)

        def restart() -> None:
            self.control[POSITION] = 0

        def leave(loop: Round) -> None:
            self.control[loop.left] = 0

        return Native(self.control, run, restart, leave)


_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def _rounds(module: HostModule) -> tuple[Round, ...]:
    """The loops of a module on the control words of a frame: behind the module's own, the addresses of slices."""
    place, rounds = module.words, []
    for number, loop in enumerate(module.loops):
        written = tuple((place + i, part.size) for i, part in enumerate(loop.written))
        place += len(written)
        rounds.append(Round(LEFT + number, loop.outer, written, loop.most, loop.settles))
    return tuple(rounds)
