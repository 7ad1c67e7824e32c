"""A stream of a GPU, with events, timers, and work of the host in order with the device's."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...hlo.later import np
from ..device import (
    BackendError,
    DeviceMemory,
    Event,
    Kernel,
    LaunchDimensions,
    MemorySpace,
    Stream,
    StreamExecutor,
    Timer,
    bytes_of,
    check_copy,
)
from .driver import NON_BLOCKING, NOT_READY, Driver

KEPT = 256
"""Arrays and blocks of pieces of work that a stream keeps before it waits for them."""


class Handle:
    """An event of the driver; destroyed when nobody knows it any more."""

    def __init__(self, driver: Driver, device: int):
        self.driver, self.device = driver, device
        made = ctypes.c_void_p()
        driver.do("create an event", "enter", device)
        driver.do("create an event", "event_create", ctypes.byref(made), 0)
        self.value = made.value
        weakref.finalize(self, _destroyed, driver, device, "event_destroy", made.value or 0).atexit = False

    def wait(self) -> None:
        self.driver.do("wait for an event", "event_synchronize", self.value)


def _destroyed(driver: Driver, device: int, function: str, value: int) -> None:
    driver.call("enter", device)
    driver.call(function, value)


class GpuEvent(Event):
    """The place at which it was recorded last."""

    def __init__(self) -> None:
        self.handle: Handle | None = None

    @property
    def is_complete(self) -> bool:
        if self.handle is None:
            return True
        code = self.handle.driver.call("event_query", self.handle.value)
        if code not in (0, NOT_READY):
            self.handle.driver.fail(code, "ask an event")
        return code == 0

    def synchronize(self) -> None:
        if self.handle is not None:
            self.handle.wait()


class GpuTimer(Timer):
    """By the device's clock, between two events."""

    def __init__(self, stream: GpuStream):
        self._stream = stream
        self._began: Handle | None = None
        self._ended: Handle | None = None

    def start(self) -> None:
        self._began, self._ended = self._stream.marker(), None

    def stop(self) -> None:
        self._ended = self._stream.marker()

    def elapsed(self) -> float:
        if self._began is None or self._ended is None:
            raise BackendError("the timer was not stopped", remedy="call start and stop first")
        self._ended.wait()
        milliseconds = ctypes.c_float()
        began, ended = self._began.value, self._ended.value
        self._stream.driver.do("read a time", "event_elapsed", ctypes.byref(milliseconds), began, ended)
        return max(milliseconds.value, 0.0) * 1e-3


class GpuStream(Stream):
    """One stream of the driver. Threads may use it at the same time; the order is that of their calls."""

    def __init__(self, executor: StreamExecutor, driver: Driver):
        super().__init__(executor)
        self.driver, self._device = driver, executor.ordinal
        made = ctypes.c_void_p()
        self._enter()
        self.driver.do("create a stream", "stream_create", ctypes.byref(made), NON_BLOCKING)
        self.value = made.value
        self._lock = threading.RLock()
        self._kept: list[object] = []
        self._failures: list[BaseException] = []
        self._host: ThreadPoolExecutor | None = None
        weakref.finalize(self, _destroyed, self.driver, self._device, "stream_destroy", made.value or 0).atexit = False

    def _enter(self) -> None:
        """The driver's functions act on the context of the calling thread."""
        self.driver.do("use a device", "enter", self._device)

    # -- order ---------------------------------------------------------------------------------------------------------
    def synchronize(self) -> None:
        with self._lock:
            kept = list(self._kept)
        self._enter()
        code = self.driver.call("stream_synchronize", self.value)
        with self._lock:
            del self._kept[: len(kept)]
            failures, self._failures = self._failures, []
        if failures:
            raise failures[0]
        if code:
            self.driver.fail(code, "finish a stream")

    def marker(self) -> Handle:
        """An event that is reached when all work until here is done."""
        handle = Handle(self.driver, self._device)
        self.driver.do("record an event", "event_record", handle.value, self.value)
        return handle

    def record(self, event: Event) -> None:
        assert isinstance(event, GpuEvent)
        event.handle = self.marker()

    def wait_for(self, other: Event | Stream) -> None:
        handle = other.marker() if isinstance(other, GpuStream) else getattr(other, "handle", None)
        if handle is not None:
            self._enter()
            self.driver.do("wait in a stream", "stream_wait_event", self.value, handle.value, 0)
            self._keep(handle)

    def enqueue(self, work: Callable[[], object]) -> None:
        """The stream stands still at a word of pinned memory, which a thread sets after the work. A callback of the
        driver could not do this: it may call none of the driver's functions.
        """
        gate = self.executor.allocate(4, MemorySpace.HOST)
        word = ctypes.c_uint32.from_address(gate.address)
        word.value = 0
        with self._lock:
            reached = self.marker()
            self.driver.do("wait for the host", "wait_word", self.value, gate.address, 1)
            self._kept.append(gate)
            if self._host is None:
                self._host = ThreadPoolExecutor(1, thread_name_prefix=f"{self.driver.dialect.name}-stream")
            self._host.submit(self._work, reached, work, word)

    def _work(self, reached: Handle, work: Callable[[], object], word: Any) -> None:
        try:
            self._enter()
            reached.wait()
            work()
        except BaseException as error:
            with self._lock:
                self._failures.append(error)
        finally:
            word.value = 1

    def _keep(self, *what: object) -> None:
        """Keep arrays and blocks until the work that uses them is done."""
        with self._lock:
            self._kept.extend(what)
            full = len(self._kept) > KEPT
        if full and self._host is None:
            self.synchronize()

    # -- work ----------------------------------------------------------------------------------------------------------
    def memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_own(self._device, destination, source)
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
            self._keep(*keep)
            self._enter()
            self.driver.do(f"copy {size} bytes", "copy", to, source, size, self.value)

    def memset(self, memory: DeviceMemory, value: int) -> None:
        if not 0 <= value < 256:
            raise BackendError(f"{value} is no byte", remedy="give a number from 0 to 255")
        self._fill("memset8", memory, value, memory.size)

    def memset32(self, memory: DeviceMemory, pattern: int) -> None:
        if memory.size % 4:
            raise BackendError(f"{memory.size} bytes are not a multiple of 4", remedy="use memset")
        self._fill("memset32", memory, pattern & 0xFFFFFFFF, memory.size // 4)

    def _fill(self, function: str, memory: DeviceMemory, value: int, count: int) -> None:
        if count:
            self._keep(memory.owner)
            self._enter()
            self.driver.do(f"fill {memory.size} bytes", function, memory.address, value, count, self.value)

    def launch(self, kernel: Kernel, dimensions: LaunchDimensions, arguments: Sequence[DeviceMemory]) -> None:
        dimensions.check(self.executor.description())
        kernel.check(arguments)
        self._keep(*(memory.owner for memory in arguments))
        self.start(kernel, dimensions, [memory.address for memory in arguments])

    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None:
        """As `launch`, of what was checked before, on blocks that the caller keeps. The driver copies the arguments."""
        count = len(addresses)
        values = (ctypes.c_uint64 * count)(*addresses)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * count)(*(first + 8 * n for n in range(count)))
        self._enter()
        self.driver.do(
            f"run {kernel.name}", "launch",
            kernel.handle.value, *dimensions.blocks, *dimensions.threads, 0, self.value, ctypes.addressof(places), None,
        )  # fmt: skip


def check_own(device: int, *memory: DeviceMemory) -> None:
    """Raises BackendError for a block of another device."""
    for block in memory:
        if block.ordinal != device:
            what = f"a block of device {block.ordinal} in a copy within device {device}"
            raise BackendError(what, remedy="use memcpy_from_peer")
