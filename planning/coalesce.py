"""Coalescing: let variables share a buffer where possible, so that copies vanish and dying operands are overwritten.

Two classes of variables are merged if they are never alive at once, except in a tick in which a copy or an in-place
kernel joins the two.
"""

from __future__ import annotations

from bisect import bisect_right

from .liveness import Copy, Reuse, Timeline
from .plan import AllocationKind

Segments = list[tuple[int, int]]


class Classes:
    """Disjoint sets of variables, each with the union of its live segments."""

    def __init__(self, timeline: Timeline):
        self.variables = timeline.variables
        self.parent = list(range(len(timeline.variables)))
        self.segments: list[Segments] = [list(v.segments) for v in timeline.variables]
        self.fixed = [v if v.kind is not AllocationKind.TEMPORARY else None for v in timeline.variables]
        self.joins: dict[int, list[Copy | Reuse]] = {}
        for event in [c for g in timeline.groups.values() for c in g] + timeline.reuses:
            self.joins.setdefault(2 * event.position, []).append(event)

    def find(self, variable: int) -> int:
        root = variable
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[variable] != root:
            self.parent[variable], variable = root, self.parent[variable]
        return root

    def merge(self, event: Copy | Reuse) -> bool:
        """Give both variables one buffer if that is safe. Returns whether they share one afterwards."""
        a, b = self.find(event.source), self.find(event.target)
        if a == b:
            return True
        va, vb, fa, fb = self.variables[a], self.variables[b], self.fixed[a], self.fixed[b]
        if (fa is not None and fb is not None) or va.size != vb.size or va.size == 0:
            return False
        if any(f is not None and f.read_only for f in (fa, fb)) or self._conflict(a, b, event):
            return False
        if len(self.segments[a]) < len(self.segments[b]):
            a, b = b, a
        self.parent[b] = a
        self.fixed[a] = fa or fb
        self.segments[a] = union(self.segments[a], self.segments[b])
        self.segments[b] = []
        return True

    def _conflict(self, a: int, b: int, event: Copy | Reuse) -> bool:
        for start, stop in overlaps(self.segments[a], self.segments[b]):
            if stop - start != 1:
                return True
            if start == 2 * event.position and self._hands_over(event, start):
                continue
            if not any(
                {self.find(e.source), self.find(e.target)} == {a, b} and self._hands_over(e, start)
                for e in self.joins.get(start, ())
            ):
                return True
        return False

    def _hands_over(self, event: Copy | Reuse, tick: int) -> bool:
        """Whether source and target of an event may share its tick.

        A copy's may in any case; a kernel's only if the operand's buffer is dead after the kernel.
        """
        if isinstance(event, Copy):
            return True
        segments = self.segments[self.find(event.source)]
        return segments[bisect_right(segments, (tick + 1,)) - 1][1] == tick + 1


def overlaps(a: Segments, b: Segments) -> list[tuple[int, int]]:
    """The intersections of two ascending lists of intervals."""
    if not a or not b or a[-1][1] <= b[0][0] or b[-1][1] <= a[0][0]:
        return []
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        start, stop = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < stop:
            found.append((start, stop))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return found


def union(a: Segments, b: Segments) -> Segments:
    """The union of two ascending lists of intervals; adjacent intervals are joined."""
    merged: Segments = []
    for start, stop in sorted(a + b):
        if merged and merged[-1][1] >= start:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def coalesce(timeline: Timeline, *, reuse: bool = True) -> Classes:
    """Merge greedily: whole-array updates in place, then copies (inner loops first), then reuse of dying operands.

    reuse: False leaves out the last of these.
    """
    classes = Classes(timeline)
    copies = [c for group in timeline.groups.values() for c in group]
    copies.sort(key=lambda c: (-c.depth, c.position))
    wanted: list[Copy | Reuse] = [r for r in timeline.reuses if r.must]
    wanted += copies
    wanted += [r for r in timeline.reuses if reuse and not r.must]
    for event in wanted:
        classes.merge(event)
    return classes
