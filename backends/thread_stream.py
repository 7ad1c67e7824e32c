"""A stream that is a thread of this process, over the synchronous operations of its executor: XLA's HostStream.

A back end whose device has no queues of its own takes it as it is and gives it what a kernel launch does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from ..hlo.later import np
from .device import (
    BackendError,
    DeviceMemory,
    Event,
    Kernel,
    LaunchDimensions,
    Stream,
    StreamExecutor,
    Timer,
    bytes_of,
    check_copy,
)


class ThreadEvent(Event):
    """An event of threads of this process."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._reached.set()

    @property
    def is_complete(self) -> bool:
        return self._reached.is_set()

    def synchronize(self) -> None:
        self._reached.wait()

    def expect(self) -> Callable[[], None]:
        """Forget that it was reached. Returns what says so again; of an event recorded twice, the later one counts."""
        self._reached = reached = threading.Event()
        return reached.set

    def now(self) -> Callable[[], object]:
        """What waits for the latest place at which it is recorded now."""
        return self._reached.wait


class ThreadTimer(Timer):
    def __init__(self, stream: ThreadStream):
        self._stream, self._at = stream, [0.0, 0.0]
        self._stopped: Callable[[], object] | None = None

    def _note(self, place: int) -> None:
        self._at[place] = time.perf_counter()

    def start(self) -> None:
        self._stream.enqueue(partial(self._note, 0))

    def stop(self) -> None:
        self._stream.enqueue(partial(self._note, 1))
        event = ThreadEvent()
        self._stream.record(event)
        self._stopped = event.synchronize

    def elapsed(self) -> float:
        if self._stopped is None:
            raise BackendError("the timer was not stopped", remedy="call start and stop first")
        self._stopped()
        return self._at[1] - self._at[0]


class ThreadStream(Stream):
    """Runs its work in order on its own thread. run: what a launch does on that thread."""

    def __init__(
        self, executor: StreamExecutor, run: Callable[[Kernel, Sequence[DeviceMemory]], None] | None = None
    ) -> None:
        super().__init__(executor)
        self._run = run
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"{executor.platform.name}-stream")
        self._pending: list[Future[object]] = []

    def enqueue(self, work: Callable[[], object]) -> None:
        self._pending = [f for f in self._pending if not f.done() or f.exception() is not None]
        self._pending.append(self._pool.submit(work))

    def synchronize(self) -> None:
        pending, self._pending = self._pending, []
        failures = [error for error in [future.exception() for future in pending] if error is not None]
        if failures:
            raise failures[0]

    def record(self, event: Event) -> None:
        assert isinstance(event, ThreadEvent)
        self.enqueue(event.expect())

    def wait_for(self, other: Event | Stream) -> None:
        if isinstance(other, Stream):
            event = ThreadEvent()
            other.record(event)
        else:
            assert isinstance(other, ThreadEvent)
            event = other
        self.enqueue(event.now())

    def memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_copy(size, destination.size, source.size)
        self.enqueue(partial(self.executor.synchronous_memcpy, destination, source, size))

    def memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        check_copy(bytes_of(source).size, destination.size, source.nbytes)
        self.enqueue(partial(self.executor.synchronous_memcpy_from_host, destination, source))

    def memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        check_copy(bytes_of(destination).size, destination.nbytes, source.size)
        self.enqueue(partial(self.executor.synchronous_memcpy_to_host, destination, source))

    def memset(self, memory: DeviceMemory, value: int) -> None:
        if not 0 <= value < 256:
            raise BackendError(f"{value} is no byte", remedy="give a number from 0 to 255")
        self.memcpy_from_host(memory, np.full(memory.size, value, np.uint8))

    def memset32(self, memory: DeviceMemory, pattern: int) -> None:
        if memory.size % 4:
            raise BackendError(f"{memory.size} bytes are not a multiple of 4", remedy="use memset")
        self.memcpy_from_host(memory, np.full(memory.size // 4, pattern & 0xFFFFFFFF, "<u4"))

    def launch(self, kernel: Kernel, dimensions: LaunchDimensions, arguments: Sequence[DeviceMemory]) -> None:
        if self._run is None:
            super().launch(kernel, dimensions, arguments)
            return
        dimensions.check(self.executor.description())
        kernel.check(arguments)
        self.enqueue(partial(self._run, kernel, tuple(arguments)))
