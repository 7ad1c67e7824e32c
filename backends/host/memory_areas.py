"""The area in which a kernel runs in the checking mode: a place for each argument, between zones of junk, and the table
of the native runner that fills it, calls the kernel and looks at what it did.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.records import dataclass, field
from ...hlo.shapes import Shape
from ...planning.allocation import POOL_ALIGNMENT, BufferSlice
from ...planning.plan import KernelRequest
from ...thunks.kinds import Access, KernelThunk
from ...thunks.runner import Jump
from .addresses import address_of
from .memory_code import address_of as address_of_code

FEWEST_ZONE_BYTES, MOST_ZONE_BYTES = 1 << 12, 1 << 16
"""Bytes of a zone on each side of an argument: as many as the argument has, within these."""

FIRST, SECOND = 0, 1
"""The two runs of a kernel: each has its own area and its own junk."""

ARENA_JUNK = 0xFF, 0x4B
"""Bytes of memory without a type in the two runs: NaN in most floats, and a finite number."""

Junk = tuple[int, int]


@functools.cache
def junk_of(dtype: DType | None) -> Junk:
    """The byte that fills memory beside arrays of a type in the first run and in the second. None: scratch memory.

    Floats are NaN, where the type has one, and then a finite number. Integers are large, and of both signs. A pred is
    no legal value, and then false, so that any test of it has both answers.
    """
    if dtype is None:
        return ARENA_JUNK
    if dtype is DType.PRED:
        return 0xA5, 0x00
    part = dtype.component if dtype.is_complex else dtype
    if not part.is_float:
        return 0x7B, 0x84
    for byte in (0xFF, 0x80):
        value = np.full(part.numpy.itemsize, byte, np.uint8).view(part.numpy)
        if np.isnan(value.astype(np.float32))[0]:
            return byte, ARENA_JUNK[SECOND]
    return 0xF7, ARENA_JUNK[SECOND]


@dataclass(frozen=True, slots=True)
class Place:
    """An argument in an area. begin: of its zone; at: of its bytes; end: of the zone behind them.

    given: whether the kernel finds an operand there, or else junk. written: whether it may write. compared: bytes of
    the result that it receives, 0 for scratch memory. shape: of the array; None for scratch memory.
    """

    number: int
    source: BufferSlice
    begin: int
    at: int
    end: int
    given: bool
    written: bool
    compared: int
    shape: Shape | None
    junk: Junk

    @property
    def size(self) -> int:
        return self.source.size

    @property
    def zones(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(Begin, bytes) of the zone in front of the argument, and of that behind it."""
        behind = self.at + self.size
        return (self.begin, self.at - self.begin), (behind, self.end - behind)

    def __str__(self) -> str:
        what = "scratch memory" if self.shape is None else str(self.shape.without_layout())
        return f"argument {self.number} ({what}, {self.size} bytes)"


def places_of(thunk: KernelThunk, request: KernelRequest) -> tuple[Place, ...]:
    """The places of a kernel's arguments in an area."""
    shapes: dict[int, Shape] = {}
    for number, operand in zip(request.operands, request.instruction.operands, strict=True):
        shapes[number] = operand.shape
    given, compared = frozenset(shapes), dict[int, int]()
    for number, shape in zip(request.results, request.result_shapes, strict=True):
        if number >= 0:
            shapes.setdefault(number, shape)
            compared[number] = max(shape.bytes, compared.get(number, 0))
    found, begin = [], 0
    for number, use in enumerate(thunk.arguments):
        size = use.slice.size
        rounded = -(-size // POOL_ALIGNMENT) * POOL_ALIGNMENT
        zone = min(max(rounded, FEWEST_ZONE_BYTES), MOST_ZONE_BYTES)
        at, end = begin + zone, begin + zone + rounded + zone
        array = shapes.get(number)
        junk = junk_of(None if array is None else array.dtype)
        written = use.access is Access.WRITE
        most = min(compared.get(number, 0), size)
        found.append(Place(number, use.slice, begin, at, end, number in given, written, most, array, junk))
        begin = end
    return tuple(found)


@dataclass(frozen=True, slots=True)
class At:
    """A byte of an area. run: FIRST or SECOND."""

    run: int
    offset: int


class _Status:
    """Stands for the address of the word that notes differences."""


STATUS = _Status()
STOP_WORD, STATUS_WORD, FIRST_RECORD = 3, 4, 5
"""Of a table: behind the descriptor the word that stops a run, the status, the records."""

Argument = int | At | BufferSlice | _Status


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A table of the native runner. areas: by run, indices of words that are bytes of its area. internal: of those that
    are bytes of the table. words_of, allocations, offsets: of those that are bytes of an allocation.
    """

    words: np.ndarray
    areas: tuple[np.ndarray, np.ndarray]
    internal: np.ndarray
    words_of: np.ndarray
    allocations: np.ndarray
    offsets: np.ndarray

    def bound(self, areas: tuple[int, int], bases: np.ndarray) -> tuple[np.ndarray, int]:
        """The words with addresses of areas and allocations, and where they are."""
        words = self.words.copy()
        address = address_of(words)
        words[self.internal] += np.uint64(address)
        for indices, area in zip(self.areas, areas):
            words[indices] += np.uint64(area)
        words[self.words_of] = bases[self.allocations] + self.offsets
        return words, address


@dataclass(eq=False)
class Builder:
    """Writes a table. copy: the address of the runner's copy (destination, source, bytes)."""

    copy: int
    words: list[int] = field(default_factory=lambda: [0] * FIRST_RECORD)
    areas: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    internal: list[int] = field(default_factory=list)
    references: list[tuple[int, int, int]] = field(default_factory=list)

    def call(self, function: int, *arguments: Argument) -> None:
        self.words += [function, len(arguments)]
        for argument in arguments:
            self._argument(argument)

    def _argument(self, argument: Argument) -> None:
        index = len(self.words)
        if isinstance(argument, int):
            self.words.append(argument)
        elif isinstance(argument, At):
            self.areas[argument.run].append(index)
            self.words.append(argument.offset)
        elif isinstance(argument, BufferSlice):
            self.references.append((index, argument.allocation, argument.offset))
            self.words.append(0)
        else:
            self._place(STATUS_WORD)

    def _place(self, word: int) -> None:
        self.internal.append(len(self.words))
        self.words.append(8 * word)

    def end_if_noted(self) -> None:
        """Leave out the records behind this one if something was noted."""
        begin = len(self.words)
        self._place(STATUS_WORD)
        self.words.append(Jump.UNLESS)
        self._place(begin + 6)
        self.words += [0, Jump.JUMP]
        self.internal.append(len(self.words))
        self.words.append(-1)  # the end, which is not known yet

    def fill(self, run: int, begin: int, size: int, junk: int) -> None:
        if size:
            self.call(address_of_code("testbed_junk"), At(run, begin), size, junk)

    def kernel(self, run: int, thunk: KernelThunk, function: int, places: Sequence[Place], stack: int) -> None:
        """Call a kernel, for one chunk of its steps after the other; each finds new junk in its own scratch memory.

        stack: the junk on the call stack.
        """
        arguments = [At(run, place.at) for place in places]
        split = thunk.split
        self.call(address_of_code("testbed_stack"), stack)
        if split is None:
            self.call(function, *arguments)
            return
        for begin in range(0, split.extent, split.chunk):
            if split.private and begin:
                self.fill(run, places[-1].at, places[-1].size, places[-1].junk[run])
            self.call(function, *arguments, begin, min(begin + split.chunk, split.extent))

    def run(self, run: int, thunk: KernelThunk, function: int, places: Sequence[Place]) -> None:
        """Fill an area, call the kernel, and look for bytes that it must not change."""
        kept, equal = address_of_code("testbed_kept"), address_of_code("testbed_equal")
        for place in places:
            for begin, size in place.zones:
                self.fill(run, begin, size, place.junk[run])
            if not place.given:
                self.fill(run, place.at, place.size, place.junk[run])
            elif place.size:
                self.call(self.copy, At(run, place.at), place.source, place.size)
        self.kernel(run, thunk, function, places, ARENA_JUNK[run])
        for place in places:
            for begin, size in place.zones:
                self.call(kept, At(run, begin), size, place.junk[run], STATUS)
            if not place.written and place.size:
                self.call(equal, At(run, place.at), place.source, place.size, STATUS)

    def table(self) -> Table:
        end = 8 * len(self.words)
        self.words[:3] = 8 * FIRST_RECORD, end, 8 * STOP_WORD
        self.internal += [0, 1, 2]
        words = [end if word == -1 else word for word in self.words]
        columns = list(zip(*self.references)) or [(), (), ()]
        indices, allocations = (np.array(column, np.intp) for column in columns[:2])
        return Table(
            np.array(words, np.uint64),
            (np.array(self.areas[FIRST], np.intp), np.array(self.areas[SECOND], np.intp)),
            np.array(self.internal, np.intp),
            indices,
            allocations,
            np.array(columns[2], np.uint64),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """A kernel's step in the checking mode. size: bytes of an area. twice: whether it runs twice, with other junk."""

    thunk: KernelThunk
    function: int
    places: tuple[Place, ...]
    size: int
    twice: bool
    table: Table

    def kernel_only(self, stack: int) -> Table:
        """A table that calls the kernel in the second area as it is. stack: the junk on the call stack."""
        builder = Builder(0)
        builder.kernel(SECOND, self.thunk, self.function, self.places, stack)
        return builder.table()


def prepared(thunk: KernelThunk, request: KernelRequest, function: int, copy: int, twice: bool) -> Prepared:
    """twice: False for a kernel that calls a handler, which may have effects."""
    places = places_of(thunk, request)
    builder = Builder(copy)
    builder.run(FIRST, thunk, function, places)
    if twice:
        builder.run(SECOND, thunk, function, places)
        for place in places:
            if place.compared:
                equal = address_of_code("testbed_equal")
                builder.call(equal, At(FIRST, place.at), At(SECOND, place.at), place.compared, STATUS)
    builder.end_if_noted()
    for place in places:
        if place.written and place.shape is not None and place.size:
            builder.call(copy, place.source, At(FIRST, place.at), place.size)
    size = places[-1].end if places else 0
    return Prepared(thunk, function, places, size, twice, builder.table())
