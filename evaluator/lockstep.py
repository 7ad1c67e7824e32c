"""Simulated devices that run one at a time, in a fixed order, and exchange values at collectives.

A device is a thread that runs until it has to wait; then the next device whose wait is over runs. Results are
therefore reproducible, no lock is needed, and a deadlock of devices is detected at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ..hlo.errors import CollectiveError
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from .reference.context import Pending, Value

T = TypeVar("T")


class _Stopped(BaseException):
    """Ends a device's thread after another device failed."""


@dataclass(eq=False)
class Turns:
    """The turns of the devices.

    ready[d]: returns whether device d can continue; None once it has ended. place[d]: the instruction at which it
    waits, and what it waits for, in words.
    """

    names: Sequence[str]
    ready: list[Callable[[], bool] | None] = field(init=False)
    place: list[tuple[Instruction, str] | None] = field(init=False)
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.ready, self.place = [_always] * len(self.names), [None] * len(self.names)
        self.gates = [threading.Semaphore(0) for _ in self.names]

    def run(self, programs: Sequence[Callable[[], T]]) -> list[T]:
        """Run one program per device to the end and return their results. Raises the first exception of any device."""
        if len(programs) == 1:
            return [programs[0]()]
        results: dict[int, T] = {}

        def live(device: int) -> None:
            self.gates[device].acquire()
            try:
                if self.error is None:
                    results[device] = programs[device]()
            except _Stopped:
                pass
            except BaseException as error:  # of any kind: run raises it in the caller's thread
                self.error = self.error or error
            finally:
                self.ready[device] = None
                self._pass_on(device)

        threads = [
            threading.Thread(target=live, args=(d,), name=name, daemon=True) for d, name in enumerate(self.names)
        ]
        for thread in threads:
            thread.start()
        self.gates[0].release()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C: the devices end at their next wait
            self.error = error
            raise
        if self.error is not None:
            raise self.error
        return [results[d] for d in range(len(programs))]

    def until(self, device: int, ready: Callable[[], bool], instruction: Instruction, what: str) -> None:
        """Return once `ready()` is true; other devices run meanwhile. Raises CollectiveError if all devices wait.

        what: what the device waits for, in words.
        """
        if ready():
            return
        self.ready[device], self.place[device] = ready, (instruction, what)
        if len(self.names) == 1:
            raise self._deadlock()
        self._pass_on(device)
        self.gates[device].acquire()
        self.ready[device] = _always
        if self.error is not None:
            raise _Stopped

    def _pass_on(self, device: int) -> None:
        """Let the next device that can continue run."""
        count = len(self.names)
        waiting = [d % count for d in range(device + 1, device + 1 + count) if self.ready[d % count] is not None]
        for other in waiting:
            ready = self.ready[other]
            if self.error is not None or (ready is not None and ready()):
                self.gates[other].release()
                return
        if waiting:
            self.error = self._deadlock()
            self.gates[waiting[0]].release()

    def _deadlock(self) -> CollectiveError:
        waiting = [d for d, ready in enumerate(self.ready) if ready is not None]
        lines = []
        for d in waiting[:SHOWN]:
            place = self.place[d]
            if place is not None:
                line = f" (line {place[0].location.line})" if place[0].location else ""
                lines.append(f"{self.names[d]} waits at {place[0].name}{line} for {place[1]}")
        more = [f"{len(waiting) - SHOWN} more wait"] if len(waiting) > SHOWN else []
        ended = [self.names[d] for d, ready in enumerate(self.ready) if ready is None]
        ends = [f"{', '.join(ended[:SHOWN])}{' …' if len(ended) > SHOWN else ''} ended without it"] if ended else []
        first = self.place[waiting[0]]
        return CollectiveError(
            "no device can go on: " + "; ".join([*lines, *more, *ends]),
            location=first[0].location if first else None,
            remedy="all devices of a group must reach the same collectives in the same order",
        )


SHOWN = 4
"""Number of devices that an error message lists."""


def _always() -> bool:
    return True


@dataclass(eq=False)
class Meeting:
    """One execution of one collective by one group. brought: the value of each device that has reached it."""

    first: Instruction
    signature: tuple[Hashable, ...]
    brought: dict[int, Value] = field(default_factory=dict)


@dataclass(eq=False)
class World:
    """All devices of one evaluation: their turns, their meetings, and values that were sent but not yet received."""

    replicas: int = 1
    partitions: int = 1
    turns: Turns = field(init=False)
    meetings: dict[tuple[Hashable, int], Meeting] = field(default_factory=dict)
    visits: dict[tuple[Hashable, int], int] = field(default_factory=dict)
    mail: dict[Hashable, deque[Value]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.turns = Turns([self.name(d) for d in range(self.replicas * self.partitions)])

    def name(self, device: int) -> str:
        replica, partition = divmod(device, self.partitions)
        if self.partitions == 1:
            return f"replica {replica}"
        return f"partition {partition}" if self.replicas == 1 else f"replica {replica}, partition {partition}"

    def meet(self, device: int, instruction: Instruction, members: tuple[int, ...], value: Value) -> Pending:
        """Bring a value to the group's next meeting. The result is pending: the values of all members, in their order.

        Raises CollectiveError if another member has reached a different collective.
        """
        key = (instruction.attributes.get("channel_id"), members)
        number = self.visits[key, device] = self.visits.get((key, device), 0) + 1
        signature = _signature(instruction)
        meeting = self.meetings.setdefault((key, number), Meeting(instruction, signature))
        if meeting.signature != signature:
            raise CollectiveError(
                f"{self.name(device)} reaches {instruction.opcode.value} {instruction.name} where "
                f"{self.name(next(iter(meeting.brought)))} reached {meeting.first.opcode.value} {meeting.first.name}",
                location=instruction.location,
                remedy="all devices of a group must reach the same collectives with "
                "operands of the same shapes, in the same order",
            )
        meeting.brought[device] = value

        def finish() -> list[Value]:
            if len(meeting.brought) < len(members):
                absent = ", ".join(self.name(m) for m in members if m not in meeting.brought)
                self.turns.until(device, lambda: len(meeting.brought) == len(members), instruction, absent)
            return [meeting.brought[m] for m in members]

        return Pending(finish)

    def post(self, address: Hashable, value: Value) -> None:
        """Append a value to the queue of an address."""
        self.mail.setdefault(address, deque()).append(value)

    def collect(self, device: int, instruction: Instruction, addresses: Sequence[Hashable], what: str) -> Value:
        """Wait for a value at any of the addresses; returns the oldest value of the first address that has one."""
        self.turns.until(device, lambda: any(self.mail.get(a) for a in addresses), instruction, what)
        return next(self.mail[a] for a in addresses if self.mail.get(a)).popleft()


_STARTS = {Op.ALL_REDUCE_START: Op.ALL_REDUCE, Op.ALL_GATHER_START: Op.ALL_GATHER}


def _signature(instruction: Instruction) -> tuple[Hashable, ...]:
    """The properties that the instructions of all members must share."""
    return (
        _STARTS.get(instruction.opcode, instruction.opcode),
        instruction.dimensions,
        tuple((s.dtype, s.dims) for o in instruction.operands for _, s in o.shape.leaves()),
    )
