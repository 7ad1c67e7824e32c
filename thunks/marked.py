"""Thunks → thunks with marks around the whole run, and around each step. profiling/insert.py does it to Plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from .kinds import ConditionalThunk, ProfileThunk, SequentialThunk, Thunk, WhileThunk

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
        match thunk:
            case SequentialThunk():
                yield from _steps(thunk.thunks, depth)
            case WhileThunk():
                yield depth, thunk
                yield from _steps((thunk.condition, thunk.body), depth + 1)
            case ConditionalThunk():
                yield depth, thunk
                yield from _steps(thunk.branches, depth + 1)
            case ProfileThunk():
                continue
            case _:
                yield depth, thunk


def _marked(thunks: Sequence[Thunk], numbers: Iterator[int]) -> tuple[Thunk, ...]:
    found: list[Thunk] = []
    for thunk in thunks:
        if isinstance(thunk, SequentialThunk):
            found.append(_sequence(thunk, numbers))
            continue
        number = next(numbers)
        match thunk:
            case WhileThunk():
                condition, body = _sequence(thunk.condition, numbers), _sequence(thunk.body, numbers)
                thunk = replace(thunk, condition=condition, body=body)
            case ConditionalThunk():
                thunk = replace(thunk, branches=tuple(_sequence(branch, numbers) for branch in thunk.branches))
        found += [ProfileThunk(thunk.name, number, True), thunk, ProfileThunk(thunk.name, number, False)]
    return tuple(found)


def _sequence(thunk: SequentialThunk, numbers: Iterator[int]) -> SequentialThunk:
    return replace(thunk, thunks=_marked(thunk.thunks, numbers))


def without_marks(root: SequentialThunk) -> SequentialThunk:
    """The thunks without profile thunks."""
    found: list[Thunk] = []
    for thunk in root.thunks:
        match thunk:
            case ProfileThunk():
                continue
            case SequentialThunk():
                thunk = without_marks(thunk)
            case WhileThunk():
                thunk = replace(thunk, condition=without_marks(thunk.condition), body=without_marks(thunk.body))
            case ConditionalThunk():
                thunk = replace(thunk, branches=tuple(map(without_marks, thunk.branches)))
        found.append(thunk)
    return replace(root, thunks=tuple(found))
