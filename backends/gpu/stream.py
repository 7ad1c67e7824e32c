"""A stream of a GPU, with events and gates that the host opens."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence

from ..accelerator.queue_stream import Marker, QueueStream
from ..device import Kernel, LaunchDimensions, MemorySpace, StreamExecutor
from .driver import NON_BLOCKING, NOT_READY, Driver
from .memory import destroyed


class Handle:
    """An event of the driver; destroyed when nobody knows it any more."""

    def __init__(self, driver: Driver, device: int):
        self.driver, self.device = driver, device
        made = ctypes.c_void_p()
        driver.do("create an event", "enter", device)
        driver.do("create an event", "event_create", ctypes.byref(made), 0)
        self.value = made.value
        weakref.finalize(self, destroyed, driver, device, "event_destroy", made.value or 0).atexit = False

    @property
    def is_reached(self) -> bool:
        code = self.driver.call("event_query", self.value)
        if code not in (0, NOT_READY):
            self.driver.fail(code, "ask an event")
        return code == 0

    def wait(self) -> None:
        self.driver.do("wait for an event", "event_synchronize", self.value)


class Between:
    """A command between two events. first: the event from which times are counted."""

    def __init__(self, stream: GpuStream, first: Marker, before: Marker, after: Marker):
        self._stream, self._first, self._before, self._after = stream, first, before, after

    def span(self) -> tuple[int, int]:
        begin, end = (self._stream.seconds(self._first, event) for event in (self._before, self._after))
        return round(begin * 1e9), round(end * 1e9)


class GpuStream(QueueStream):
    """One stream of the driver."""

    _first: Handle
    """The event from which on the stream is watched."""

    def __init__(self, executor: StreamExecutor, driver: Driver):
        super().__init__(executor)
        self.driver, self._device = driver, executor.ordinal
        made = ctypes.c_void_p()
        self._entered()
        self.driver.do("create a stream", "stream_create", ctypes.byref(made), NON_BLOCKING)
        self.value = made.value
        weakref.finalize(self, destroyed, self.driver, self._device, "stream_destroy", made.value or 0).atexit = False

    def _entered(self) -> None:
        """The driver's functions act on the context of the calling thread."""
        self.driver.do("use a device", "enter", self._device)

    def _handle(self) -> int:
        return self.value or 0

    def _finish(self) -> None:
        self._entered()
        self.driver.do("finish a stream", "stream_synchronize", self.value)

    def marker(self) -> Handle:
        handle = Handle(self.driver, self._device)
        self.driver.do("record an event", "event_record", handle.value, self.value)
        return handle

    def seconds(self, began: Marker, ended: Marker) -> float:
        assert isinstance(began, Handle) and isinstance(ended, Handle)
        milliseconds = ctypes.c_float()
        self.driver.do("read a time", "event_elapsed", ctypes.byref(milliseconds), began.value, ended.value)
        return milliseconds.value * 1e-3

    def _wait(self, marker: Marker) -> None:
        assert isinstance(marker, Handle)
        self._entered()
        self.driver.do("wait in a stream", "stream_wait_event", self.value, marker.value, 0)

    def _gate(self) -> Callable[[], object]:
        """The stream stands still at a word of pinned memory. A callback of the driver could not do the host's work:
        it may call none of the driver's functions.
        """
        gate = self.executor.allocate(4, MemorySpace.HOST)
        word = ctypes.c_uint32.from_address(gate.address)
        word.value = 0
        self.driver.do("wait for the host", "wait_word", self.value, gate.address, 1)
        self.keep(gate)  # until the stream has read it

        def opened() -> None:
            word.value = 1

        return opened

    def watch(self) -> None:
        super().watch()
        self._first = self.marker()

    def _between(self, before: Marker, after: Marker) -> Between:
        return Between(self, self._first, before, after)

    def _copy(self, to: int, source: int, size: int) -> None:
        self._entered()
        with self.noted():
            self.driver.do(f"copy {size} bytes", "copy", to, source, size, self.value)

    def _fill(self, address: int, pattern: bytes, size: int) -> None:
        self._entered()
        function, count = f"memset{8 * len(pattern)}", size // len(pattern)
        value = int.from_bytes(pattern, "little")
        with self.noted():
            self.driver.do(f"fill {size} bytes", function, address, value, count, self.value)

    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None:
        """The driver copies the arguments."""
        count = len(addresses)
        values = (ctypes.c_uint64 * count)(*addresses)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * count)(*(first + 8 * n for n in range(count)))
        self._entered()
        shape = (*dimensions.blocks, *dimensions.threads)
        with self.noted():
            self.driver.do(
                f"run {kernel.name}", "launch",
                kernel.handle.value, *shape, 0, self.value, ctypes.addressof(places), None,
            )  # fmt: skip
