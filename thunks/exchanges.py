"""Steps of a plan that are no kernels → thunks: exchanges between devices, feeds, the number of the device."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping

from ..hlo.conventions import LEAF, PART
from ..hlo.devices import Devices
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.replica_groups import device_groups, device_pairs
from ..hlo.shapes import Shape
from ..planning.plan import BufferSlice, KernelStep
from .kinds import (
    CollectiveDoneThunk,
    CollectiveStartThunk,
    DeviceIdThunk,
    Exchange,
    InfeedThunk,
    OutfeedThunk,
    ProfileThunk,
    Thunk,
)

_EXCHANGES = {
    Op.ALL_GATHER: Exchange.ALL_GATHER,
    Op.ALL_TO_ALL: Exchange.ALL_TO_ALL,
    Op.COLLECTIVE_BROADCAST: Exchange.BROADCAST,
    Op.COLLECTIVE_PERMUTE: Exchange.PERMUTE,
}

_LEAF = re.compile(rf"{LEAF}(\d+) of (\d+) of (.+)")


def thunks_of(step: KernelStep, devices: Devices) -> tuple[Thunk, ...]:
    """The thunks of a step whose opcode is one of OUTSIDE. Raises UnsupportedError for a form that has none."""
    return tuple(_OF[step.instruction.opcode](step, devices))


def _collective(step: KernelStep, devices: Devices) -> Iterator[Thunk]:
    i = step.instruction
    if len(i.operands) != 1 or not i.shape.is_array:
        raise UnsupportedError("plan", f"{i.opcode.value} of several arrays", location=i.location)
    named = device_pairs if i.opcode is Op.COLLECTIVE_PERMUTE else device_groups
    about = str(i.attributes.get("backend_config", ""))
    what = about.removeprefix(PART) if about.startswith(PART) else f"{i.opcode.value} {i.name}"
    for shape in (i.shape, i.operands[0].shape):
        _check_plain(i, shape)
    groups, channel = named(i, devices, "plan"), i.attributes.get("channel_id")
    yield CollectiveStartThunk(i.name, _EXCHANGES[i.opcode], what, groups, _operand(step), channel)
    yield CollectiveDoneThunk(i.name, _results(step)[0])


def _device_id(step: KernelStep, devices: Devices) -> Iterator[Thunk]:
    yield DeviceIdThunk(step.instruction.name, step.instruction.opcode is Op.PARTITION_ID, _results(step)[0])


def _infeed(step: KernelStep, devices: Devices) -> Iterator[Thunk]:
    i, places = step.instruction, _results(step)
    shapes = [shape for _, shape in i.shape.leaves() if shape.is_array]
    if not shapes:
        raise UnsupportedError("plan", "infeed of no array", location=i.location)
    for number, (shape, place) in enumerate(zip(shapes, places, strict=True)):
        _check_plain(i, shape)
        yield InfeedThunk(i.name, number, len(shapes), shape.without_layout(), place)


def _outfeed(step: KernelStep, devices: Devices) -> Iterator[Thunk]:
    i = step.instruction
    shape = i.operands[0].shape
    _check_plain(i, shape)
    found = _LEAF.fullmatch(str(i.attributes.get("backend_config", "")))
    leaf, leaves, name = (int(found[1]), int(found[2]), found[3]) if found else (0, 1, i.name)
    yield OutfeedThunk(name, leaf, leaves, shape.without_layout(), _operand(step))


def _operand(step: KernelStep) -> BufferSlice:
    return step.arguments[step.kernel.operands[0]]


def _results(step: KernelStep) -> list[BufferSlice]:
    return [step.arguments[number] for number in step.kernel.results if number >= 0]


def _check_plain(i: Instruction, shape: Shape) -> None:
    if not shape.is_row_major:
        remedy = f"copy it to {shape.without_layout()} with a row-major layout"
        raise UnsupportedError("plan", f"{i.opcode.value} of {shape}", location=i.location, remedy=remedy)


_OF: Mapping[Op, Callable[[KernelStep, Devices], Iterator[Thunk]]] = {
    **dict.fromkeys(_EXCHANGES, _collective),
    Op.PARTITION_ID: _device_id,
    Op.REPLICA_ID: _device_id,
    Op.INFEED: _infeed,
    Op.OUTFEED: _outfeed,
}


def overlapped(thunks: Iterable[Thunk]) -> tuple[Thunk, ...]:
    """The same thunks, each wait for an exchange right before the first thunk that uses its result, or a mark.

    What stands between does not wait for other devices.
    """
    made: list[Thunk] = []
    waiting = _Waiting()
    for thunk in thunks:
        if isinstance(thunk, CollectiveDoneThunk):
            waiting.add(thunk)
        else:
            made += [*(waiting.all() if isinstance(thunk, ProfileThunk) else waiting.due(thunk)), thunk]
    return (*made, *waiting.all())


class _Waiting:
    """Waits whose results nothing has used yet, in their order, and by the place of the result."""

    def __init__(self) -> None:
        self._dones: dict[int, CollectiveDoneThunk] = {}
        self._places: dict[int, list[tuple[int, int]]] = {}  # allocation → sorted (offset, number)
        self._count = self._largest = 0

    def add(self, done: CollectiveDoneThunk) -> None:
        place = done.destination
        insort(self._places.setdefault(place.allocation, []), (place.offset, self._count))
        self._dones[self._count] = done
        self._count += 1
        self._largest = max(self._largest, place.size)

    def all(self) -> list[CollectiveDoneThunk]:
        """All, which then no longer wait."""
        return [self._taken(number) for number in list(self._dones)]

    def due(self, thunk: Thunk) -> list[CollectiveDoneThunk]:
        """Those whose result the thunk uses, which then no longer wait."""
        found: set[int] = set()
        for use in thunk.uses if self._dones else ():
            place = use.slice
            rows = self._places.get(place.allocation, [])
            first, end = (bisect_left(rows, (at,)) for at in (place.offset - self._largest, place.offset + place.size))
            near = (number for _, number in rows[first:end])
            found |= {number for number in near if self._dones[number].destination.overlaps(place)}
        return [self._taken(number) for number in sorted(found)]

    def _taken(self, number: int) -> CollectiveDoneThunk:
        done = self._dones.pop(number)
        rows = self._places[done.destination.allocation]
        del rows[bisect_left(rows, (done.destination.offset, number))]
        return done
