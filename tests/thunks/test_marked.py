"""Marks around thunks: one pair around the run, a pair around each step, numbered as the Plan's own marks are."""

import pytest

from ...formats.text.parser import parse_module
from ...planning.planner import plan
from ...profiling.insert import profiled
from ...thunks import ProfileThunk, SequentialThunk, from_plan
from ...thunks.marked import RUN, marked, numbered_steps, without_marks
from ..support.lhlo_programs import LOOP, SMALL_LOOP


def shifted(root):
    """The marks of a plan's thunks with ids from 1 on, without RUN."""
    return [(t.name, t.id + 1, t.begin) for t in root.walk() if isinstance(t, ProfileThunk)]


@pytest.mark.parametrize("text", [LOOP, SMALL_LOOP])
def test_the_marks_are_those_of_the_plan(text):
    made = plan(parse_module(text))
    thunks = marked(from_plan(made), steps=True)
    run = [ProfileThunk("run", RUN, True), ProfileThunk("run", RUN, False)]
    assert [thunks.thunks[0], thunks.thunks[-1]] == run
    found = [(t.name, t.id, t.begin) for t in thunks.walk() if isinstance(t, ProfileThunk) and t.id != RUN]
    assert found == shifted(from_plan(profiled(made)))


@pytest.mark.parametrize("steps", [False, True])
def test_without_marks_is_what_was_marked(steps):
    thunks = from_plan(plan(parse_module(LOOP)))
    assert without_marks(marked(thunks, steps)) == thunks
    assert marked(marked(thunks, True), steps) == marked(thunks, steps)


def test_steps_have_their_depth_and_the_order_of_ids():
    thunks = from_plan(plan(parse_module(SMALL_LOOP)))
    steps = numbered_steps(marked(thunks, True))
    assert [(depth, t.name) for depth, t in steps] == [(depth, t.name) for depth, t in numbered_steps(thunks)]
    begins = [t for t in marked(thunks, True).walk() if isinstance(t, ProfileThunk) and t.begin and t.id != RUN]
    assert [(t.id, t.name) for t in begins] == [(n, thunk.name) for n, (_, thunk) in enumerate(steps, 1)]
    assert {depth for depth, _ in steps} == {0, 1}


def test_a_program_of_nothing_has_the_run():
    thunks = marked(SequentialThunk(()), steps=True)
    assert [t.id for t in thunks.thunks] == [RUN, RUN] and numbered_steps(thunks) == []
