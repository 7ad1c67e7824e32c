"""Thunks → thunks with marks around the whole run, and around each step. profiling/insert.py does it to Plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from .kinds import ProfileThunk, SequentialThunk, Thunk, children, with_sequences

RUN = 0
"""The id of the interval that is the whole run."""


def marked(root: SequentialThunk, steps: bool) -> SequentialThunk:
    """The thunks with marks of ours only: RUN around all of them and, if `steps`, an id from 1 on for each step.

    Steps are numbered in the order of `numbered_steps`.
    """
    plain = without_marks(root)
    inside = _marked(plain.thunks, count(1)) if steps else plain.thunks
    return SequentialThunk((ProfileThunk("run", RUN, True), *inside, ProfileThunk("run", RUN, False)), root.name)


def numbered_steps(root: SequentialThunk) -> list[tuple[int, Thunk]]:
    """(depth, thunk) of each kernel, copy, loop and conditional in the order of the text: step n has the id n + 1."""
    return list(_steps(root.thunks, 0))


def _steps(thunks: Sequence[Thunk], depth: int) -> Iterator[tuple[int, Thunk]]:
    for thunk in thunks:
        if isinstance(thunk, SequentialThunk):
            yield from _steps(thunk.thunks, depth)
        elif not isinstance(thunk, ProfileThunk):
            yield depth, thunk
            yield from _steps(children(thunk), depth + 1)


def _marked(thunks: Sequence[Thunk], numbers: Iterator[int]) -> tuple[Thunk, ...]:
    found: list[Thunk] = []
    for thunk in thunks:
        if isinstance(thunk, SequentialThunk):
            found.append(_sequence(thunk, numbers))
            continue
        number = next(numbers)
        inner = with_sequences(thunk, lambda sequence: _sequence(sequence, numbers))
        found += [ProfileThunk(thunk.name, number, True), inner, ProfileThunk(thunk.name, number, False)]
    return tuple(found)


def _sequence(thunk: SequentialThunk, numbers: Iterator[int]) -> SequentialThunk:
    return replace(thunk, thunks=_marked(thunk.thunks, numbers))


def without_marks(root: SequentialThunk) -> SequentialThunk:
    """The thunks without profile thunks."""
    kept = [thunk for thunk in root.thunks if not isinstance(thunk, ProfileThunk)]
    return replace(root, thunks=tuple(with_sequences(thunk, without_marks) for thunk in kept))
