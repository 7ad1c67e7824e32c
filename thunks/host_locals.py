"""Which memory of a loop is kept in registers while the loop runs.

A loop whose kernels are inlined (codegen/inline.py) still loads and stores its state in each iteration, because LLVM
does not know which pointers overlap. So the host program copies small memory into variables of its own before the loop,
lets the steps in it work on them, and copies what was written back behind it. LLVM turns such variables into registers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from ..hlo.records import dataclass
from ..planning.allocation import POOL_ALIGNMENT, BufferSlice
from .kinds import Access, ConditionalThunk, CopyThunk, KernelThunk, SequentialThunk, Thunk, WhileThunk


@dataclass(frozen=True, slots=True)
class Registers:
    """Kernels that are inlined, and the registers for what they share. small: their symbols. count: the most registers
    that variables may take; width: bytes of one.
    """

    small: Container[str] = frozenset()
    count: int = 0
    width: int = 1

    def cost(self, part: BufferSlice) -> int:
        return -(-part.size // self.width)


NO_REGISTERS = Registers()

STATE_REGISTERS = 16, 32
"""The vector registers of x86-64, and of AVX-512. Loops whose state takes them all, and spills what they compute with,
are still faster than with their state in memory.
"""

SETTINGS = f"state in {STATE_REGISTERS} registers, overlapping slices together, written and small ones first"
"""The settings in words, a part of the key of what is cached. Change them together with the code of this file."""


@dataclass(frozen=True, slots=True)
class Local:
    """A variable of a loop. part: the memory that it stands for. written: whether the loop changes it. name: of the
    address that has the remainder of the memory's in a line of the cache.
    """

    part: BufferSlice
    written: bool
    name: str

    def holds(self, part: BufferSlice) -> bool:
        inside = self.part.offset <= part.offset and part.offset + part.size <= self.part.offset + self.part.size
        return self.part.allocation == part.allocation and inside

    @property
    def lead(self) -> int:
        """Bytes in front of the variable, so that what is aligned in memory is aligned in it."""
        return self.part.offset % POOL_ALIGNMENT


def kept_in_registers(loop: WhileThunk, registers: Registers, outer: Iterable[Local]) -> list[tuple[BufferSlice, bool]]:
    """Memory that only inlined kernels, copies and control flow of a loop touch, and whether it is written: as much as
    fits into the registers, first what is written, then what is small. outer: variables of loops around it, which stay
    what they are.
    """
    plain, other = list[tuple[BufferSlice, bool]](), list[BufferSlice]()
    for thunk in _steps(loop):
        if isinstance(thunk, CopyThunk) or (isinstance(thunk, KernelThunk) and thunk.symbol in registers.small):
            plain += [(use.slice, use.access is Access.WRITE) for use in thunk.uses if use.slice.size]
        elif isinstance(thunk, WhileThunk):
            plain.append((thunk.predicate, False))
        elif isinstance(thunk, ConditionalThunk):
            plain.append((thunk.selector, False))
        else:
            other += [use.slice for use in thunk.uses]
    free, regions = registers.count, list[tuple[BufferSlice, bool]]()
    for part, written in _joined(plain):
        if any(local.holds(part) for local in outer):
            free -= registers.cost(part)
        elif not any(part.overlaps(o) for o in other):
            regions.append((part, written))
    found = []
    for part, written in sorted(regions, key=lambda region: (not region[1], region[0].size, region[0])):
        if registers.cost(part) <= free:
            free -= registers.cost(part)
            found.append((part, written))
    return found


def _steps(loop: WhileThunk) -> Iterator[Thunk]:
    """What touches memory by itself: the loop, and all in it but sequences."""
    yield loop
    for sequence in (loop.condition, loop.body):
        yield from (thunk for thunk in sequence.walk() if not isinstance(thunk, SequentialThunk))


def _joined(parts: Iterable[tuple[BufferSlice, bool]]) -> Iterator[tuple[BufferSlice, bool]]:
    """Regions that do not overlap, each of slices that do; and whether one of them is written."""
    region: tuple[BufferSlice, bool] | None = None
    for part, written in sorted(set(parts)):
        if region is None or not region[0].overlaps(part):
            if region is not None:
                yield region
            region = part, written
            continue
        begin = region[0].offset
        end = max(begin + region[0].size, part.offset + part.size)
        region = BufferSlice(part.allocation, begin, end - begin), region[1] or written
    if region is not None:
        yield region
