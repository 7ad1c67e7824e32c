"""Shadow kernels, as a rewrite of a thunk sequence: behind a kernel runs another one of the same request, on copies of
what is written; the results are compared. docs/adr/0041-checks-and-shadow-kernels.md.

The bytes of the first pair of results that differ, and of what the kernel read, are kept until the end of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

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
    after the other kernel. symbol: the kernel.
    """

    symbol: str
    before: tuple[BufferSlice, ...]
    ours: Mapping[int, BufferSlice]
    theirs: Mapping[int, BufferSlice]


def shadowed(
    root: SequentialThunk, shadows: Mapping[str, Shadow], memory: Memory
) -> tuple[SequentialThunk, Mapping[int, Kept]]:
    """The program with shadow kernels, and what is kept by the id of the comparison that finds a difference.

    shadows: by the symbol of the kernel.
    """
    kernels = [t for t in root.walk() if isinstance(t, KernelThunk) and t.symbol in shadows]
    copies, kept = memory.add(0), memory.add(0)
    flags = memory.add(2)  # whether a pair differs; whether one did before
    writer = _Writer(shadows, copies, kept, flags, count(), {})
    for thunk in kernels:
        for part, size in ((copies, writer.copies_of(thunk)[2]), (kept, writer.kept_of(thunk)[1])):
            number = part.allocation - memory.first
            memory.sizes[number] = max(memory.sizes[number], size)
    made = rewritten(root, writer.around)
    first = FillThunk("shadow", _byte(flags, 1), 0)
    return replace(made, thunks=(first, *made.thunks)), writer.kept_by_id


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
    kept: BufferSlice
    flags: BufferSlice
    ids: Iterator[int]
    kept_by_id: dict[int, Kept]

    def copies_of(self, thunk: KernelThunk) -> tuple[dict[int, BufferSlice], dict[int, BufferSlice], int]:
        """(what the other kernel writes, what updated arguments held before, bytes): by the argument's number."""
        layout, shadow = _Layout(self.copies.allocation), self.shadows[thunk.symbol]
        written = {n: layout.add(use.slice.size) for n, use in enumerate(thunk.arguments) if use.access is Access.WRITE}
        before = {n: layout.add(thunk.arguments[n].slice.size) for n in sorted(shadow.updated)}
        return written, before, layout.size

    def kept_of(self, thunk: KernelThunk) -> tuple[Kept, int]:
        layout, shadow = _Layout(self.kept.allocation), self.shadows[thunk.symbol]
        before = tuple(layout.add(use.slice.size) for use in thunk.arguments)
        ours = {r.argument: layout.add(thunk.arguments[r.argument].slice.size) for r in shadow.results}
        theirs = {r.argument: layout.add(thunk.arguments[r.argument].slice.size) for r in shadow.results}
        return Kept(thunk.symbol, before, ours, theirs), layout.size

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
        for result in shadow.results:
            number, ours = next(self.ids), arguments[result.argument].slice
            flag, theirs = _byte(self.flags, 0), written[result.argument]
            compare = CompareThunk(name, number, theirs, ours, result.dtype, result.steps, result.scaled, flag)
            made += [compare, self.keeping(thunk, number, written, before)]
        return made

    def keeping(
        self, thunk: KernelThunk, number: int, written: Mapping[int, BufferSlice], before: Mapping[int, BufferSlice]
    ) -> ConditionalThunk:
        """If the pair differs and none did before: copy everything."""
        kept, _ = self.kept_of(thunk)
        self.kept_by_id[number] = kept
        name, copies = thunk.name, list[Thunk]()
        for n, (use, place) in enumerate(zip(thunk.arguments, kept.before, strict=True)):
            if use.access is Access.READ or n in before:
                copies.append(CopyThunk(name, before.get(n, use.slice), place))
        copies += [CopyThunk(name, thunk.arguments[n].slice, place) for n, place in kept.ours.items()]
        copies += [CopyThunk(name, written[n], place) for n, place in kept.theirs.items()]
        copies.append(FillThunk(name, _byte(self.flags, 1), 1))
        nothing = SequentialThunk((), "branch 0")
        keep = SequentialThunk(tuple(copies), "branch 1")
        first = ConditionalThunk(name, _byte(self.flags, 1), True, (nothing, keep))
        nothing = SequentialThunk((), "branch 1")
        return ConditionalThunk(name, _byte(self.flags, 0), True, (SequentialThunk((first,), "branch 0"), nothing))
