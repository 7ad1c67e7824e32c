"""Buffer assignment: give every array value of a module a slice of a parameter, constant, result or the arena."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ..hlo.analysis.leaves import NO_BUFFER
from ..hlo.ir import Instruction, Module
from ..hlo.records import dataclass
from ..hlo.shapes import ShapeIndex
from .allocation import POOL_ALIGNMENT, USER_ALIGNMENT, Allocation, AllocationKind, BufferSlice
from .coalesce import Classes, coalesce
from .liveness import Copy, Timeline, Variable, build_timeline
from .packing import Bin, Packing, Segments, fill_bins, pack
from .plan import BufferAssignment


@dataclass(frozen=True, slots=True)
class LiveRange:
    """A slice, and when it holds values.

    segments: half-open intervals of ticks (liveness.py), ascending. variables: the variables that share the slice.
    """

    slice: BufferSlice
    segments: tuple[tuple[int, int], ...]
    variables: tuple[int, ...]


@dataclass(frozen=True)
class Buffers:
    """An assignment and its remaining copies.

    copies: by group, (instruction, source, destination) in an order that is safe. packing: of the arena. live: in order
    of time.
    """

    assignment: BufferAssignment
    copies: dict[Hashable, tuple[tuple[Instruction, BufferSlice, BufferSlice], ...]]
    packing: Packing
    timeline: Timeline
    live: tuple[LiveRange, ...]


def assign_buffers(module: Module, *, reuse: bool = True, alignment: int = USER_ALIGNMENT) -> Buffers:
    """Plan the memory of a whole module. The module must be flat and scheduled, with agreed layouts.

    reuse: False gives every value memory of its own, which no other value ever has, to find faults of sharing.
    alignment: of the parameters, in bytes.
    """
    timeline = build_timeline(module)
    classes = coalesce(timeline, reuse=reuse)
    ordered = {group: _sequence(copies, classes, timeline) for group, copies in timeline.groups.items()}
    allocations, slices, packing = _place(timeline, classes, reuse, alignment)

    def slice_of(variable: int) -> BufferSlice:
        return slices[classes.find(variable)] if variable < len(classes.parent) else slices[variable]

    table: dict[tuple[Instruction, ShapeIndex], BufferSlice] = {}
    for instruction, leaves in timeline.leaves.items():
        for (index, _), variable in zip(instruction.shape.leaves(), leaves):
            if variable != NO_BUFFER:
                table[instruction, index] = slice_of(variable)
    copies = {
        group: tuple(
            (c.instruction, slice_of(c.source), slice_of(c.target)) for c in moves if timeline.variables[c.source].size
        )
        for group, moves in ordered.items()
    }
    scratch = {i: slice_of(variable) for i, variable in timeline.scratch.items()}
    assignment = BufferAssignment(allocations, table, scratch)
    return Buffers(assignment, copies, packing, timeline, _live(timeline, classes, slices))


def _live(timeline: Timeline, classes: Classes, slices: dict[int, BufferSlice]) -> tuple[LiveRange, ...]:
    """The live range of each class and spare variable, in order of time."""
    members: dict[int, list[int]] = {}
    for n in range(len(timeline.variables)):
        members.setdefault(classes.find(n) if n < len(classes.parent) else n, []).append(n)
    ranges = []
    for n, variables in members.items():
        segments = classes.segments[n] if n < len(classes.parent) else timeline.variables[n].segments
        if n in slices and segments:
            ranges.append(LiveRange(slices[n], tuple(segments), tuple(variables)))
    return tuple(sorted(ranges, key=lambda r: (r.segments[0], r.slice)))


def _sequence(copies: list[Copy], classes: Classes, timeline: Timeline) -> list[Copy]:
    """Order simultaneous copies so that none overwrites the source of a later one; a cycle needs a spare variable."""
    waiting = {classes.find(c.target): c for c in copies if classes.find(c.source) != classes.find(c.target)}
    readers: dict[int, int] = {}
    for c in waiting.values():
        source = classes.find(c.source)
        readers[source] = readers.get(source, 0) + 1
    ready = [t for t in waiting if not readers.get(t)]
    saved: dict[int, int] = {}  # class that was moved out of the way → the variable that holds its old value
    done: list[Copy] = []
    while waiting:
        if not ready:
            target, first = next(iter(waiting.items()))
            spare = _spare(timeline, first.target, first.position)
            done.append(Copy(first.position, first.target, spare, first.instruction, first.depth))
            saved[target] = spare
            readers[target] = 0
            ready.append(target)
        target = ready.pop()
        c = waiting.pop(target)
        source = classes.find(c.source)
        done.append(Copy(c.position, saved.get(source, c.source), c.target, c.instruction, c.depth))
        if source not in saved:
            readers[source] -= 1
            if not readers[source] and source in waiting:
                ready.append(source)
    return done


def _spare(timeline: Timeline, like: int, position: int) -> int:
    """Add a spare variable like variable `like`, alive only in the tick of the copies at `position`."""
    model = timeline.variables[like]
    index = len(timeline.variables)
    spare = Variable(index, AllocationKind.TEMPORARY, model.size, [(2 * position, 2 * position + 1)], shape=model.shape)
    timeline.variables.append(spare)
    return index


def _place(
    timeline: Timeline, classes: Classes, reuse: bool, of_parameters: int
) -> tuple[tuple[Allocation, ...], dict[int, BufferSlice], Packing]:
    """(allocations, slice of each class and spare variable, packing of the arena)."""
    allocations, slices = _fixed(timeline, classes, of_parameters)
    segments = _temporaries(timeline, classes, slices)
    sizes = {n: timeline.variables[n].size for n in segments}
    if not reuse and segments:
        ends = [end for parts in segments.values() for part in parts for end in part]
        segments = {n: [(min(ends), max(ends))] for n in segments}
    results = _results_as_bins(allocations, slices, classes) if reuse else []
    for n, (number, offset) in fill_bins(results, sizes, segments).items():
        slices[n] = BufferSlice(number, offset, sizes[n])
    rest = [n for n in segments if n not in slices]
    packing = pack([sizes[n] for n in rest], [segments[n] for n in rest])
    arena = len(allocations)
    allocations.append(Allocation(arena, AllocationKind.TEMPORARY, packing.size, POOL_ALIGNMENT))
    for n, offset in zip(rest, packing.offsets):
        slices[n] = BufferSlice(arena, offset, sizes[n])
    for v in _originals(timeline, classes):
        if v.kind is AllocationKind.CONSTANT and not v.used:  # forwarded only; no kernel reads the bytes
            slices.setdefault(v.index, BufferSlice(arena, 0, 0))
    return tuple(allocations), slices, packing


def _originals(timeline: Timeline, classes: Classes) -> list[Variable]:
    """The variables that belong to a class: all except the spare ones, which _sequence appended."""
    return timeline.variables[: len(classes.parent)]


def _fixed(timeline: Timeline, classes: Classes, of_parameters: int) -> tuple[list[Allocation], dict[int, BufferSlice]]:
    """One allocation per parameter, result and constant that is read, and the slices of their classes."""
    allocations: list[Allocation] = []
    slices: dict[int, BufferSlice] = {}
    for kind in (AllocationKind.PARAMETER, AllocationKind.RESULT, AllocationKind.CONSTANT):
        alignment = of_parameters if kind is AllocationKind.PARAMETER else POOL_ALIGNMENT
        for v in _originals(timeline, classes):
            if v.kind is not kind or (kind is AllocationKind.CONSTANT and not v.used):
                continue
            index = len(allocations)
            allocations.append(Allocation(index, kind, v.size, alignment, v.number, v.shape, v.literal, v.result))
            slices[classes.find(v.index)] = BufferSlice(index, 0, v.size)
    return allocations, slices


def _temporaries(timeline: Timeline, classes: Classes, placed: Mapping[int, BufferSlice]) -> dict[int, Segments]:
    """The live segments of each class and spare variable that has no slice yet."""
    known = len(classes.parent)
    found: dict[int, Segments] = {}
    for n, variable in enumerate(timeline.variables):
        if variable.kind is not AllocationKind.TEMPORARY or n in placed:
            continue
        if n >= known:
            found[n] = variable.segments
        elif classes.find(n) == n:
            found[n] = classes.segments[n]
    return found


def _results_as_bins(
    allocations: Sequence[Allocation], slices: Mapping[int, BufferSlice], classes: Classes
) -> list[Bin]:
    """The allocations of results, which temporaries may use until the result is written."""
    bins = {a.index: Bin(a.index, a.size) for a in allocations if a.kind is AllocationKind.RESULT}
    for n, held in slices.items():
        if held.allocation in bins:
            bins[held.allocation].hold(0, held.size, classes.segments[n])
    return list(bins.values())
