"""A stream that is a queue of a device's driver: what it keeps alive, work of the host in it, events and timers.

A driver's stream adds what its functions do: markers, copies, fills, launches, and a gate that the host opens.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

from ...hlo.later import np
from ..device import (
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
from .notes import Command

KEPT = 256
"""Arrays and blocks of pieces of work that a stream keeps before it looks which are done."""


class Marker(Protocol):
    """A place in a queue: an event of the driver, which is given back when nobody knows it any more."""

    @property
    def is_reached(self) -> bool: ...

    def wait(self) -> None: ...


class QueueEvent(Event):
    """The place at which it was recorded last."""

    def __init__(self) -> None:
        self.marker: Marker | None = None

    @property
    def is_complete(self) -> bool:
        return self.marker is None or self.marker.is_reached

    def synchronize(self) -> None:
        if self.marker is not None:
            self.marker.wait()


class QueueTimer(Timer):
    """By the device's clock, between two markers."""

    def __init__(self, stream: QueueStream):
        self._stream = stream
        self._began: Marker | None = None
        self._ended: Marker | None = None

    def start(self) -> None:
        self._began, self._ended = self._stream.marker(), None

    def stop(self) -> None:
        self._ended = self._stream.marker()

    def elapsed(self) -> float:
        if self._began is None or self._ended is None:
            raise BackendError("the timer was not stopped", remedy="call start and stop first")
        self._ended.wait()
        return max(self._stream.seconds(self._began, self._ended), 0.0)


class QueueStream(Stream):
    """One queue. Threads may use it at the same time; the order is that of their calls."""

    def __init__(self, executor: StreamExecutor):
        super().__init__(executor)
        self._lock = threading.RLock()
        self._kept: list[object] = []
        self._earlier: deque[tuple[Marker, list[object]]] = deque()
        self._failures: list[BaseException] = []
        self._host: ThreadPoolExecutor | None = None
        self._notes: list[int | Command] | None = None

    # -- what a driver does --------------------------------------------------------------------------------------------
    @abstractmethod
    def marker(self) -> Marker:
        """A place that is reached when all work until here is done."""

    @abstractmethod
    def seconds(self, began: Marker, ended: Marker) -> float:
        """The time between two markers that are reached."""

    @abstractmethod
    def _finish(self) -> None:
        """Wait until all work is done. Raises BackendError if the device failed."""

    @abstractmethod
    def _wait(self, marker: Marker) -> None:
        """Let further work wait for a marker, of this queue or of another."""

    @abstractmethod
    def _copy(self, to: int, source: int, size: int) -> None: ...

    @abstractmethod
    def _fill(self, address: int, pattern: bytes, size: int) -> None:
        """pattern: one byte, or four."""

    @abstractmethod
    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None:
        """As `launch`, of what was checked before, on blocks that the caller keeps."""

    def _entered(self) -> None:
        """Prepare a thread that works for the host."""

    @abstractmethod
    def lend(self) -> int:
        """The driver's own queue, for a function that enqueues its work there, on this thread."""

    # -- order ---------------------------------------------------------------------------------------------------------
    def synchronize(self) -> None:
        with self._lock:
            kept = self._kept, self._earlier  # alive until the work is done; what comes meanwhile is kept elsewhere
            self._kept, self._earlier = [], deque()
        try:
            self._finish()
        finally:
            with self._lock:
                failures, self._failures = self._failures, []
            del kept
            if failures:
                raise failures[0]

    def record(self, event: Event) -> None:
        assert isinstance(event, QueueEvent)
        event.marker = self.marker()

    def wait_for(self, other: Event | Stream) -> None:
        marker = other.marker() if isinstance(other, QueueStream) else getattr(other, "marker", None)
        if marker is not None:
            self._wait(marker)
            self.keep(marker)

    def keep(self, *what: object) -> None:
        """Keep arrays and blocks until the work that was enqueued with them is done."""
        with self._lock:
            self._kept.extend(what)
            if len(self._kept) <= KEPT:
                return
            while self._earlier and self._earlier[0][0].is_reached:
                self._earlier.popleft()
            self._earlier.append((self.marker(), self._kept))
            self._kept = []

    # -- times ---------------------------------------------------------------------------------------------------------
    def watch(self) -> None:
        """Note from now on when each command begins and ends. Only one thread may use the stream meanwhile."""
        self._notes = []

    @property
    def is_watched(self) -> bool:
        """Whether each command is noted."""
        return self._notes is not None

    def mark(self, number: int) -> None:
        """Note that the work comes to a place, as in a Recording."""
        if self._notes is not None:
            self._notes.append(number)

    def watched(self) -> list[int | Command]:
        """What was noted since `watch`, which ends. The times are known when the work is done."""
        notes, self._notes = self._notes, None
        return notes or []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Around work that is enqueued: note it as one command, if the stream is watched."""
        if self._notes is None:
            yield
            return
        before = self.marker()
        yield
        self._notes.append(self._between(before, self.marker()))

    @abstractmethod
    def _between(self, before: Marker, after: Marker) -> Command:
        """The work between two markers as a command."""

    # -- work ----------------------------------------------------------------------------------------------------------
    def memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_own(self.executor.ordinal, destination, source)
        check_copy(size, destination.size, source.size)
        self.copy(destination.address, source.address, size, destination.owner, source.owner)

    def memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        data = bytes_of(source)
        check_copy(data.size, destination.size, source.nbytes)
        self.copy(destination.address, data.ctypes.data, data.size, destination.owner, data)

    def memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        data = bytes_of(destination)
        check_copy(data.size, destination.nbytes, source.size)
        self.copy(data.ctypes.data, source.address, data.size, data, source.owner)

    def copy(self, to: int, source: int, size: int, *keep: object) -> None:
        """Copy between two addresses, of the device or of the host. keep: what must live until then."""
        if size:
            self._copy(to, source, size)
            self.keep(*keep)

    def memset(self, memory: DeviceMemory, value: int) -> None:
        if not 0 <= value < 256:
            raise BackendError(f"{value} is no byte", remedy="give a number from 0 to 255")
        self._set(memory, bytes([value]))

    def memset32(self, memory: DeviceMemory, pattern: int) -> None:
        if memory.size % 4:
            raise BackendError(f"{memory.size} bytes are not a multiple of 4", remedy="use memset")
        self._set(memory, (pattern & 0xFFFFFFFF).to_bytes(4, "little"))

    def _set(self, memory: DeviceMemory, pattern: bytes) -> None:
        if memory.size:
            self._fill(memory.address, pattern, memory.size)
            self.keep(memory.owner)

    def launch(self, kernel: Kernel, dimensions: LaunchDimensions, arguments: Sequence[DeviceMemory]) -> None:
        dimensions.check(self.executor.description())
        kernel.check(arguments)
        self.start(kernel, dimensions, [memory.address for memory in arguments])
        self.keep(*(memory.owner for memory in arguments))


class GatedStream(QueueStream):
    """A queue that stands still at a gate while the host does work that is enqueued in it."""

    @abstractmethod
    def _gate(self) -> Callable[[], object]:
        """Let further work wait until the function is called, on any thread."""

    def enqueue(self, work: Callable[[], object]) -> None:
        with self._lock:
            reached = self.marker()
            opened = self._gate()
            if self._host is None:
                self._host = ThreadPoolExecutor(1, thread_name_prefix=f"{self.executor.platform.name}-stream")
            self._host.submit(self._work, reached, work, opened)

    def _work(self, reached: Marker, work: Callable[[], object], opened: Callable[[], object]) -> None:
        try:
            self._entered()
            reached.wait()
            work()
        except BaseException as error:
            with self._lock:
                self._failures.append(error)
        finally:
            opened()


def check_own(device: int, *memory: DeviceMemory) -> None:
    """Raises BackendError for a block of another device."""
    for block in memory:
        if block.ordinal != device:
            what = f"a block of device {block.ordinal} in a copy within device {device}"
            raise BackendError(what, remedy="use memcpy_from_peer")
