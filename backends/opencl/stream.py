"""An in-order OpenCL queue as a stream, with events and gates that the host opens."""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from ctypes import byref, c_int32, c_size_t, c_uint64, c_void_p
from typing import Any

from ..accelerator.queue_stream import GatedStream, Marker
from ..device import Kernel, LaunchDimensions
from .errors import check
from .launches import sizes_of
from .library import Device

EXECUTION_STATUS, STARTED, ENDED = 0x11D3, 0x1282, 0x1283  # the last two of profiling

_Sizes = c_size_t * 3


class Handle:
    """An event of OpenCL; released when nobody knows it any more."""

    def __init__(self, device: Device, value: int):
        self.device, self.value = device, value
        weakref.finalize(self, device.clReleaseEvent, value).atexit = False

    @property
    def is_reached(self) -> bool:
        """0: complete; above: queued, submitted or running; below: the code of an error."""
        status = c_int32()
        code = self.device.clGetEventInfo(self.value, EXECUTION_STATUS, 4, ctypes.addressof(status), None)
        check(code, "ask an event")
        return status.value <= 0

    def wait(self) -> None:
        check(self.device.clWaitForEvents(1, (c_void_p * 1)(self.value)), "wait for an event")

    def time(self, what: int) -> int:
        """Nanoseconds on the device's clock."""
        at = c_uint64()
        check(self.device.clGetEventProfilingInfo(self.value, what, 8, ctypes.addressof(at), None), "read a time")
        return at.value

    def span(self) -> tuple[int, int]:
        """When the command whose event it is began and ended."""
        return self.time(STARTED), self.time(ENDED)


class Between:
    """What lies between two markers."""

    def __init__(self, before: Handle, after: Handle):
        self._before, self._after = before, after

    def span(self) -> tuple[int, int]:
        return self._before.time(ENDED), self._after.time(ENDED)


@functools.lru_cache(1024)
def _sizes(dimensions: LaunchDimensions) -> tuple[Any, Any]:
    """(All items, those of a group) as OpenCL takes them."""
    sizes, group = sizes_of(dimensions)
    return _Sizes(*sizes), _Sizes(*group)


class OpenClStream(GatedStream):
    """One queue of OpenCL, and one whose commands the calling thread runs. A queue without commands is not waited for:
    they are counted when their calls have returned, which no other thread can have relied on before.
    """

    def __init__(self, executor: Any, queue: int):
        super().__init__(executor)
        self._device, self._context, self.queue = executor.device, executor.context, queue
        self._owner, self._near = executor, 0
        self._numbers, self._uses, self._finished = itertools.count(1), 0, 0
        self._is_lent = False
        weakref.finalize(self, self._device.clReleaseCommandQueue, queue).atexit = False

    def near(self) -> int:
        """The queue whose commands this thread runs. All other work is done."""
        self._finish()
        if not self._near:
            self._near = self._owner.create_queue(near=True)
            weakref.finalize(self, self._device.clReleaseCommandQueue, self._near).atexit = False
        return self._near

    def note_use(self) -> None:
        """A command was enqueued. Each has a number of its own, so that threads which note theirs at once hide none."""
        self._uses = next(self._numbers)

    def lend(self) -> int:
        self._is_lent = True  # others enqueue what they like, whenever they like
        return self.queue

    def _finish(self) -> None:
        uses = self._uses
        if uses != self._finished or self._is_lent:
            check(self._device.clFinish(self.queue), "finish a queue")
            self._finished = uses

    def marker(self) -> Handle:
        event = c_void_p()
        check(self._device.clEnqueueMarkerWithWaitList(self.queue, 0, None, byref(event)), "enqueue a marker")
        self.note_use()
        check(self._device.clFlush(self.queue), "start a queue")
        assert event.value is not None
        return Handle(self._device, event.value)

    def seconds(self, began: Marker, ended: Marker) -> float:
        assert isinstance(began, Handle) and isinstance(ended, Handle)
        return (ended.time(ENDED) - began.time(ENDED)) * 1e-9

    def _wait(self, marker: Marker) -> None:
        assert isinstance(marker, Handle)
        waited = (c_void_p * 1)(marker.value)
        check(self._device.clEnqueueBarrierWithWaitList(self.queue, 1, waited, None), "enqueue a barrier")
        self.note_use()

    def _gate(self) -> Callable[[], object]:
        code = c_int32()
        value = self._device.clCreateUserEvent(self._context, byref(code))
        check(code.value, "create an event")
        gate = Handle(self._device, value)
        self._wait(gate)
        check(self._device.clFlush(self.queue), "start a queue")
        return lambda: self._device.clSetUserEventStatus(gate.value, 0)

    def _enqueued(self, code: int, event: c_void_p | None, what: str) -> None:
        """Note the event of a command, if the stream is watched. Raises BackendError for a code of an error."""
        if code:
            check(code, what)
        if event is not None and event.value is not None and self._notes is not None:
            self._notes.append(Handle(self._device, event.value))

    def _between(self, before: Marker, after: Marker) -> Between:
        assert isinstance(before, Handle) and isinstance(after, Handle)
        return Between(before, after)

    def _event(self) -> c_void_p | None:
        return None if self._notes is None else c_void_p()

    def _copy(self, to: int, source: int, size: int) -> None:
        event = self._event()
        place = None if event is None else byref(event)
        code = self._device.clEnqueueMemcpyINTEL(self.queue, 0, to, source, size, 0, None, place)
        self.note_use()
        self._enqueued(code, event, f"copy {size} bytes")

    def _fill(self, address: int, pattern: bytes, size: int) -> None:
        count, event = len(pattern), self._event()
        place = None if event is None else byref(event)
        code = self._device.clEnqueueMemFillINTEL(self.queue, address, pattern, count, size, 0, None, place)
        self.note_use()
        self._enqueued(code, event, f"fill {size} bytes")

    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None:
        self.start_in(self.queue, kernel, dimensions, addresses)
        self.note_use()

    def start_in(self, queue: int, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None:
        """`start` in one of the two queues."""
        (sizes, group), handle = _sizes(dimensions), kernel.handle
        give, device = self._device.clSetKernelArgMemPointerINTEL, self._device
        event = self._event()
        place = None if event is None else byref(event)
        with self._owner.giving:
            for number, address in enumerate(addresses):
                check(give(handle.value, number, address), f"give {kernel.name} its argument {number}")
            code = device.clEnqueueNDRangeKernel(queue, handle.value, 3, None, sizes, group, 0, None, place)
        self._enqueued(code, event, f"run {kernel.name}")
