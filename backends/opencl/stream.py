"""An in-order OpenCL queue as a stream, with events, timers and callbacks of the host."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_int32, c_size_t, c_uint64, c_void_p
from typing import Any

from ...hlo.later import np
from ..device import (
    BackendError,
    DeviceMemory,
    Event,
    Kernel,
    LaunchDimensions,
    Stream,
    Timer,
    bytes_of,
    check_copy,
)
from .errors import check
from .library import Device

EXECUTION_STATUS, STARTED, ENDED = 0x11D3, 0x1282, 0x1283
KEPT = 256
"""Arrays and blocks of pieces of work that a stream keeps before it looks which are done."""

_Sizes = c_size_t * 3


class Handle:
    """An event of OpenCL; released when nobody knows it any more."""

    def __init__(self, device: Device, value: int):
        self.device, self.value = device, value
        weakref.finalize(self, device.clReleaseEvent, value).atexit = False

    @property
    def status(self) -> int:
        """0: complete; above: queued, submitted or running; below: the code of an error."""
        status = c_int32()
        check(
            self.device.clGetEventInfo(self.value, EXECUTION_STATUS, 4, ctypes.addressof(status), None), "ask an event"
        )
        return status.value

    def wait(self) -> None:
        check(self.device.clWaitForEvents(1, (c_void_p * 1)(self.value)), "wait for an event")

    def time(self, what: int) -> int:
        """Nanoseconds on the device's clock."""
        at = c_uint64()
        check(self.device.clGetEventProfilingInfo(self.value, what, 8, ctypes.addressof(at), None), "read a time")
        return at.value


class OpenClEvent(Event):
    """The place at which it was recorded last."""

    def __init__(self) -> None:
        self.handle: Handle | None = None

    @property
    def is_complete(self) -> bool:
        return self.handle is None or self.handle.status <= 0

    def synchronize(self) -> None:
        if self.handle is not None:
            self.handle.wait()


class OpenClTimer(Timer):
    """By the device's clock, between two markers."""

    def __init__(self, stream: OpenClStream):
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
        return max(self._ended.time(ENDED) - self._began.time(ENDED), 0) * 1e-9


class OpenClStream(Stream):
    """One queue. Threads may use it at the same time; the order is that of their calls."""

    def __init__(self, executor: Any, queue: int):
        super().__init__(executor)
        self._device, self._context, self.queue = executor.device, executor.context, queue
        self._lock = threading.Lock()
        self._kept: list[object] = []
        self._failures: list[BaseException] = []
        self._host: ThreadPoolExecutor | None = None
        weakref.finalize(self, self._device.clReleaseCommandQueue, queue).atexit = False

    # -- order ---------------------------------------------------------------------------------------------------------
    def synchronize(self) -> None:
        kept = self._kept
        code = self._device.clFinish(self.queue)
        with self._lock:
            self._kept = [] if self._kept is kept else self._kept
            failures, self._failures = self._failures, []
        if failures:
            raise failures[0]
        check(code, "finish a queue")

    def marker(self) -> Handle:
        """An event that is complete when all work until here is done."""
        event = c_void_p()
        check(self._device.clEnqueueMarkerWithWaitList(self.queue, 0, None, byref(event)), "enqueue a marker")
        check(self._device.clFlush(self.queue), "start a queue")
        assert event.value is not None
        return Handle(self._device, event.value)

    def wait(self, handle: Handle) -> None:
        """Let further work wait for an event."""
        waited = (c_void_p * 1)(handle.value)
        check(self._device.clEnqueueBarrierWithWaitList(self.queue, 1, waited, None), "enqueue a barrier")
        self._keep(handle)

    def record(self, event: Event) -> None:
        assert isinstance(event, OpenClEvent)
        event.handle = self.marker()

    def wait_for(self, other: Event | Stream) -> None:
        handle = other.marker() if isinstance(other, OpenClStream) else getattr(other, "handle", None)
        if handle is not None:
            self.wait(handle)

    def enqueue(self, work: Callable[[], object]) -> None:
        """The queue stands still at an event of the host's, which a thread completes after the work."""
        code = c_int32()
        gate = self._device.clCreateUserEvent(self._context, byref(code))
        check(code.value, "create an event")
        opened = Handle(self._device, gate)
        with self._lock:
            reached = self.marker()
            self.wait_unlocked(opened)
            if self._host is None:
                self._host = ThreadPoolExecutor(1, thread_name_prefix="opencl-stream")
            self._host.submit(self._work, reached, work, opened)
        check(self._device.clFlush(self.queue), "start a queue")

    def wait_unlocked(self, handle: Handle) -> None:
        waited = (c_void_p * 1)(handle.value)
        check(self._device.clEnqueueBarrierWithWaitList(self.queue, 1, waited, None), "enqueue a barrier")
        self._kept.append(handle)

    def _work(self, reached: Handle, work: Callable[[], object], opened: Handle) -> None:
        try:
            reached.wait()
            work()
        except BaseException as error:
            with self._lock:
                self._failures.append(error)
        finally:
            self._device.clSetUserEventStatus(opened.value, 0)

    def _keep(self, *what: object) -> None:
        """Keep arrays and blocks until the work that uses them is done."""
        with self._lock:
            self._kept.extend(what)
            full = len(self._kept) > KEPT and not any(isinstance(k, _Until) for k in self._kept[-KEPT:])
        if full:
            until = _Until(self.marker())
            with self._lock:
                done = next((n for n in reversed(range(len(self._kept))) if _is_done(self._kept[n])), -1)
                del self._kept[: done + 1]
                self._kept.append(until)

    # -- work ----------------------------------------------------------------------------------------------------------
    def memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
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
        """Copy between two addresses. keep: what must live until then."""
        if size:
            self._keep(*keep)
            code = self._device.clEnqueueMemcpyINTEL(self.queue, 0, to, source, size, 0, None, None)
            check(code, f"copy {size} bytes")

    def memset(self, memory: DeviceMemory, value: int) -> None:
        if not 0 <= value < 256:
            raise BackendError(f"{value} is no byte", remedy="give a number from 0 to 255")
        self._fill(memory, bytes([value]))

    def memset32(self, memory: DeviceMemory, pattern: int) -> None:
        if memory.size % 4:
            raise BackendError(f"{memory.size} bytes are not a multiple of 4", remedy="use memset")
        self._fill(memory, (pattern & 0xFFFFFFFF).to_bytes(4, "little"))

    def _fill(self, memory: DeviceMemory, pattern: bytes) -> None:
        if memory.size:
            self._keep(memory.owner)
            code = self._device.clEnqueueMemFillINTEL(
                self.queue, memory.address, pattern, len(pattern), memory.size, 0, None, None
            )
            check(code, f"fill {memory.size} bytes")

    def launch(self, kernel: Kernel, dimensions: LaunchDimensions, arguments: Sequence[DeviceMemory]) -> None:
        dimensions.check(self.executor.description())
        kernel.check(arguments)
        self._keep(*(memory.owner for memory in arguments))
        self.start(kernel, dimensions, [memory.address for memory in arguments])

    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None:
        """As `launch`, of what was checked before, on blocks that the caller keeps."""
        sizes = _Sizes(*(b * t for b, t in zip(dimensions.blocks, dimensions.threads, strict=True)))
        group, handle = _Sizes(*dimensions.threads), kernel.handle
        give, device = self._device.clSetKernelArgMemPointerINTEL, self._device
        with handle.lock:  # the arguments of a kernel are its state
            for number, address in enumerate(addresses):
                code = give(handle.value, number, address)
                if code:
                    check(code, f"give {kernel.name} its argument {number}")
            code = device.clEnqueueNDRangeKernel(self.queue, handle.value, 3, None, sizes, group, 0, None, None)
        if code:
            check(code, f"run {kernel.name}")


class _Until:
    """Everything that a stream keeps in front of it is done when its event is."""

    def __init__(self, handle: Handle):
        self.handle = handle


def _is_done(kept: object) -> bool:
    return isinstance(kept, _Until) and kept.handle.status <= 0
