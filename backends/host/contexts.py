"""The state of a run: its arena, the addresses of allocations, what executors need; and those that are idle."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...hlo.errors import OutOfMemoryError
from ...hlo.later import np
from ...planning.allocation import Allocation, AllocationKind
from ...thunks.events import EventBuffer, Events
from ...thunks.executor import Executor, Frame, Observer
from ...thunks.host_program import HostFrame
from ...thunks.image import Image
from ...thunks.patched import native_run
from .addresses import address_of
from .memory import POOL
from .signature import Signature

if TYPE_CHECKING:
    from ...ffi.sites import Sites
    from ...profiling.recorder import Recorder
    from ...profiling.sink import Sink
    from ...thunks.check_log import CheckLog
    from ...thunks.outside import Port
    from .entry import Native, Program

IDLE_CONTEXTS = 8
"""Number of arenas that an executable keeps for parallel executions; as many as the native entry may use at once."""


class Contexts:
    """The idle contexts of an executable. Those that the native entry knows are idle there.

    native, program: the functions and the record of the entry; None without one.
    """

    def __init__(self, make: Callable[[], Context]):
        self._make = make
        self._idle: list[Context] = []
        self._entered: dict[int, Context] = {}
        self._entering = threading.Lock()
        self.native: Native | None = None
        self.program: Program | None = None

    def enter(self, native: Native, program: Program) -> None:
        """From now on, let the native entry use contexts."""
        self.program, self.native = program, native

    def __len__(self) -> int:
        """The number of idle ones."""
        return len(self._idle) + (0 if self.program is None else self.program.free)

    def noted(self) -> list[Events]:
        """The events that profile thunks noted in calls of the native entry since the last time. None may run now."""
        buffers = [c.noted for c in self._entered.values() if c.noted is not None]
        return [events for buffer in buffers if (events := buffer.taken()).marks.size]

    def take(self) -> Context:
        """An idle context, or a new one. Raises OutOfMemoryError."""
        if self.native is not None and self.program is not None:
            address = self.native.claim(self.program.words)
            if address:
                return self._entered[address]
        try:
            return self._idle.pop()
        except IndexError:  # none is idle, or another thread took the last one
            return self._make()

    def give_back(self, context: Context, executor: Executor) -> None:
        if self.native is None or self.program is None or not self._enter(context, executor):
            if len(self._idle) < IDLE_CONTEXTS:
                self._idle.append(context)
            return
        self.native.release(self.program.words, context.entered)

    def _enter(self, context: Context, executor: Executor) -> bool:
        """Whether the native entry may use the context from now on, or could before."""
        assert self.program is not None
        if context.entered:
            return True
        with self._entering:
            if len(self._entered) == IDLE_CONTEXTS:
                return False
            context.enter(executor, self.program)
            self._entered[context.entered] = context
        return True


class Context:
    """The state of one run. entered: the address of its record for the native entry, or 0.

    noted: the buffer of events of runs by the native entry, if they note any.
    """

    def __init__(self, signature: Signature, image: Image):
        allocations = image.allocations
        arena = {a.index: _temporaries(image, a) for a in allocations if a.kind is AllocationKind.TEMPORARY}
        constants = {index: np.asarray(block) for index, block in image.constants.items()}
        self._blocks, self._arena = {**constants, **arena}, tuple(arena.values())
        self._signature, self._variable = signature, list(signature.variable)
        self._bases = np.zeros(len(allocations) + 1, np.uint64)  # the last entry is for leaves that no kernel uses
        for index, block in self._blocks.items():
            self._bases[index] = address_of(block)
        self._frame: Frame | HostFrame | None = None
        self._bound: list[int] | None = None  # addresses of inputs and outputs in the frame
        self._running: Frame | HostFrame | None = None
        self._stopped = False
        self.entered = 0
        self._kept: Any = None
        self.noted: EventBuffer | None = None

    def fill(self, byte: int) -> None:
        """Write a byte all over the temporaries."""
        for block in self._arena:
            block.fill(byte)

    def bases(self) -> np.ndarray:
        """A copy of the addresses of allocations, for native functions, which write those of inputs and results."""
        return self._bases.copy()

    def enter(self, executor: Executor, program: Program) -> None:
        """Make a record for the native entry."""
        bases = self.bases()
        run = native_run(executor, bases)
        self.entered, words = program.context(bases, run)
        self.noted = run.events
        self._kept = bases, run, words

    def run(
        self,
        executor: Executor,
        addresses: list[int],
        observer: Observer | None,
        sink: Sink | CheckLog | Recorder | None,
        port: Port | None = None,
        sites: Sites | None = None,
    ) -> None:
        if addresses != self._bound or self._frame is None:
            self._bind(executor, addresses)
        frame = self._frame if observer is None else executor.frame(self._bases, observer)
        assert frame is not None
        self._running = frame
        if self._stopped:
            frame.stop()
        if frame.events is not None:
            frame.events.clear()  # of a run that ended early
        go = frame.run if port is None else functools.partial(port.run, frame)
        if sites is None:
            go()
        else:
            sites.run(go, frame.stop, 0 if port is None else port.device)
        if frame.events is not None and sink is not None:
            events = frame.events.taken()
            sink.add(events.marks, events.times, events.lost)

    def stop(self) -> None:
        """Let the run in another thread end before its next kernel. The results are undefined then."""
        self._stopped = True
        if self._running is not None:
            self._running.stop()

    def go_on(self) -> None:
        """End `stop`, for the next run."""
        if self._stopped and self._running is not None:
            self._running.stop(False)
        self._running, self._stopped = None, False

    def _bind(self, executor: Executor, addresses: list[int]) -> None:
        """Bind the addresses of inputs and outputs. Overlaps depend on addresses alone: check them only here."""
        if not self._signature.aliased:
            self._signature.refuse_overlaps(addresses)
        self._bound = None
        self._bases[self._variable] = addresses
        if self._frame is None:
            self._frame = executor.frame(self._bases)
        else:
            self._frame.rebind(self._bases)
        self._bound = addresses

    def address(self, allocation: int) -> int:
        return int(self._bases[allocation])


def _temporaries(image: Image, allocation: Allocation) -> np.ndarray:
    """Memory for temporaries. Raises OutOfMemoryError, which names the largest array in it."""
    try:
        return POOL.allocate(allocation.size)
    except MemoryError as error:
        what, location = image.largest.get(allocation.index, ("", None))  # none in scratch memory only
        what = f"temporary memory, with {what} in it," if what else "temporary memory"
        raise OutOfMemoryError(what, allocation.size, location=location) from error
