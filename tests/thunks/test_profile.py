"""Profile thunks: each begin and end is an event, in loops and branches too; what does not fit is counted."""

from random import Random

import numpy as np
import pytest

from ...codegen.load import load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions
from ...thunks import ConditionalThunk, ProfileThunk, SequentialThunk, to_text
from ...thunks.events import event_cost, intervals
from ...thunks.kinds import CollectiveDoneThunk
from ...thunks.legal_order import reordered
from ...thunks.runner import runner
from ..support.thunk_kernels import KERNELS, KINDS, counted_loop, executor_of, i32, kernel, part


@pytest.fixture(scope="module")
def code():
    return load([compile_object(KERNELS, EmitOptions.host(), cache=None)])


def timed(number, *thunks):
    name = f"op.{number}"
    return ProfileThunk(name, number, True), *thunks, ProfileThunk(name, number, False)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def frame_of(kind, code, thunks, *arrays, observer=None, **options):
    executor = executor_of(kind, code, SequentialThunk(tuple(thunks)), range(len(arrays)), **options)
    frame = executor.frame(np.array([a.ctypes.data for a in arrays], np.uint64), observer)
    frame.arrays = arrays  # it has their addresses only
    return frame


def nested_loops():
    """3 times: zero the inner counter, 4 times: add to the total (op 2). Ops: 0 the loop, 1 the inner one."""
    state = i32(0, 1, 3, 0, 4, 0)
    one, total = part(0, 4), part(0, 20)
    add = timed(2, kernel("add", [total, one], [total]))
    inner = counted_loop(part(0, 12), one, part(0, 16), part(1, 1, 1), *add)
    outer = counted_loop(part(0), one, part(0, 8), part(1, 0, 1), kernel("zero", [], [part(0, 12)]), *timed(1, inner))
    return timed(0, outer), (state, np.zeros(2, np.uint8))


def observe(thunk, run):
    run()


@pytest.mark.parametrize("observer", [None, observe])
def test_loops_note_each_iteration_in_order(kind, code, observer):
    thunks, arrays = nested_loops()
    frame = frame_of(kind, code, thunks, *arrays, observer=observer)
    frame.run()
    events = frame.events.taken()
    assert arrays[0].tolist() == [3, 1, 3, 4, 4, 12]
    assert events.marks.tolist() == [0, *([2, *([4, 5] * 4), 3] * 3), 1]
    assert events.lost == 0
    assert (np.diff(events.times.astype(np.int64)) >= 0).all()


@pytest.mark.parametrize("flag, marks", [(1, [0, 2, 3, 1]), (0, [0, 4, 5, 6, 7, 1])])
def test_a_branch_notes_what_it_runs(kind, code, flag, marks):
    nothing = kernel("nothing", [], [])
    branches = SequentialThunk(timed(1, nothing)), SequentialThunk((*timed(2, nothing), *timed(3, nothing)))
    branch = ConditionalThunk("c", part(0, 0, 1), True, branches)
    frame = frame_of(kind, code, timed(0, branch), np.array([flag], np.uint8))
    frame.run()
    assert frame.events.taken().marks.tolist() == marks


@pytest.mark.parametrize("most", [0, 1, 7, 31, 32, 33])
def test_events_beyond_the_buffer_are_counted(kind, code, most):
    thunks, arrays = nested_loops()
    frame = frame_of(kind, code, thunks, *arrays, most_events=most)
    frame.run()
    events = frame.events.taken()
    whole = [0, *([2, *([4, 5] * 4), 3] * 3), 1]
    assert events.marks.tolist() == whole[:most]
    assert events.lost == max(0, len(whole) - most)


def test_taken_events_are_gone_and_the_next_run_notes_its_own(kind, code):
    frame = frame_of(kind, code, timed(5, kernel("nothing", [], [])))
    frame.run()
    frame.run()
    assert frame.events.taken().marks.tolist() == [10, 11, 10, 11]
    assert frame.events.taken().marks.tolist() == []
    frame.run()
    assert frame.events.taken().marks.tolist() == [10, 11]


def test_long_loops_that_return_to_python_keep_their_events(kind, code):
    state = i32(0, 1, 5000)
    loop = counted_loop(part(0), part(0, 4), part(0, 8), part(1, 0, 1), *timed(1, kernel("nothing", [], [])))
    frame = frame_of(kind, code, [loop], state, np.zeros(1, np.uint8))
    frame.run()
    assert frame.events.taken().marks.tolist() == [2, 3] * 5000


def test_programs_without_profile_thunks_have_no_events(kind, code):
    assert frame_of(kind, code, [kernel("nothing", [], [])]).events is None


def test_no_thunk_passes_a_profile_thunk():
    free = [kernel("zero", [], [part(0, 4 * n)]) for n in range(8)]
    sequence = SequentialThunk((*free[:3], *timed(0, *free[3:5]), *free[5:]))
    orders = {reordered(sequence, Random(seed)) for seed in range(40)}
    assert len(orders) > 20
    for order in orders:
        assert [n for n, t in enumerate(order.thunks) if isinstance(t, ProfileThunk)] == [3, 6]
        assert [set(order.thunks[a:b]) for a, b in ((0, 3), (4, 6), (7, 10))] == [
            set(free[:3]),
            set(free[3:5]),
            set(free[5:]),
        ]


def test_an_event_costs_some_time():
    made = runner([3])
    assert event_cost(made.run, made.profile) > 0


def test_text_names_id_and_instruction():
    assert to_text(SequentialThunk(timed(4))).splitlines()[1:3] == [
        "  profile begin 4 op.4",
        "  profile end 4 op.4",
    ]


def test_kinds_are_words():
    steps = [*timed(0, CollectiveDoneThunk("r", part(0))), *timed(1, kernel("zero", [], [part(0, 4)]))]
    assert [i.what for i in intervals(SequentialThunk(tuple(steps)))] == ["collective done", "kernel"]
