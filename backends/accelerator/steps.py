"""The thunks of a program as calls on a stream: launches, copies, and control flow that the host decides."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...codegen.load import LoadedCode
from ...ffi.calls import raise_failed
from ...ffi.sites import Site
from ...planning.allocation import BufferSlice
from ...thunks.kinds import (
    Access,
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    ProfileThunk,
    SequentialThunk,
    Thunk,
    WhileThunk,
    kind_of,
)
from ..base import BackendError
from ..device import Kernel, LaunchDimensions
from .calls import DeviceCall, enqueue
from .device import Device, Queue
from .launches import Bases, Launch, Step
from .text import Work


@dataclass(frozen=True, slots=True)
class Entry:
    """A loaded kernel and its work. flush: whether subnormals count as zero in it. nanoseconds: as in Launch."""

    kernel: Kernel
    work: Work
    flush: bool = False
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Built:
    """step: the whole program. scratch: bytes of the items' scratch memory, the allocation behind all others."""

    step: Step
    scratch: int


class Builder:
    """Makes steps of thunks. scratch: the number of the allocation that holds items' scratch memory. calls: symbol of
    a kernel → the call of a handler on the device.
    """

    def __init__(
        self,
        device: Device,
        entries: Mapping[str, Entry],
        code: LoadedCode | None,
        scratch: int,
        calls: Mapping[str, tuple[DeviceCall, Site]],
    ):
        self._device, self._entries, self._code = device, entries, code
        self._place, self._calls, self._scratch = scratch, calls, 0
        self._read = _read_in_place if device.shares_memory else _read

    def build(self, root: SequentialThunk) -> Built:
        step = self._step(root)
        return Built(step, self._scratch)

    def _step(self, thunk: Thunk) -> Step:
        match thunk:
            case SequentialThunk():
                return self._in_order(thunk.thunks)
            case KernelThunk():
                if thunk.symbol in self._calls:
                    return _device_call(thunk, *self._calls[thunk.symbol])
                return self._in_order([thunk]) if thunk.symbol in self._entries else self._host_call(thunk)
            case CopyThunk():
                return _copy(thunk.source, thunk.destination)
            case WhileThunk():
                return _while(self._step(thunk.condition), self._step(thunk.body), thunk.predicate, self._read)
            case ConditionalThunk():
                return _conditional(thunk, [self._step(branch) for branch in thunk.branches], self._read)
            case ProfileThunk():
                return _mark(2 * thunk.id + (not thunk.begin))
            case _:
                raise BackendError(f"devices have no {kind_of(thunk)} thunks", remedy="run it on the host")

    def _in_order(self, thunks: Sequence[Thunk]) -> Step:
        """Launches that follow each other are one step."""
        steps: list[Step] = []
        rows: list[Launch] = []
        for thunk in thunks:
            if isinstance(thunk, KernelThunk) and thunk.symbol in self._entries:
                rows += self._launch(thunk, self._entries[thunk.symbol])
                continue
            if rows:
                steps.append(self._device.launches(rows))
                rows = []
            steps.append(self._step(thunk))
        if rows:
            steps.append(self._device.launches(rows))
        return steps[0] if len(steps) == 1 else _each(steps)

    def _launch(self, thunk: KernelThunk, entry: Entry) -> Iterator[Launch]:
        """The launch of a kernel; none of one without work."""
        work = entry.work
        if work.items:
            places = [(use.slice.allocation, use.slice.offset) for use in thunk.arguments]
            if work.private:
                self._scratch = max(self._scratch, work.private * work.items)
                places[-1] = (self._place, 0)
            yield Launch(entry.kernel, self._dimensions(work), tuple(places), entry.nanoseconds)

    def _dimensions(self, work: Work) -> LaunchDimensions:
        if work.group is not None:
            return LaunchDimensions((work.group.steps, 1, 1), (work.group.across, work.group.down, 1))
        target = self._device.code_target
        threads = min(target.row_group if work.walks else target.group, work.items)
        width = min(target.lanes or work.items, work.items)
        across, rows = min(threads, width), -(-work.items // width)
        down = min(threads // across, rows)
        return LaunchDimensions((-(-width // across), -(-rows // down), 1), (across, down, 1))

    def _host_call(self, thunk: KernelThunk) -> Step:
        """Call a library or a handler: on the device's memory if the host shares it, else on copies of the buffers."""
        assert self._code is not None
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(thunk.arguments))(self._code.address(thunk.symbol))
        uses = thunk.arguments

        def in_place(stream: Queue, bases: Bases) -> None:
            stream.synchronize()
            with stream.noted():
                call(*(bases[use.slice.allocation] + use.slice.offset for use in uses))
            raise_failed()

        def host_call(stream: Queue, bases: Bases) -> None:
            arrays = [_aligned(use.slice.size) for use in uses]
            for use, array in zip(uses, arrays, strict=True):
                stream.copy(array.ctypes.data, bases[use.slice.allocation] + use.slice.offset, use.slice.size, array)
            stream.synchronize()
            call(*(array.ctypes.data for array in arrays))
            raise_failed()
            for use, array in zip(uses, arrays, strict=True):
                if use.access is Access.WRITE:
                    to = bases[use.slice.allocation] + use.slice.offset
                    stream.copy(to, array.ctypes.data, use.slice.size, array)

        return in_place if self._device.shares_memory else host_call


def _device_call(thunk: KernelThunk, call: DeviceCall, site: Site) -> Step:
    slices = [use.slice for use in thunk.arguments]

    def device_call(stream: Queue, bases: Bases) -> None:
        enqueue(call, site, stream, [(bases[s.allocation] + s.offset, s.size) for s in slices])

    return device_call


def _aligned(size: int) -> np.ndarray:
    """Bytes at an address that is a multiple of 64, as kernels expect."""
    block = np.empty(size + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + size]


def _mark(number: int) -> Step:
    return lambda stream, bases: stream.mark(number)


def _each(steps: Sequence[Step]) -> Step:
    def run(stream: Queue, bases: Bases) -> None:
        for step in steps:
            step(stream, bases)

    return run


def _copy(source: BufferSlice, destination: BufferSlice) -> Step:
    def copy(stream: Queue, bases: Bases) -> None:
        to = bases[destination.allocation] + destination.offset
        stream.copy(to, bases[source.allocation] + source.offset, source.size)

    return copy


def _read(stream: Queue, bases: Bases, slice: BufferSlice, type_: type[np.generic]) -> int:
    """A number in device memory, when the stream has come so far."""
    value = np.zeros(1, type_)
    stream.copy(value.ctypes.data, bases[slice.allocation] + slice.offset, value.nbytes, value)
    stream.synchronize()
    return int(value[0])


def _read_in_place(stream: Queue, bases: Bases, slice: BufferSlice, type_: type[np.generic]) -> int:
    """As above, for memory that the host shares."""
    stream.synchronize()
    data = (ctypes.c_uint8 * slice.size).from_address(bases[slice.allocation] + slice.offset)
    return int(np.ndarray(1, type_, memoryview(data))[0])


Read = Callable[[Queue, Bases, BufferSlice, type[np.generic]], int]


def _while(condition: Step, body: Step, predicate: BufferSlice, read: Read) -> Step:
    def loop(stream: Queue, bases: Bases) -> None:
        condition(stream, bases)
        while read(stream, bases, predicate, np.uint8):
            body(stream, bases)
            condition(stream, bases)

    return loop


def _conditional(thunk: ConditionalThunk, branches: Sequence[Step], read: Read) -> Step:
    last, is_pred, selector = len(branches) - 1, thunk.selector_is_pred, thunk.selector

    def branch(stream: Queue, bases: Bases) -> None:
        value = read(stream, bases, selector, np.uint8 if is_pred else np.int32)
        chosen = (0 if value else 1) if is_pred else (value if 0 <= value <= last else last)
        branches[chosen](stream, bases)

    return branch
