"""Shadow kernels, as a rewrite of a thunk sequence: behind a kernel runs another one of the same request, on copies of
what is written; the results are compared. docs/adr/0041-checks-and-shadow-kernels.md.

The bytes of the first pairs of results of each kernel that differ, and of what it read, are kept until the end of the
run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from ..hlo.records import dataclass, field, replace
from ..planning.allocation import BufferSlice
from .insert_checks import Memory, aligned, rewritten
from .kinds import (
    Access,
    BufferUse,
    CompareThunk,
    ConditionalThunk,
    CopyThunk,
    FillThunk,
    KernelThunk,
    SequentialThunk,
    Split,
    Thunk,
)


@dataclass(frozen=True, slots=True)
class Result:
    """An argument that receives a result. dtype, steps, scaled: as in CompareThunk."""

    argument: int
    dtype: str
    steps: int
    scaled: int


@dataclass(frozen=True, slots=True)
class Shadow:
    """The other kernel. updated: arguments that are read and written. split: how its chunks are called."""

    symbol: str
    results: tuple[Result, ...]
    updated: frozenset[int]
    split: Split | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the bytes of a differing pair are: of each argument before the kernel ran; of each result after it, and
    after the other kernel.
    """

    before: tuple[BufferSlice, ...]
    ours: Mapping[int, BufferSlice]
    theirs: Mapping[int, BufferSlice]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison belongs to. site: the number of the kernel's thunk. places: for the pairs of the kernel that
    differ, in their order. shared: whether other kernels share its only place, which the first of them takes.
    """

    symbol: str
    site: int
    places: tuple[Kept, ...]
    shared: bool


MOST_PAIRS = 4
"""Pairs that are kept of each kernel in a run."""

MOST_BYTES = 256 << 20
"""Of all places for pairs. Kernels that find no room share one place."""


def shadowed(
    root: SequentialThunk, shadows: Mapping[str, Shadow], memory: Memory
) -> tuple[SequentialThunk, Mapping[int, Comparison]]:
    """The program with shadow kernels, and what each comparison belongs to, by its id.

    shadows: by the symbol of the kernel.
    """
    kernels = [t for t in root.walk() if isinstance(t, KernelThunk) and t.symbol in shadows]
    copies = memory.add(0)
    symbols = {thunk.symbol: thunk for thunk in kernels}
    flags = memory.add(_WORD * (2 + len(symbols)))
    writer = _Writer(shadows, copies, flags, _places_of(symbols, shadows, memory, flags), count(), count())
    sizes = [writer.copies_of(thunk)[2] for thunk in kernels]
    memory.sizes[copies.allocation - memory.first] = max(sizes, default=0)
    made = rewritten(root, writer.around)
    return replace(made, thunks=(*_zeros(flags), *made.thunks)), writer.by_id


_WORD = 4


def _zeros(part: BufferSlice) -> Iterator[Thunk]:
    """Fill memory with zeros: a byte, then twice as many each time."""
    yield FillThunk("shadow", _byte(part, 0), 0)
    done = 1
    while done < part.size:
        more = min(done, part.size - done)
        source, target = (BufferSlice(part.allocation, part.offset + at, more) for at in (0, done))
        yield CopyThunk("shadow", source, target)
        done += more


@dataclass(frozen=True, slots=True)
class _Places:
    """counter: an s32, how many are taken."""

    kept: tuple[Kept, ...]
    counter: BufferSlice
    shared: bool


def _places_of(
    kernels: Mapping[str, KernelThunk],
    shadows: Mapping[str, Shadow],
    memory: Memory,
    flags: BufferSlice,
) -> dict[str, _Places]:
    """The places of each kernel, by its symbol. Word 0 of the flags is for comparisons, 1 counts the shared place."""
    own, shared = memory.add(0), memory.add(0)
    layout, crowded, found = _Layout(own.allocation), _Layout(shared.allocation), dict[str, _Places]()
    for number, (symbol, thunk) in enumerate(kernels.items(), 2):
        probe = _Layout(own.allocation)
        _kept(thunk, shadows[symbol], probe)
        room = (MOST_BYTES - aligned(layout.size)) // max(aligned(probe.size), 1)
        if room < 1:
            one = _Layout(shared.allocation)
            found[symbol] = _Places((_kept(thunk, shadows[symbol], one),), _word(flags, 1), True)
            crowded.size = max(crowded.size, one.size)
            continue
        places = tuple(_kept(thunk, shadows[symbol], layout) for _ in range(min(room, MOST_PAIRS)))
        found[symbol] = _Places(places, _word(flags, number), False)
    memory.sizes[own.allocation - memory.first] = layout.size
    memory.sizes[shared.allocation - memory.first] = crowded.size
    return found


def _kept(thunk: KernelThunk, shadow: Shadow, layout: _Layout) -> Kept:
    before = tuple(layout.add(use.slice.size) for use in thunk.arguments)
    ours = {r.argument: layout.add(thunk.arguments[r.argument].slice.size) for r in shadow.results}
    theirs = {r.argument: layout.add(thunk.arguments[r.argument].slice.size) for r in shadow.results}
    return Kept(before, ours, theirs)


def _word(part: BufferSlice, number: int) -> BufferSlice:
    return BufferSlice(part.allocation, part.offset + _WORD * number, _WORD)


def _byte(part: BufferSlice, offset: int) -> BufferSlice:
    return BufferSlice(part.allocation, part.offset + offset, 1)


class _Layout:
    """Places for slices, one behind the other, in an allocation."""

    def __init__(self, allocation: int):
        self.allocation, self.size = allocation, 0

    def add(self, size: int) -> BufferSlice:
        begin = aligned(self.size)
        self.size = begin + size
        return BufferSlice(self.allocation, begin, size)


@dataclass(frozen=True, eq=False, slots=True)
class _Writer:
    shadows: Mapping[str, Shadow]
    copies: BufferSlice
    flags: BufferSlice
    places: Mapping[str, _Places]
    ids: Iterator[int]
    sites: Iterator[int]
    by_id: dict[int, Comparison] = field(default_factory=dict)

    def copies_of(self, thunk: KernelThunk) -> tuple[dict[int, BufferSlice], dict[int, BufferSlice], int]:
        """(what the other kernel writes, what updated arguments held before, bytes): by the argument's number."""
        layout, shadow = _Layout(self.copies.allocation), self.shadows[thunk.symbol]
        written = {n: layout.add(use.slice.size) for n, use in enumerate(thunk.arguments) if use.access is Access.WRITE}
        before = {n: layout.add(thunk.arguments[n].slice.size) for n in sorted(shadow.updated)}
        return written, before, layout.size

    def around(self, thunk: Thunk) -> Sequence[Thunk]:
        if not isinstance(thunk, KernelThunk) or thunk.symbol not in self.shadows:
            return [thunk]
        shadow, (written, before, _) = self.shadows[thunk.symbol], self.copies_of(thunk)
        name, arguments = thunk.name, thunk.arguments
        made: list[Thunk] = []
        for n, place in before.items():
            made += [CopyThunk(name, arguments[n].slice, place), CopyThunk(name, arguments[n].slice, written[n])]
        other = tuple(BufferUse(written.get(n, use.slice), use.access) for n, use in enumerate(arguments))
        made += [thunk, KernelThunk(name, shadow.symbol, other, shadow.split)]
        return [*made, *self.comparing(thunk, written), self.keeping(thunk, written, before)]

    def comparing(self, thunk: KernelThunk, written: Mapping[int, BufferSlice]) -> Iterator[Thunk]:
        """Compare each result. Byte 1 of the flags is then whether any differs."""
        places, site, results = self.places[thunk.symbol], next(self.sites), self.shadows[thunk.symbol].results
        differs, any_differs = _byte(self.flags, 0), _byte(self.flags, 1)
        yield FillThunk(thunk.name, any_differs, 0)
        for result in results:
            number, ours = next(self.ids), thunk.arguments[result.argument].slice
            self.by_id[number] = Comparison(thunk.symbol, site, places.kept, places.shared)
            theirs = written[result.argument]
            yield CompareThunk(thunk.name, number, theirs, ours, result.dtype, result.steps, result.scaled, differs)
            yield _if(thunk.name, differs, FillThunk(thunk.name, any_differs, 1))

    def keeping(
        self, thunk: KernelThunk, written: Mapping[int, BufferSlice], before: Mapping[int, BufferSlice]
    ) -> ConditionalThunk:
        """If any result differs and a place is free: copy everything."""
        name, places = thunk.name, self.places[thunk.symbol]
        branches = []
        for number, kept in enumerate(places.kept):
            copies = [*_copies(thunk, kept, written, before), FillThunk(name, _byte(places.counter, 0), number + 1)]
            branches.append(SequentialThunk(tuple(copies), f"branch {number}"))
        branches.append(SequentialThunk((), f"branch {len(branches)}"))
        return _if(name, _byte(self.flags, 1), ConditionalThunk(name, places.counter, False, tuple(branches)))


def _if(name: str, flag: BufferSlice, thunk: Thunk) -> ConditionalThunk:
    """Run a thunk if a pred is true."""
    branches = (SequentialThunk((thunk,), "branch 0"), SequentialThunk((), "branch 1"))
    return ConditionalThunk(name, flag, True, branches)


def _copies(
    thunk: KernelThunk, kept: Kept, written: Mapping[int, BufferSlice], before: Mapping[int, BufferSlice]
) -> Iterator[Thunk]:
    """Copies of what the kernel read and of both results to a place."""
    for n, (use, place) in enumerate(zip(thunk.arguments, kept.before, strict=True)):
        if use.access is Access.READ or n in before:
            yield CopyThunk(thunk.name, before.get(n, use.slice), place)
    for n, place in kept.ours.items():
        yield CopyThunk(thunk.name, thunk.arguments[n].slice, place)
    for n, place in kept.theirs.items():
        yield CopyThunk(thunk.name, written[n], place)
