"""A stream of a GPU, with events, and a thread for work of the host in it."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..accelerator.launches import Bases
from ..accelerator.queue_stream import Marker, QueueStream
from ..device import Kernel, LaunchDimensions, StreamExecutor
from .driver import NON_BLOCKING, NOT_READY, Driver
from .launches import Launches
from .memory import destroyed


class Handle:
    """An event of the driver; destroyed when nobody knows it any more. It may be recorded later, by another thread."""

    def __init__(self, driver: Driver, device: int):
        self.driver, self.device = driver, device
        self.recorded = threading.Event()
        made = ctypes.c_void_p()
        driver.do("create an event", "enter", device)
        driver.do("create an event", "event_create", ctypes.byref(made), 0)
        self.value = made.value
        weakref.finalize(self, destroyed, driver, device, "event_destroy", made.value or 0).atexit = False

    def record(self, stream: int | None) -> None:
        """Record it in a stream of the driver. It counts as recorded if that fails, too: nobody waits for ever."""
        try:
            self.driver.do("record an event", "event_record", self.value, stream)
        finally:
            self.recorded.set()

    @property
    def is_reached(self) -> bool:
        if not self.recorded.is_set():
            return False
        code = self.driver.call("event_query", self.value)
        if code not in (0, NOT_READY):
            self.driver.fail(code, "ask an event")
        return code == 0

    def wait(self) -> None:
        self.recorded.wait()
        self.driver.do("wait for an event", "event_synchronize", self.value)


class Between:
    """A command between two events. first: the event from which times are counted."""

    def __init__(self, stream: GpuStream, first: Marker, before: Marker, after: Marker):
        self._stream, self._first, self._before, self._after = stream, first, before, after

    def span(self) -> tuple[int, int]:
        begin, end = (self._stream.seconds(self._first, event) for event in (self._before, self._after))
        return round(begin * 1e9), round(end * 1e9)


class GpuStream(QueueStream):
    """One stream of the driver.

    Work of the host in it, and what is enqueued behind that work, waits on a thread; the driver's stream itself never
    stands still. If it did, whatever synchronises the device would wait for the work, which may be what calls it: a
    copy from memory that is not pinned, a block that is given back, a module that is loaded. And a callback of the
    driver may call none of the driver's functions.
    """

    _first: Handle
    """The event at which watching the stream begins."""

    def __init__(self, executor: StreamExecutor, driver: Driver):
        super().__init__(executor)
        self.driver, self._device = driver, executor.ordinal
        self._order = threading.Condition(self._lock)
        self._behind = 0  # commands on the thread, which those that come now must follow
        made = ctypes.c_void_p()
        self._entered()
        self.driver.do("create a stream", "stream_create", ctypes.byref(made), NON_BLOCKING)
        self.value = made.value
        weakref.finalize(self, destroyed, self.driver, self._device, "stream_destroy", made.value or 0).atexit = False

    def _entered(self) -> None:
        """The driver's functions act on the context of the calling thread."""
        self.driver.do("use a device", "enter", self._device)

    # -- order ---------------------------------------------------------------------------------------------------------
    def enqueue(self, work: Callable[[], object]) -> None:
        with self._lock:
            reached = self.marker()

            def run() -> None:
                reached.wait()
                work()

            self._later(run)

    def _issue(self, command: Callable[[], object], after: Handle | None = None) -> None:
        """Give the driver a command: now, or on the thread, behind the work there. after: it waits for an event that
        may not be recorded yet.
        """
        with self._lock:
            if self._behind or (after is not None and not after.recorded.is_set()):
                self._later(command)
                return
            self._entered()
            command()

    def _later(self, command: Callable[[], object]) -> None:
        if self._host is None:
            self._host = ThreadPoolExecutor(1, thread_name_prefix=f"{self.executor.platform.name}-stream")
        self._behind += 1
        self._host.submit(self._on_thread, command)

    def _on_thread(self, command: Callable[[], object]) -> None:
        try:
            self._entered()
            command()
        except BaseException as error:
            with self._lock:
                self._failures.append(error)
        finally:
            with self._order:
                self._behind -= 1
                self._order.notify_all()

    def _drain(self) -> None:
        """Wait until the driver has all commands."""
        with self._order:
            self._order.wait_for(lambda: not self._behind)

    def lend(self) -> int:
        self._drain()
        self._entered()
        return self.value or 0

    def _finish(self) -> None:
        self._drain()
        self._entered()
        self.driver.do("finish a stream", "stream_synchronize", self.value)

    def marker(self) -> Handle:
        handle = Handle(self.driver, self._device)
        self._issue(lambda: handle.record(self.value))
        return handle

    def _wait(self, marker: Marker) -> None:
        assert isinstance(marker, Handle)

        def wait() -> None:
            marker.recorded.wait()
            self.driver.do("wait in a stream", "stream_wait_event", self.value, marker.value, 0)

        self._issue(wait, marker)

    # -- times ---------------------------------------------------------------------------------------------------------
    def seconds(self, began: Marker, ended: Marker) -> float:
        assert isinstance(began, Handle) and isinstance(ended, Handle)
        milliseconds = ctypes.c_float()
        self.driver.do("read a time", "event_elapsed", ctypes.byref(milliseconds), began.value, ended.value)
        return milliseconds.value * 1e-3

    def watch(self) -> None:
        super().watch()
        self._first = self.marker()

    def _between(self, before: Marker, after: Marker) -> Between:
        return Between(self, self._first, before, after)

    # -- work ----------------------------------------------------------------------------------------------------------
    def _copy(self, to: int, source: int, size: int) -> None:
        with self.noted():
            self._issue(lambda: self.driver.do(f"copy {size} bytes", "copy", to, source, size, self.value))

    def _fill(self, address: int, pattern: bytes, size: int) -> None:
        function, count = f"memset{8 * len(pattern)}", size // len(pattern)
        value = int.from_bytes(pattern, "little")
        with self.noted():
            self._issue(lambda: self.driver.do(f"fill {size} bytes", function, address, value, count, self.value))

    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None:
        """The driver copies the arguments."""
        count = len(addresses)
        values = (ctypes.c_uint64 * count)(*addresses)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * count)(*(first + 8 * n for n in range(count)))
        shape = (*dimensions.blocks, *dimensions.threads)

        def launch() -> None:
            given = ctypes.addressof(places)
            assert values  # the places are addresses in it
            self.driver.do(f"run {kernel.name}", "launch", kernel.handle.value, *shape, 0, self.value, given, None)

        with self.noted():
            self._issue(launch)

    def launch_all(self, made: Launches, bases: Bases) -> None:
        """Launch a part of a program, on memory at addresses that stay as they are until the work is done."""
        self._issue(lambda: made.enqueue(self.value or 0, bases))
