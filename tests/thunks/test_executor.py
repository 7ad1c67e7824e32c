"""thunks/: lowering from a plan, declared uses, text, and both executors: the native runner and the host program."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...codegen.errors import CodegenError
from ...codegen.float_mode import float_mode
from ...codegen.load import load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target
from ...thunks import (
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    SequentialThunk,
    WhileThunk,
    read,
    rounds,
    to_text,
    write,
)
from ...thunks.executor import Stopped
from ...thunks.host_build import host_ir, module_of
from ..support.thunk_kernels import KERNELS, KINDS, counted_loop, executor_of, i32, kernel, part


@pytest.fixture(scope="module")
def code():
    return load([compile_object(KERNELS, EmitOptions.host(), cache=None)])


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def run(kind, code, thunks, *arrays, observer=None):
    executor = executor_of(kind, code, SequentialThunk(tuple(thunks)), range(len(arrays)))
    bases = np.array([a.ctypes.data for a in arrays], np.uint64)
    executor.frame(bases, observer).run()


def test_kernels_and_copies_run_in_order(kind, code):
    a, out = i32(3, 4), i32(0, 0, 0)
    thunks = [
        kernel("add", [part(0), part(0, 4)], [part(1)]),
        CopyThunk("copy", part(1), part(1, 8)),
        kernel("add", [part(1), part(1, 8)], [part(1, 4)]),
        kernel("nothing", [], []),
        CopyThunk("empty", part(0, 0, 0), part(1, 0, 0)),
    ]
    run(kind, code, thunks, a, out)
    assert out.tolist() == [7, 14, 7]


def test_an_empty_program_changes_nothing(kind, code):
    state = i32(7)
    run(kind, code, [], state)
    assert state.tolist() == [7]


@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 8, 9, 100, 5000])
def test_a_flat_loop_runs_as_often_as_its_predicate_says(kind, code, rounds):
    state, predicate = i32(0, 1, rounds, 0), np.zeros(1, np.uint8)
    grow = kernel("add", [part(0, 12), part(0, 4)], [part(0, 12)])
    run(kind, code, [counted_loop(part(0), part(0, 4), part(0, 8), part(1, 0, 1), grow)], state, predicate)
    assert state.tolist() == [rounds, 1, rounds, rounds]


def test_a_loop_inside_a_loop(kind, code):
    # words: 0 outer counter, 1 one, 2 outer limit, 3 inner counter, 4 inner limit, 5 total
    state, predicates = i32(0, 1, 6, 0, 5, 0), np.zeros(2, np.uint8)
    one, total = part(0, 4), part(0, 20)
    inner = counted_loop(part(0, 12), one, part(0, 16), part(1, 1, 1), kernel("add", [total, one], [total]))
    outer = counted_loop(part(0), one, part(0, 8), part(1, 0, 1), kernel("zero", [], [part(0, 12)]), inner)
    run(kind, code, [outer], state, predicates)
    assert state.tolist() == [6, 1, 6, 5, 5, 30]


@pytest.mark.parametrize(
    "is_pred, selector, taken",
    [(True, 1, 0), (True, 0, 1), (False, 0, 0), (False, 2, 2), (False, 3, 2), (False, -1, 2)],
)
def test_a_conditional_takes_the_branch_that_hlo_says(kind, code, is_pred, selector, taken):
    flags, out = i32(selector, 1), i32(0, 0, 0)
    branches = tuple(
        SequentialThunk((kernel("add", [part(0, 4), part(1, 4 * i)], [part(1, 4 * i)]),))
        for i in range(2 + (not is_pred))
    )
    run(kind, code, [ConditionalThunk("switch", part(0), is_pred, branches)], flags, out)
    assert out.tolist() == [int(i == taken) for i in range(3)]


COUNTERS, ONE, TOTAL, LIMITS = range(4), part(0, 16), part(0, 20), range(6, 10)
"""Words of a random program's state: a counter per depth, 1, the total of kernel calls, the limits and selectors."""


def random_thunks(draw, depth, flags):
    """Nested loops and conditionals. A loop increments the counter of its depth up to a limit. flags: one per loop."""
    thunks = []
    for kind in draw(st.lists(st.sampled_from(["add", "while", "pred", "index"][: 4 if depth < 4 else 1]), max_size=3)):
        word = part(0, 4 * draw(st.sampled_from(LIMITS)))
        inner = [random_thunks(draw, depth + 1, flags) for _ in range(0 if kind == "add" else 2 + (kind == "index"))]
        if kind == "add":
            thunks.append(kernel("add", [TOTAL, word], [TOTAL]))
        elif kind == "while":
            flags.append(flag := part(1, len(flags), 1))
            counter = part(0, 4 * COUNTERS[depth])
            test = SequentialThunk((*inner[1].thunks, kernel("less", [counter, word], [flag])))
            body = SequentialThunk((*inner[0].thunks, kernel("add", [counter, ONE], [counter])))
            thunks += [kernel("zero", [], [counter]), WhileThunk("loop", test, body, flag)]
        else:
            branches = tuple(inner[: 2 if kind == "pred" else 3])
            selector = part(0, word.offset, 1) if kind == "pred" else word
            thunks.append(ConditionalThunk("switch", selector, kind == "pred", branches))
    return SequentialThunk(tuple(thunks))


@given(st.data(), st.sampled_from([1, 2, rounds.MOST_ROUNDS]))
def test_nested_control_flow_runs_natively_as_it_does_for_an_observer(code, data, most):
    """most: iterations after which a loop returns to Python and is resumed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "MOST_ROUNDS", most)
        patch.setattr(rounds, "MOST_STEADY_ROUNDS", most)
        natively_as_for_an_observer(code, data)


def natively_as_for_an_observer(code, data):
    flags: list = []
    root = random_thunks(data.draw, 0, flags)
    values = data.draw(st.lists(st.integers(-1, 3), min_size=4, max_size=4))
    executors = {kind: executor_of(kind, code, root, [0, 1]) for kind in KINDS}

    def outcome(kind, observer, times):
        state, cells = i32(0, 0, 0, 0, 1, 0, *values), np.zeros(len(flags) + 1, np.uint8)
        frame = executors[kind].frame(np.array([state.ctypes.data, cells.ctypes.data], np.uint64), observer)
        for _ in range(times):
            frame.run()
        return state.tolist(), cells.tolist()

    for times in (1, 3):
        observed = outcome("interpreted", lambda thunk, run: run(), times)
        assert [outcome(kind, None, times) for kind in KINDS] == [observed] * len(KINDS)


def test_the_same_frame_takes_new_addresses(kind, code):
    root = SequentialThunk((counted_loop(part(0), part(0, 4), part(0, 8), part(1, 0, 1)),))
    executor = executor_of(kind, code, root, [0])
    predicate = np.zeros(1, np.uint8)
    first, second = i32(0, 1, 5), i32(0, 2, 9)
    bases = np.array([first.ctypes.data, predicate.ctypes.data], np.uint64)
    frame = executor.frame(bases)
    frame.run()
    bases[0] = second.ctypes.data
    frame.rebind(bases)
    frame.run()
    assert first.tolist() == [5, 1, 5] and second.tolist() == [10, 2, 9]


def test_kernels_may_have_many_arguments(kind):
    count = 90
    names = ", ".join(f"ptr %p{i}" for i in range(count))
    sums = ["%s0 = add i32 0, 0"]
    for i in range(count - 1):
        sums += [f"%v{i} = load i32, ptr %p{i}", f"%s{i + 1} = add i32 %s{i}, %v{i}"]
    text = f"define void @many({names}) {{\n" + "\n".join(sums)
    text += f"\nstore i32 %s{count - 1}, ptr %p{count - 1}\nret void\n}}"
    code = load([compile_object(text, EmitOptions.host(), cache=None)])
    data = np.arange(count, dtype=np.int32)
    thunk = kernel("many", [part(0, 4 * i) for i in range(count - 1)], [part(0, 4 * count - 4)])
    run(kind, code, [thunk], data)
    assert data[-1] == sum(range(count - 1))


def test_an_observer_sees_each_thunk_outer_around_inner(kind, code):
    state, predicate, seen = i32(0, 1, 2), np.zeros(1, np.uint8), []

    def observe(thunk, run):
        seen.append(f"begin {thunk.name}")
        run()
        seen.append(f"end {thunk.name}")

    loop = counted_loop(part(0), part(0, 4), part(0, 8), part(1, 0, 1))
    run(kind, code, [loop, kernel("zero", [], [part(0)])], state, predicate, observer=observe)
    test, step = ["begin less", "end less"], ["begin add", "end add"]
    assert seen == ["begin loop", *test, *step, *test, *step, *test, "end loop", "begin zero", "end zero"]
    assert state.tolist() == [0, 1, 2]


HALVE = """
define void @halve(ptr %x) {
  %v = load volatile float, ptr %x
  %h = fmul float %v, 5.0e-01
  store volatile float %h, ptr %x
  ret void
}
"""


@pytest.mark.parametrize("flush", [True, False])
def test_subnormals_flush_while_kernels_run_and_not_after(kind, flush):
    code = load([compile_object(HALVE, EmitOptions.host(strict=True), cache=None)])
    smallest = np.finfo(np.float32).smallest_normal
    x = np.array([smallest], np.float32)
    root = SequentialThunk((kernel("halve", [], [part(0)]),))
    executor = executor_of(kind, code, root, [0], flush)
    executor.frame(np.array([x.ctypes.data], np.uint64)).run()
    flushes = flush and float_mode(Target.host().architecture, True) is not None
    assert x[0] == (0 if flushes else smallest / 2)
    assert np.float32(smallest) / np.float32(2) != 0


def test_a_missing_kernel_is_an_error_before_anything_runs(kind, code):
    with pytest.raises(CodegenError, match="does not define 'absent'"):
        run(kind, code, [kernel("absent", [], [])])


@pytest.mark.parametrize("nested", [False, True])
def test_ctrl_c_ends_an_endless_loop(kind, code, nested):
    yes = SequentialThunk((kernel("yes", [], [part(0, 0, 1)]),))
    count = SequentialThunk((kernel("add", [part(1), part(1, 4)], [part(1)]),))
    inner = SequentialThunk((ConditionalThunk("switch", part(0, 0, 1), True, (count, yes)),))
    endless = WhileThunk("endless", yes, inner if nested else count, part(0, 0, 1))
    predicate, state = np.zeros(1, np.uint8), i32(0, 1)
    executor = executor_of(kind, code, SequentialThunk((endless,)), range(2))
    frame = executor.frame(np.array([predicate.ctypes.data, state.ctypes.data], np.uint64))

    def interrupt():
        while not predicate[0]:
            time.sleep(0.01)  # the loop has not begun
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        frame.run()
    thread.join()


@pytest.mark.parametrize("observer", [None, lambda thunk, run: run()])
def test_an_endless_loop_that_changes_no_memory_ends(kind, code, observer):
    yes = SequentialThunk((kernel("yes", [], [part(0, 0, 1)]),))
    copy = SequentialThunk((CopyThunk("copy", part(1), part(1, 4)),))
    state = i32(3, 0)
    run(kind, code, [WhileThunk("endless", yes, copy, part(0, 0, 1))], np.zeros(1, np.uint8), state, observer=observer)
    assert state.tolist() == [3, 3]


def test_other_threads_run_while_a_program_runs(kind, code):
    state, predicate = i32(0, 1, 20_000_000), np.zeros(1, np.uint8)
    thread = threading.Thread(
        target=run, args=(kind, code, [counted_loop(part(0), part(0, 4), part(0, 8), part(1, 0, 1))], state, predicate)
    )
    thread.start()
    steps = 0
    while thread.is_alive():
        steps += 1
    thread.join()
    assert state[0] == 20_000_000 and steps > 1000


@pytest.mark.parametrize("observed", [False, True])
def test_a_stopped_run_ends_before_its_next_kernel_and_goes_on_when_allowed(kind, code, observed):
    """The first kernel of the body stops the run, as another thread would."""
    state, predicate, stops = i32(0, 1, 5), np.zeros(1, np.uint8), []
    body = counted_loop(part(0), part(0, 4), part(0, 8), part(1, 0, 1))
    executor = executor_of(kind, code, SequentialThunk((body, kernel("zero", [], [part(0)]))), [0, 1])

    def observe(thunk, run):
        run()
        if not stops and thunk.name == "add":
            stops.append(frame.stop())

    bases = np.array([state.ctypes.data, predicate.ctypes.data], np.uint64)
    frame = executor.frame(bases, observe if observed else None)
    if observed:
        with pytest.raises(Stopped):
            frame.run()
        assert state.tolist() == [1, 1, 5]
    else:
        frame.stop()
        frame.run()
        assert state.tolist() == [0, 1, 5]
    frame.stop(False)
    frame.run()
    assert state.tolist() == [0, 1, 5] and predicate[0] == 0


def test_the_text_shows_every_thunk_and_its_uses():
    thunks = SequentialThunk(
        (
            KernelThunk("add.1", "add_f32", (read(part(0)), write(part(3, 64, 4)))),
            CopyThunk("copy.2", part(3, 64, 4), part(2)),
            WhileThunk("w", SequentialThunk(()), SequentialThunk((kernel("k", [], []),)), part(3, 0, 1), 7),
            ConditionalThunk("c", part(0), True, (SequentialThunk(()), SequentialThunk(()))),
        )
    )
    assert to_text(thunks) == (
        "sequence {\n"
        "  kernel add.1 @add_f32(read 0[0:4], write 3[64:68])\n"
        "  copy copy.2 3[64:68] -> 2[0:4]\n"
        "  while w predicate 3[0:1] trip_count 7 {\n"
        "    sequence {\n"
        "    }\n"
        "    sequence {\n"
        "      kernel k @k()\n"
        "    }\n"
        "  }\n"
        "  conditional c pred 0[0:4] {\n"
        "    sequence {\n"
        "    }\n"
        "    sequence {\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_uses_are_declared_and_conflicts_found():
    loop = counted_loop(part(0), part(1), part(2), part(3, 0, 1))
    assert set(loop.uses) == {
        read(part(0)),
        read(part(1)),
        read(part(2)),
        write(part(0)),
        write(part(3, 0, 1)),
        read(part(3, 0, 1)),
    }
    assert read(part(0, 0, 8)).conflicts(write(part(0, 4, 8)))
    assert not read(part(0, 0, 8)).conflicts(read(part(0, 4, 8)))
    assert not write(part(0, 0, 4)).conflicts(write(part(0, 4, 4)))
    with pytest.raises(ValueError, match="overlap"):
        CopyThunk("bad", part(0, 0, 8), part(0, 4, 8))


def test_offsets_beyond_31_bits_are_kept():
    far = 3 << 30
    text = host_ir(module_of(SequentialThunk((kernel("zero", [], [part(0, far)]),)), EmitOptions.host()))
    assert f"i64 {far}" in text
