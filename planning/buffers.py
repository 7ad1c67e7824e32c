"""Buffer assignment: every array value of a module gets a slice of a parameter, constant, result or the one arena."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from ..hlo.ir import Instruction, Module
from ..hlo.shapes import ShapeIndex
from .coalesce import Classes, coalesce
from .liveness import NO_BUFFER, Copy, Timeline, Variable, build_timeline
from .packing import Bin, Packing, fill_bins, pack
from .plan import POOL_ALIGNMENT, USER_ALIGNMENT, Allocation, AllocationKind, BufferAssignment, BufferSlice


@dataclass(frozen=True, slots=True)
class LiveRange:
    """A slice and when it holds values: half-open ticks (liveness.py), ascending. variables: who shares it."""

    slice: BufferSlice
    segments: tuple[tuple[int, int], ...]
    variables: tuple[int, ...]


@dataclass(frozen=True)
class Buffers:
    """An assignment, and what is left of the copies: ordered (instruction, source, destination) by group."""

    assignment: BufferAssignment
    copies: dict[Hashable, tuple[tuple[Instruction, BufferSlice, BufferSlice], ...]]
    packing: Packing
    timeline: Timeline
    live: tuple[LiveRange, ...]


def assign_buffers(module: Module) -> Buffers:
    """Plan the memory of a whole module. It must be flat, scheduled, and its layouts agreed."""
    timeline = build_timeline(module)
    classes = coalesce(timeline)
    ordered = {group: _sequence(copies, classes, timeline) for group, copies in timeline.groups.items()}
    allocations, slices, packing = _place(timeline, classes)

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
    """Order simultaneous copies so that none overwrites what a later one reads; a cycle goes through a new variable."""
    waiting = {classes.find(c.target): c for c in copies if classes.find(c.source) != classes.find(c.target)}
    readers: dict[int, int] = {}
    for c in waiting.values():
        source = classes.find(c.source)
        readers[source] = readers.get(source, 0) + 1
    ready = [t for t in waiting if not readers.get(t)]
    saved: dict[int, int] = {}  # a class that was moved out of the way -> the variable that holds its old value
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
    """A variable alive only in the tick of the copies at `position`."""
    model = timeline.variables[like]
    index = len(timeline.variables)
    spare = Variable(index, AllocationKind.TEMPORARY, model.size, [(2 * position, 2 * position + 1)], shape=model.shape)
    timeline.variables.append(spare)
    return index


def _place(timeline: Timeline, classes: Classes) -> tuple[tuple[Allocation, ...], dict[int, BufferSlice], Packing]:
    """Allocations, and the slice of each class (or spare variable)."""
    allocations: list[Allocation] = []
    slices: dict[int, BufferSlice] = {}
    known = len(classes.parent)
    for kind in (AllocationKind.PARAMETER, AllocationKind.RESULT, AllocationKind.CONSTANT):
        for v in timeline.variables[:known]:
            if v.kind is not kind or (kind is AllocationKind.CONSTANT and not v.used):
                continue
            alignment = USER_ALIGNMENT if kind is AllocationKind.PARAMETER else POOL_ALIGNMENT
            index = len(allocations)
            allocations.append(Allocation(index, kind, v.size, alignment, v.number, v.shape, v.literal, v.result))
            slices[classes.find(v.index)] = BufferSlice(index, 0, v.size)
    moving = [
        n
        for n in range(len(timeline.variables))
        if (n >= known or classes.find(n) == n)
        and n not in slices
        and timeline.variables[n].kind is AllocationKind.TEMPORARY
    ]
    sizes = {n: timeline.variables[n].size for n in moving}
    segments = {n: classes.segments[n] if n < known else timeline.variables[n].segments for n in moving}
    bins = [Bin(a.index, a.size) for a in allocations if a.kind is AllocationKind.RESULT]
    for n in [*slices]:
        if bins and bins[0].number <= slices[n].allocation <= bins[-1].number:
            bins[slices[n].allocation - bins[0].number].hold(0, slices[n].size, classes.segments[n])
    for n, (number, offset) in fill_bins(bins, sizes, segments).items():
        slices[n] = BufferSlice(number, offset, sizes[n])
    moving = [n for n in moving if n not in slices]
    packing = pack([sizes[n] for n in moving], [segments[n] for n in moving])
    arena = len(allocations)
    allocations.append(Allocation(arena, AllocationKind.TEMPORARY, packing.size, POOL_ALIGNMENT))
    for n, offset in zip(moving, packing.offsets):
        slices[n] = BufferSlice(arena, offset, sizes[n])
    for v in timeline.variables[:known]:
        if v.kind is AllocationKind.CONSTANT and not v.used:  # forwarded only; nobody reads the bytes
            slices.setdefault(v.index, BufferSlice(arena, 0, 0))
    return tuple(allocations), slices, packing
