"""Another order of a thunk sequence that its declared uses allow. A run in it must give the same bits: if it does not,
a thunk touches memory that it does not declare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from .kinds import BufferUse, Meeting, ProfileThunk, SequentialThunk, Thunk, children, with_sequences


def reordered(sequence: SequentialThunk, random: Random) -> SequentialThunk:
    """The same thunks in a random order in which no two that conflict change places, in loops and branches too."""
    thunks = [with_sequences(thunk, lambda inner: reordered(inner, random)) for thunk in sequence.thunks]
    waits = dependencies(thunks)
    followers: dict[int, list[int]] = defaultdict(list)
    for number, before in enumerate(waits):
        for other in before:
            followers[other].append(number)
    left = [len(before) for before in waits]
    ready = [number for number, count in enumerate(left) if not count]
    order: list[Thunk] = []
    while ready:
        number = ready.pop(random.randrange(len(ready)))
        order.append(thunks[number])
        for follower in followers[number]:
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    return replace(sequence, thunks=tuple(order))


def dependencies(thunks: Sequence[Thunk]) -> list[set[int]]:
    """For each thunk, the numbers of the earlier ones that it conflicts with.

    No thunk passes a profile thunk, and no two that exchange data with the world outside change places.
    """
    seen: dict[int, list[tuple[int, BufferUse]]] = defaultdict(list)
    found: list[set[int]] = []
    mark: int | None = None  # the last profile thunk
    meetings: list[int] = []
    for number, thunk in enumerate(thunks):
        before = {n for use in thunk.uses for n, earlier in seen[use.slice.allocation] if use.conflicts(earlier)}
        if isinstance(thunk, ProfileThunk):
            before, mark = set(range(mark or 0, number)), number
        elif mark is not None:
            before.add(mark)
        if _meets(thunk):
            before.update(meetings[-1:])
            meetings.append(number)
        found.append(before)
        for use in thunk.uses:
            seen[use.slice.allocation].append((number, use))
    return found


def _meets(thunk: Thunk) -> bool:
    return isinstance(thunk, Meeting) or any(map(_meets, children(thunk)))
