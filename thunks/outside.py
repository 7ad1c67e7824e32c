"""What a run does beyond its memory: exchanges with other devices, values from and for a host.

Native code calls one function, `void (ptr frame, ptr number, ptr bytes)`, for each thunk of this kind. The frame's port
does what the thunk says, on a transport and on feeds; backends implement these. What goes wrong is kept in the port and
stops the frame, because no exception passes through native code.
"""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..hlo.devices import Devices
from ..hlo.shapes import Shape
from .kinds import CollectiveDoneThunk, CollectiveStartThunk, InfeedThunk, Meeting, OutfeedThunk, slice_of


class Transport(ABC):
    """Brings the bytes of a group of devices together. One object serves one run of a program on all of its devices.

    Exchanges meet by channel and group, the n-th of a device with the n-th of the others. Any failure ends all devices.
    """

    @abstractmethod
    def start(self, device: int, thunk: CollectiveStartThunk, data: np.ndarray) -> Any:
        """Bring bytes (uint8), which the transport owns from now on. It waits for nobody. Returns what `done` takes."""

    @abstractmethod
    def done(self, device: int, ticket: Any, out: np.ndarray) -> None:
        """Wait for an exchange, and write what this device gets to `out` (uint8)."""

    @abstractmethod
    def check(self) -> None:
        """Raise if the run has failed on another device."""


class Feeds(ABC):
    """The queues between a host and one device. A value is a list of arrays."""

    @abstractmethod
    def take(self, thunk: InfeedThunk, transport: Transport) -> Sequence[np.ndarray]:
        """Wait for the next value of the infeed. Raises InputError if none comes in time, or if it does not fit."""

    @abstractmethod
    def give(self, value: Sequence[np.ndarray]) -> None:
        """Append a value to the outfeed."""


class Running(Protocol):
    """A frame, compiled or interpreted."""

    address: int
    run: Callable[[], object]

    def stop(self, wanted: bool = True) -> None: ...

    def place(self, replica: int, partition: int) -> None: ...


@dataclass(eq=False)
class Port:
    """One device in one run. meetings: those of the program, by number."""

    meetings: Sequence[Meeting]
    device: int
    devices: Devices
    transport: Transport
    feeds: Feeds
    error: BaseException | None = None
    _frame: Running | None = None
    _turning: threading.Lock = field(default_factory=threading.Lock)
    _tickets: dict[str, Any] = field(default_factory=dict)
    _given: Sequence[np.ndarray] = ()
    _made: list[np.ndarray] = field(default_factory=list)

    def run(self, frame: Running) -> None:
        """Run a frame with this port. Raises what went wrong in it, also outside of this device."""
        frame.place(*divmod(self.device, self.devices.partitions))
        _PORTS[frame.address] = self
        self._frame = frame
        try:
            self.transport.check()
            frame.run()
        finally:
            del _PORTS[frame.address]
            with self._turning:
                self._frame = None
                frame.stop(False)
        if self.error is not None:
            raise self.error
        self.transport.check()

    def stop(self) -> None:
        """Let the run end before its next kernel. Another thread may call it."""
        with self._turning:
            if self._frame is not None:
                self._frame.stop()

    def meet(self, number: int, address: int) -> None:
        """Do what a thunk says on the bytes at an address."""
        if self.error is not None:
            return
        try:
            thunk = self.meetings[number]
            _DO[type(thunk)](self, thunk, _bytes_at(address, slice_of(thunk).size))
        except BaseException as error:  # `run` raises it
            self.error = error
            self.stop()

    def _start(self, thunk: CollectiveStartThunk, data: np.ndarray) -> None:
        self._tickets[thunk.name] = self.transport.start(self.device, thunk, data.copy())

    def _done(self, thunk: CollectiveDoneThunk, data: np.ndarray) -> None:
        self.transport.done(self.device, self._tickets.pop(thunk.name), data)

    def _infeed(self, thunk: InfeedThunk, data: np.ndarray) -> None:
        if thunk.leaf == 0:
            self._given = self.feeds.take(thunk, self.transport)
        data[:] = np.ascontiguousarray(self._given[thunk.leaf]).reshape(-1).view(np.uint8)

    def _outfeed(self, thunk: OutfeedThunk, data: np.ndarray) -> None:
        self._made.append(_array(data, thunk.shape))
        if thunk.leaf == thunk.leaves - 1:
            value, self._made = self._made, []
            self.feeds.give(value)


def _bytes_at(address: int, size: int) -> np.ndarray:
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


def _array(data: np.ndarray, shape: Shape) -> np.ndarray:
    """A copy of bytes as an array."""
    return np.frombuffer(data.tobytes(), shape.dtype.numpy).reshape(shape.dims).copy()


_DO: Mapping[type, Callable[[Port, Any, np.ndarray], None]] = {
    CollectiveStartThunk: Port._start,
    CollectiveDoneThunk: Port._done,
    InfeedThunk: Port._infeed,
    OutfeedThunk: Port._outfeed,
}

_PORTS: dict[int, Port] = {}
"""Address of a frame that runs → its port."""


def _meet(frame: int, number: int | None, address: int | None) -> None:
    _PORTS[frame].meet(number or 0, address or 0)


_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(_meet)

MEET: int = ctypes.cast(_FUNCTION, ctypes.c_void_p).value or 0
"""The address of the function that native code calls."""
