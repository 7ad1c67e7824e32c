"""The thunks: immutable steps of a program. Each declares the buffers that it reads and writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, StrEnum
from itertools import chain

from ..hlo.records import dataclass, replace
from ..hlo.shapes import Shape
from ..planning.allocation import BufferSlice


class Access(Enum):
    READ = "read"
    WRITE = "write"  # the thunk may also read there, as an in-place kernel does


@dataclass(frozen=True, slots=True)
class BufferUse:
    """A thunk's declared use of a slice. Two thunks conflict if their uses overlap and one of them writes."""

    slice: BufferSlice
    access: Access

    def conflicts(self, other: BufferUse) -> bool:
        return Access.WRITE in (self.access, other.access) and self.slice.overlaps(other.slice)


def read(slice: BufferSlice) -> BufferUse:
    return BufferUse(slice, Access.READ)


def write(slice: BufferSlice) -> BufferUse:
    return BufferUse(slice, Access.WRITE)


CHUNKS = 64
"""The most chunks of a kernel: several for each thread, so that one that is late delays the others little."""


@dataclass(frozen=True, slots=True)
class Split:
    """The steps of a kernel that several threads may share. extent: their number. least: the fewest in a chunk.

    private: bytes of the last argument, if that is scratch memory: each thread but the caller's passes its own instead.
    """

    extent: int
    least: int
    private: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.extent:
            raise ValueError(f"a chunk has {self.least} steps or more, and all have {self.extent}")

    @property
    def chunk(self) -> int:
        """Steps of each chunk but the last: a multiple of `least`. It does not depend on the number of threads."""
        return self.least * -(-self.extent // (self.least * CHUNKS))


@dataclass(frozen=True, slots=True)
class KernelThunk:
    """Call `symbol` with one pointer per use, in order. name: that of the HLO instruction.

    split: the function has two more arguments, `i64 begin, i64 end`, and is called once for each chunk of steps, in any
    order and by several threads at once (codegen/pool.py). None: one call does it all.
    """

    name: str
    symbol: str
    arguments: tuple[BufferUse, ...]
    split: Split | None = None

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return self.arguments


@dataclass(frozen=True, slots=True)
class CopyThunk:
    """Copy bytes between two slices of equal size that do not overlap."""

    name: str
    source: BufferSlice
    destination: BufferSlice

    def __post_init__(self) -> None:
        if self.source.size != self.destination.size or self.source.overlaps(self.destination):
            raise ValueError(f"copy {self.name}: {self.source} and {self.destination} overlap or differ in size")

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return read(self.source), write(self.destination)


@dataclass(frozen=True, slots=True)
class SequentialThunk:
    """Run thunks in order."""

    thunks: tuple[Thunk, ...]
    name: str = "sequence"

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return tuple(dict.fromkeys(chain.from_iterable(t.uses for t in self.thunks)))

    def walk(self) -> Iterator[Thunk]:
        """All nested thunks, outer before inner, without this one."""
        stack: list[Thunk] = list(reversed(self.thunks))
        while stack:
            thunk = stack.pop()
            yield thunk
            stack.extend(reversed(children(thunk)))


@dataclass(frozen=True, slots=True)
class WhileThunk:
    """Run `condition`. While the pred at `predicate` is true, run `body`, then `condition` again."""

    name: str
    condition: SequentialThunk
    body: SequentialThunk
    predicate: BufferSlice
    trip_count: int | None = None

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return tuple(dict.fromkeys((*self.condition.uses, *self.body.uses, read(self.predicate))))


@dataclass(frozen=True, slots=True)
class ConditionalThunk:
    """Run one branch. A pred selects branch 0 if true, else 1; an s32 out of range selects the last branch."""

    name: str
    selector: BufferSlice
    selector_is_pred: bool
    branches: tuple[SequentialThunk, ...]

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        inner = chain.from_iterable(b.uses for b in self.branches)
        return tuple(dict.fromkeys((read(self.selector), *inner)))


@dataclass(frozen=True, slots=True)
class ProfileThunk:
    """Note the time at which what `name` stands for begins or ends. id: a number >= 0, its own in the program.

    Ends close the last open begin of their sequence, so that intervals nest.
    """

    name: str
    id: int
    begin: bool

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class DeviceIdThunk:
    """Write the number of this device's replica, or of its partition, as a u32."""

    name: str
    partition: bool
    destination: BufferSlice

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (write(self.destination),)


class Exchange(StrEnum):
    """What devices do with the bytes that each brings. An even split makes parts as there are devices in a group."""

    ALL_GATHER = "all-gather"  # each gets those of all, in the order of the group
    ALL_TO_ALL = "all-to-all"  # each gets its own part from all
    BROADCAST = "broadcast"  # each gets those of the first
    PERMUTE = "permute"  # groups are pairs: the second gets those of the first


Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class CollectiveStartThunk:
    """Bring the bytes of `source` to an exchange; they may change as soon as this has run. It waits for nobody.

    name: also that of the thunk that waits for the result. what: opcode and name of the collective in HLO. groups:
    numbers of devices. channel: sets exchanges of the same group apart.
    """

    name: str
    exchange: Exchange
    what: str
    groups: Groups
    source: BufferSlice
    channel: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "exchange", Exchange(self.exchange))
        if self.exchange is Exchange.PERMUTE and any(len(pair) != 2 for pair in self.groups):
            raise ValueError(f"collective {self.name}: a group that is no pair of devices")

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (read(self.source),)


@dataclass(frozen=True, slots=True)
class CollectiveDoneThunk:
    """Wait for the exchange that the thunk of this name started, and write its result."""

    name: str
    destination: BufferSlice

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (write(self.destination),)


@dataclass(frozen=True, slots=True)
class InfeedThunk:
    """Write a leaf of the next value of the infeed, which the first leaf waits for. leaf, leaves: its number, and how
    many the value has.
    """

    name: str
    leaf: int
    leaves: int
    shape: Shape
    destination: BufferSlice

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (write(self.destination),)


@dataclass(frozen=True, slots=True)
class OutfeedThunk:
    """Add a leaf to a value for the outfeed, which gets it with the last leaf. leaf, leaves: as in InfeedThunk."""

    name: str
    leaf: int
    leaves: int
    shape: Shape
    source: BufferSlice

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (read(self.source),)


Meeting = CollectiveStartThunk | CollectiveDoneThunk | InfeedThunk | OutfeedThunk
"""What exchanges data with other devices or a host (outside.py). They keep their order, but for those that wait for an
exchange: they come behind their start.
"""


@dataclass(frozen=True, slots=True)
class ChecksumThunk:
    """Note the checksum of a slice's bytes. id: a number >= 0, its own in the program. name: what is there."""

    name: str
    id: int
    slice: BufferSlice

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (read(self.slice),)


@dataclass(frozen=True, slots=True)
class NanThunk:
    """Note the first element that is NaN, or infinite if `infinities` says so. dtype: a float's name in HLO."""

    name: str
    id: int
    slice: BufferSlice
    dtype: str
    infinities: bool

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (read(self.slice),)


@dataclass(frozen=True, slots=True)
class FillThunk:
    """Write a pattern of bytes, chosen by `seed`, which a ZoneThunk finds again."""

    name: str
    slice: BufferSlice
    seed: int

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (write(self.slice),)


@dataclass(frozen=True, slots=True)
class ZoneThunk:
    """Note the first byte that is no longer what a FillThunk of this seed wrote."""

    name: str
    id: int
    slice: BufferSlice
    seed: int

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return (read(self.slice),)


@dataclass(frozen=True, slots=True)
class CompareThunk:
    """Note the first element in which two slices differ, and how many do. flag: a pred, whether any does.

    dtype: of the elements. Floats may differ by `steps` representable values, or by `scaled` times the distance of two
    values at the largest magnitude on the right; any NaN is any other. Others, and floats with 0 and 0, must be equal.
    """

    name: str
    id: int
    left: BufferSlice
    right: BufferSlice
    dtype: str
    steps: int
    scaled: int
    flag: BufferSlice

    @property
    def uses(self) -> tuple[BufferUse, ...]:
        return read(self.left), read(self.right), write(self.flag)


Noting = ChecksumThunk | NanThunk | ZoneThunk | CompareThunk
"""Kinds that note what they find in memory, by an id (checks.py)."""

Check = Noting | FillThunk
"""Kinds that look at memory, and what one of them looks for."""

Thunk = (
    KernelThunk
    | CopyThunk
    | WhileThunk
    | ConditionalThunk
    | ProfileThunk
    | SequentialThunk
    | DeviceIdThunk
    | Meeting
    | Check
)


def slice_of(thunk: Meeting) -> BufferSlice:
    """The bytes that a meeting reads or writes."""
    return thunk.uses[0].slice


def kind_of(thunk: Thunk) -> str:
    """The kind of a thunk in words: `kernel`, `collective start`."""
    words = re.findall("[A-Z][a-z]*", type(thunk).__name__.removesuffix("Thunk"))
    return " ".join(words).lower()


def children(thunk: Thunk) -> tuple[Thunk, ...]:
    """The direct children of a thunk, in the order of its text."""
    match thunk:
        case SequentialThunk():
            return thunk.thunks
        case WhileThunk():
            return thunk.condition, thunk.body
        case ConditionalThunk():
            return thunk.branches
        case _:
            return ()


def with_sequences(thunk: Thunk, change: Callable[[SequentialThunk], SequentialThunk]) -> Thunk:
    """The thunk with its sequences changed, in the order of its text; a sequence itself changed."""
    match thunk:
        case SequentialThunk():
            return change(thunk)
        case WhileThunk():
            return replace(thunk, condition=change(thunk.condition), body=change(thunk.body))
        case ConditionalThunk():
            return replace(thunk, branches=tuple(map(change, thunk.branches)))
        case _:
            return thunk


def meetings_of(root: SequentialThunk) -> tuple[Meeting, ...]:
    """The distinct thunks that exchange data with the world outside."""
    return tuple(dict.fromkeys(thunk for thunk in root.walk() if isinstance(thunk, Meeting)))


def numbers_of(root: SequentialThunk) -> Mapping[Thunk, int]:
    """The number by which native code calls each of them."""
    return {thunk: number for number, thunk in enumerate(meetings_of(root))}


def depends_on_device(root: SequentialThunk) -> bool:
    """Whether a run depends on more than its memory: other devices, a host, or the number of the device."""
    return any(isinstance(thunk, Meeting | DeviceIdThunk) for thunk in root.walk())
