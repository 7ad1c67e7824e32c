"""A readable report of a buffer assignment: allocations, live ranges, peak, and the distance from the lower bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..hlo.display import Displayed
from ..hlo.shapes import shape_to_text
from .buffers import Buffers, LiveRange, assign_buffers
from .plan import Allocation, AllocationKind, Plan

MOST_NAMES = 3
"""Maximum number of values that a line names; the rest are counted."""


@dataclass(frozen=True)
class BufferReport(Displayed):
    """Sizes are in bytes.

    names: of the values in each live range. arena: its size. bound: maximum bytes of the arena alive at once.
    """

    plan: Plan
    buffers: Buffers
    names: dict[LiveRange, tuple[str, ...]]
    arena: int
    bound: int

    @property
    def excess(self) -> float:
        """Size of the arena relative to its lower bound, minus 1; 0 is optimal."""
        return self.arena / self.bound - 1 if self.bound else 0.0

    def ranges_of(self, allocation: int) -> tuple[LiveRange, ...]:
        return tuple(r for r in self.buffers.live if r.slice.allocation == allocation and r.slice.size)


def report_buffers(plan: Plan) -> BufferReport:
    """Assign the buffers of a plan made by plan() once more, keeping the live ranges."""
    buffers = assign_buffers(plan.module)
    makers: dict[int, list[str]] = {}
    for instruction, leaves in buffers.timeline.leaves.items():
        for number, variable in enumerate(leaves):
            name = instruction.name if len(leaves) == 1 else f"{instruction.name}.{number}"
            makers.setdefault(variable, []).append(name)
    for instruction, variable in buffers.timeline.scratch.items():
        makers.setdefault(variable, []).append(f"scratch of {instruction.name}")
    names = {r: tuple(dict.fromkeys(name for v in r.variables for name in makers.get(v, ()))) for r in buffers.live}
    return BufferReport(plan, buffers, names, buffers.packing.size, buffers.packing.bound)


def report_to_text(report: BufferReport) -> str:
    """The allocations with their slices and live ranges, then the totals."""
    lines = [f"buffers of {report.plan.module.name}: {report.buffers.timeline.length + 1} positions"]
    for a in report.plan.assignment.allocations:
        lines.append(_allocation(a))
        if a.kind is AllocationKind.TEMPORARY:
            lines += _slices(report, a)
    lines += _sums(report)
    lines += [f"kernel {k.name} may be split: {k.partition}" for k in report.plan.kernels if k.partition is not None]
    return "\n".join(lines) + "\n"


def _allocation(a: Allocation) -> str:
    number = f" {a.number}" if a.number >= 0 else ""
    shape = f" {shape_to_text(a.shape)}" if a.shape is not None else ""
    given = f" becomes result {a.result}" if a.result >= 0 else ""
    return f"allocation {a.index}: {a.kind.value}{number}{given}{shape}, {a.size} bytes, aligned to {a.alignment}"


def _slices(report: BufferReport, a: Allocation) -> Iterator[str]:
    ranges = sorted(report.ranges_of(a.index), key=lambda r: (r.slice.offset, r.segments))
    for r in ranges:
        names = report.names[r]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        held = ", ".join(names[:MOST_NAMES]) + more if names else "a value on its way round a cycle of copies"
        alive = " ".join(f"{first}-{last}" for first, last in positions(r))
        yield f"  [{r.slice.offset}, {r.slice.offset + r.slice.size}) alive at {alive}: {held}"


def positions(r: LiveRange) -> list[tuple[int, int]]:
    """First and last position of each segment."""
    return [(start // 2, (stop - 1) // 2) for start, stop in r.segments]


def _sums(report: BufferReport) -> Iterator[str]:
    for kind in (AllocationKind.PARAMETER, AllocationKind.CONSTANT, AllocationKind.RESULT):
        held = [a.size for a in report.plan.assignment.allocations if a.kind is kind]
        yield f"{kind.value}s: {len(held)}, {sum(held)} bytes"
    distance = "optimal" if report.arena == report.bound else f"{report.excess:.1%} above the bound"
    yield f"arena: {report.arena} bytes; lower bound (most bytes alive at once): {report.bound} bytes; {distance}"
