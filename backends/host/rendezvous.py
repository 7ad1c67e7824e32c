"""The transport between devices of one process: each is a thread, and their exchanges meet here."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...hlo.devices import Devices
from ...hlo.errors import CollectiveError
from ...thunks.kinds import CollectiveStartThunk, Exchange
from ...thunks.outside import Transport


class Ended(Exception):
    """Another device has failed."""


@dataclass(eq=False)
class _Meeting:
    """An exchange of one group. first, thunk: the device that came first, and its thunk. brought: what each brought."""

    first: int
    thunk: CollectiveStartThunk
    brought: dict[int, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Ticket:
    """What a device waits for. ready: whether it is there. absent: the devices that it waits for. take: the pieces that
    it gets. part: of an all-to-all, the number of this device's part of each piece.
    """

    thunk: CollectiveStartThunk
    ready: Callable[[], bool]
    absent: Callable[[], list[int]]
    take: Callable[[], list[np.ndarray]]
    part: int | None = None


class Rendezvous(Transport):
    """The meetings of one run. limit: seconds that a device waits for others.

    error: the first that a device raised. It ends all devices: those that wait raise Ended.
    """

    def __init__(self, devices: Devices, limit: float):
        self._devices, self._limit = devices, limit
        self._changed = threading.Condition()
        self._meetings: dict[tuple[Hashable, int], _Meeting] = {}
        self._visits: dict[tuple[Hashable, int], int] = {}
        self._mail: dict[Hashable, deque[np.ndarray]] = {}
        self._waiting: dict[int, _Ticket] = {}
        self._ended: set[int] = set()
        self._stops: list[Callable[[], None]] = []
        self.error: BaseException | None = None

    # -- the run -------------------------------------------------------------------------------------------------------
    def add(self, stop: Callable[[], None]) -> None:
        """stop: called when the run fails."""
        self._stops.append(stop)

    def check(self) -> None:
        if self.error is not None:
            raise Ended

    def fail(self, error: BaseException) -> None:
        """End all devices. The first error counts."""
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()
        for stop in self._stops:
            stop()

    def end(self, device: int) -> None:
        """The device has no more to do."""
        with self._changed:
            self._ended.add(device)
            self._changed.notify_all()

    # -- exchanges -----------------------------------------------------------------------------------------------------
    def start(self, device: int, thunk: CollectiveStartThunk, data: np.ndarray) -> _Ticket:
        with self._changed:
            self.check()
            begin = self._sent if thunk.exchange is Exchange.PERMUTE else self._met
            ticket = begin(device, thunk, data)
            self._changed.notify_all()
            return ticket

    def _sent(self, device: int, thunk: CollectiveStartThunk, data: np.ndarray) -> _Ticket:
        """Send to the targets of this device, and receive from its source."""
        for source, target in thunk.groups:
            if source == device:
                self._mail.setdefault((thunk.channel, source, target), deque()).append(data)
        sources = [source for source, target in thunk.groups if target == device][:1]
        if not sources:
            return _Ticket(thunk, lambda: True, list, list)
        box = self._mail.setdefault((thunk.channel, sources[0], device), deque())
        return _Ticket(thunk, lambda: bool(box), lambda: sources, lambda: [box.popleft()])

    def _met(self, device: int, thunk: CollectiveStartThunk, data: np.ndarray) -> _Ticket:
        members = next((group for group in thunk.groups if device in group), None)
        if members is None:
            if thunk.exchange is Exchange.BROADCAST:  # nobody sends to this device
                return _Ticket(thunk, lambda: True, list, list)
            name = self._devices.name(device)
            remedy = "each device must be in one of its replica_groups"
            raise CollectiveError(f"no group of {thunk.what} names {name}", remedy=remedy)
        key = thunk.channel, members
        number = self._visits[key, device] = self._visits.get((key, device), 0) + 1
        meeting = self._meetings.setdefault((key, number), _Meeting(device, thunk))
        self._check_same(meeting, device, thunk)
        meeting.brought[device] = data
        if len(meeting.brought) == len(members):
            del self._meetings[key, number]
        part = members.index(device) if thunk.exchange is Exchange.ALL_TO_ALL else None
        chosen = members[:1] if thunk.exchange is Exchange.BROADCAST else members
        return _Ticket(
            thunk,
            lambda: len(meeting.brought) == len(members),
            lambda: [m for m in members if m not in meeting.brought],
            lambda: [meeting.brought[m] for m in chosen],
            part,
        )

    def _check_same(self, meeting: _Meeting, device: int, thunk: CollectiveStartThunk) -> None:
        if _signature(meeting.thunk) != _signature(thunk):
            raise CollectiveError(
                f"{self._devices.name(device)} reaches {thunk.what} where {self._devices.name(meeting.first)} reached "
                f"{meeting.thunk.what}",
                remedy="all devices of a group must reach the same collectives with "
                "operands of the same shapes, in the same order",
            )

    def done(self, device: int, ticket: _Ticket, out: np.ndarray) -> None:
        with self._changed:
            self._wait(device, ticket)
            parts = ticket.take()
        if ticket.part is not None:
            parts = [np.split(part, len(parts))[ticket.part] for part in parts]
        size = sum(map(len, parts))
        if size > len(out) or (parts and size < len(out) and ticket.thunk.exchange is not Exchange.ALL_GATHER):
            raise CollectiveError(f"{ticket.thunk.what} gives {size} bytes, where {len(out)} are expected")
        if parts:
            np.concatenate(parts, out=out[:size])
        out[size:] = 0  # of a smaller group, or of a device that nobody sends to

    def _wait(self, device: int, ticket: _Ticket) -> None:
        """Until the exchange is complete. Raises CollectiveError if it never will be, or not within the limit."""
        end = time.monotonic() + self._limit
        self._waiting[device] = ticket
        try:
            while not ticket.ready():
                self.check()
                if self._is_stuck():
                    raise CollectiveError(self._state(), remedy="all devices of a group must reach its collectives")
                left = end - time.monotonic()
                if left <= 0:
                    raise CollectiveError(
                        f"{self._place(device, ticket)}, for more than {self._limit:g} s",
                        remedy="raise the limit if they compute that long (executable.wait_limit, --wait-limit)",
                    )
                self._changed.wait(left)
        finally:
            del self._waiting[device]

    def _is_stuck(self) -> bool:
        """Whether no device can go on: each has ended or waits for what is not there."""
        return all(
            device in self._ended or (device in self._waiting and not self._waiting[device].ready())
            for device in range(self._devices.count)
        )

    def _state(self) -> str:
        waiting = [self._place(device, ticket) for device, ticket in sorted(self._waiting.items())]
        absent = {other for ticket in self._waiting.values() for other in ticket.absent()}
        ended = [f"{self._devices.name(device)} ended without it" for device in sorted(absent & self._ended)]
        return "; ".join([*waiting, *ended])

    def _place(self, device: int, ticket: _Ticket) -> str:
        others = ", ".join(map(self._devices.name, ticket.absent()))
        return f"{self._devices.name(device)} waits at {ticket.thunk.what} for {others}"


def _signature(thunk: CollectiveStartThunk) -> tuple[Any, ...]:
    """What the thunks of all devices that meet must share."""
    return thunk.exchange, thunk.what.partition(" ")[0], thunk.source.size
