"""Rewrites of a thunk sequence that put checks into it, of what a kernel wrote and of guard bytes around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from ..hlo.dtypes import BY_NAME
from ..hlo.records import dataclass, field, replace
from ..planning.allocation import POOL_ALIGNMENT, BufferSlice
from .checks import format_of
from .kinds import (
    Access,
    BufferUse,
    ChecksumThunk,
    CompareThunk,
    CopyThunk,
    FillThunk,
    KernelThunk,
    NanThunk,
    SequentialThunk,
    Thunk,
    ZoneThunk,
    with_sequences,
)

ZONE = 256
"""Guard bytes in front of and behind each argument."""


@dataclass(frozen=True, slots=True)
class Value:
    """An array in memory: its name, its place, its type in HLO."""

    name: str
    slice: BufferSlice
    dtype: str


@dataclass(eq=False)
class Memory:
    """Allocations that a rewrite adds behind a program's. sizes: bytes of each."""

    first: int
    sizes: list[int] = field(default_factory=list)

    def add(self, size: int) -> BufferSlice:
        """A new allocation, all of it."""
        self.sizes.append(size)
        return BufferSlice(self.first + len(self.sizes) - 1, 0, size)


@dataclass(frozen=True, eq=False, slots=True)
class Context:
    """results: symbol of a kernel → the number and the type of each argument that receives a result. values: what is
    in memory before the first thunk. memory: for what the rewrite needs.
    """

    results: Mapping[str, Sequence[tuple[int, str]]]
    values: Sequence[Value]
    memory: Memory
    ids: Iterator[int] = field(default_factory=count)


def with_checks(root: SequentialThunk, kind: str, context: Context) -> SequentialThunk:
    """The program with checks of a kind of CHECKS."""
    before, around = CHECKS[kind](root, context)
    return replace(root, thunks=(*before, *rewritten(root, around).thunks))


Around = Callable[[Thunk], Sequence[Thunk]]
"""A kernel or copy → the thunks in its place."""


def rewritten(root: SequentialThunk, around: Around) -> SequentialThunk:
    """The program with other thunks in the places of its kernels and copies, in loops and branches too."""
    made: list[Thunk] = []
    for thunk in root.thunks:
        if isinstance(thunk, KernelThunk | CopyThunk):
            made += around(thunk)
        else:
            made.append(with_sequences(thunk, lambda sequence: rewritten(sequence, around)))
    return replace(root, thunks=tuple(made))


def values_of(thunk: Thunk, context: Context) -> list[Value]:
    """The arrays that a kernel has computed."""
    if not isinstance(thunk, KernelThunk):
        return []
    found = context.results[thunk.symbol]
    named = [thunk.name if len(found) == 1 else f"{thunk.name}{{{leaf}}}" for leaf in range(len(found))]
    return [Value(name, thunk.arguments[n].slice, dtype) for name, (n, dtype) in zip(named, found, strict=True)]


Rewrite = tuple[Sequence[Thunk], Around]
"""What comes first in the program, and what takes the place of a kernel or copy."""


def _nans(infinities: bool) -> Callable[[SequentialThunk, Context], Rewrite]:
    def checks(values: Sequence[Value], context: Context) -> list[Thunk]:
        return [
            NanThunk(v.name, next(context.ids), v.slice, v.dtype, infinities)
            for v in values
            if v.slice.size and format_of(BY_NAME[v.dtype]).last
        ]

    def rewrite(root: SequentialThunk, context: Context) -> Rewrite:
        return checks(context.values, context), lambda t: [t, *checks(values_of(t, context), context)]

    return rewrite


def _checksums(root: SequentialThunk, context: Context) -> Rewrite:
    def of(values: Sequence[Value]) -> list[Thunk]:
        return [ChecksumThunk(v.name, next(context.ids), v.slice) for v in values]

    def around(thunk: Thunk) -> Sequence[Thunk]:
        if isinstance(thunk, CopyThunk):
            return [thunk, *of([Value(thunk.name, thunk.destination, "")])]
        return [thunk, *of(values_of(thunk, context))]

    return of(context.values), around


def _zones(root: SequentialThunk, context: Context) -> Rewrite:
    """Each kernel runs on copies of its arguments, in one block of memory, with guard bytes between them."""
    kernels = [t for t in root.walk() if isinstance(t, KernelThunk)]
    most = max((_places(t.arguments)[1] for t in kernels), default=0)
    block, flag = context.memory.add(most), context.memory.add(1)

    def around(thunk: Thunk) -> Sequence[Thunk]:
        return _guarded(thunk, block, flag, context.ids) if isinstance(thunk, KernelThunk) else [thunk]

    return [], around


def aligned(offset: int) -> int:
    return -(-offset // POOL_ALIGNMENT) * POOL_ALIGNMENT


def _places(arguments: Sequence[BufferUse]) -> tuple[list[int], int]:
    """The offset of each argument's copy in the block, and the bytes of the block."""
    end, offsets = 0, []
    for use in arguments:
        offsets.append(aligned(end + ZONE))
        end = offsets[-1] + use.slice.size
    return offsets, end + ZONE


def _guarded(thunk: KernelThunk, block: BufferSlice, flag: BufferSlice, ids: Iterator[int]) -> list[Thunk]:
    offsets, size = _places(thunk.arguments)

    def within(begin: int, end: int) -> BufferSlice:
        return BufferSlice(block.allocation, begin, end - begin)

    copies = [within(o, o + use.slice.size) for o, use in zip(offsets, thunk.arguments, strict=True)]
    ends = [0, *(c.offset + c.size for c in copies)]
    begins = [*offsets, size]
    made: list[Thunk] = [FillThunk(thunk.name, within(0, size), 0)]
    made += [CopyThunk(thunk.name, use.slice, copy) for use, copy in zip(thunk.arguments, copies, strict=True)]
    uses = tuple(BufferUse(c, use.access) for c, use in zip(copies, thunk.arguments, strict=True))
    made.append(replace(thunk, arguments=uses))
    for number, (end, begin) in enumerate(zip(ends, begins, strict=True)):
        where = f"behind argument {number - 1}" if number else "in front of argument 0"
        seed = end * 37 % 256  # the pattern of the whole block goes on
        made.append(ZoneThunk(f"{thunk.name}: {where}", next(ids), within(end, begin), seed))
    for number, (use, copy) in enumerate(zip(thunk.arguments, copies, strict=True)):
        if use.access is Access.WRITE:
            made.append(CopyThunk(thunk.name, copy, use.slice))
        else:
            name = f"{thunk.name}: argument {number}, which it only reads"
            made.append(CompareThunk(name, next(ids), copy, use.slice, "u8", 0, 0, flag))
    return made


CHECKS: dict[str, Callable[[SequentialThunk, Context], Rewrite]] = {
    "nan": _nans(infinities=False),
    "finite": _nans(infinities=True),
    "checksum": _checksums,
    "redzone": _zones,
}
"""Kind of checks → its rewrite. nan: the first NaN of each result; finite: infinities, too; checksum: of what each
thunk wrote; redzone: whether a kernel wrote outside of its arguments, or to what it only reads.
"""
