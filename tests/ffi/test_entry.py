"""Programs with handlers that native code serves: results, errors, effects and the context are those of other runs."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import testbed
from testbed import ffi

from ...backends.base import CompileOptions
from ...backends.host import entry, executable
from ...ffi import registry
from ...ffi.calls import CallError, current, custom_options, user_data
from ..support.entry_programs import NEEDS_ENTRY, end_first_run, served

pytestmark = NEEDS_ENTRY

F32, X = ffi.BufferR1[ffi.F32], np.arange(4, dtype=np.float32)
SEEN: list[object] = []


class Shared:
    """What user data points to is a node with an object (ffi/binding/states.py)."""


@ffi.handler
def twice(x: F32, y: ffi.Result[F32]):
    if x[0] < 0:
        raise ValueError("below zero")
    y[...] = 2 * x


@ffi.handler
def run_id(run: ffi.RunId, device: ffi.DeviceOrdinal, y: ffi.Result[F32]):
    SEEN.append((run, device))
    y[...] = 0


@ffi.handler
def waits(x: F32, y: ffi.Result[F32]):
    """Another thread of Python must get its turn meanwhile."""
    done = threading.Event()
    threading.Thread(target=done.set).start()
    y[...] = done.wait(10)


@ffi.handler
def nested(x: F32, y: ffi.Result[F32]):
    """Runs a program, which may fail, inside the run that calls it."""
    try:
        y[...] = program("twice")(np.array(x))
    except CallError as error:
        SEEN.append(error.text)
        y[...] = program("run_id", "")()


@ffi.handler
def ready(y: ffi.Result[ffi.BufferR0[ffi.S32]]):
    """Nothing in memory says that 3000 calls have been made."""
    SEEN.append(1)
    y[...] = len(SEEN) < 3000


TARGETS = {h.function.__name__: h for h in (twice, run_id, waits, nested, ready)}


@pytest.fixture(scope="module", autouse=True)
def handlers():
    end_first_run()
    for name, handler in TARGETS.items():
        ffi.register(f"entry.{name}", handler)
    yield
    for name in TARGETS:
        registry.unregister(f"entry.{name}")


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


def call(target: str, operands: str) -> str:
    return (
        f'f32[4]{{0}} custom-call({operands}), custom_call_target="entry.{target}", '
        "api_version=API_VERSION_TYPED_FFI, custom_call_has_side_effect=true"
    )


def program(target: str, operands: str = "x", stack: str = "legacy", host: str = "auto"):
    """One call; where that has no operand, the program takes none."""
    lines = [f"ROOT r = {call(target, operands)}"]
    if operands:
        lines.insert(0, "x = f32[4]{0} parameter(0)")
    return testbed.compile(
        "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n", stack, CompileOptions(host_program=host)
    )


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("host", ["compiled", "interpreted"])
def test_calls_are_served(stack, host):
    double = program("twice", stack=stack, host=host)
    assert double(X).tolist() == [0, 2, 4, 6]
    before, out = served(double), double(X)
    assert double(X, out=out) is out and out.tolist() == [0, 2, 4, 6]
    assert double.execute([X + 1])[0].tolist() == [2, 4, 6, 8]
    assert served(double) - before == 3


def test_an_error_is_raised_once_and_the_next_call_is_served():
    for host in ("compiled", "interpreted"):
        double = program("twice", host=host)
        double(X)
        before = served(double)
        for n in range(5):
            with pytest.raises(CallError, match=r"^r: custom-call\(entry.twice\): INTERNAL: ValueError: below zero$"):
                double(X - 1)
            assert double(X + n)[0] == 2 * n
        assert served(double) - before == 5 and len(double._contexts) == 1


def test_effects_happen_once_also_before_an_error():
    text = f"HloModule m\nENTRY e {{ x = f32[4]{{0}} parameter(0)\n a = {call('run_id', '')}\n"
    chain = testbed.compile(text + f" ROOT r = {call('twice', 'x')}, control-predecessors={{a}} }}\n", "mlir")
    chain(X)
    before = served(chain)
    for _ in range(3):
        chain(X)
        with pytest.raises(CallError):
            chain(X - 1)
    assert served(chain) - before == 3 and len(SEEN) == 7


def test_each_run_has_a_number_and_keeps_it():
    asks = call("run_id", "")
    text = f"HloModule m\nENTRY e {{ a = {asks}\n b = {asks}\n ROOT r = f32[4]{{0}} add(a, b) }}\n"
    both = testbed.compile(text, "legacy")
    for _ in range(20):
        both()
    assert served(both) >= 19
    pairs = list(zip(SEEN[::2], SEEN[1::2], strict=True))
    assert all(a == b and a[0] > 0 and a[1] == 0 for a, b in pairs) and len(set(pairs)) == 20


def test_runs_get_what_their_caller_gives(given):
    """The block of a run that native code begins inherits from the thread's."""
    empty = program("notes", "")
    for _ in range(2):
        empty()
        with user_data({7: 1, 9: 1}), custom_options({"a": 1}):
            empty()
            with user_data({9: 2, 11: 1}):
                empty()
        empty()
    assert served(empty) >= 7 and [row[1:] for row in given] == [(0, 0), (2, 1), (3, 1), (0, 0)] * 2


def _given() -> tuple[int, int]:
    """How much user data this thread's runs have, and whether they have options."""
    run = current()
    assert run is not None
    return run.block.data_count, int(bool(run.block.options))


def test_other_threads_run_while_a_handler_waits():
    wait = program("waits")
    wait(X)
    before = served(wait)
    assert wait(X).tolist() == [1, 1, 1, 1] and served(wait) - before == 1


def test_a_handler_runs_programs():
    outer = program("nested")
    for _ in range(3):
        assert outer(X).tolist() == [0, 2, 4, 6]
        assert outer(X - 1).tolist() == [0, 0, 0, 0]
    assert [s for s in SEEN if isinstance(s, str)] == ["ValueError: below zero"] * 3


def test_threads_call_at_once():
    double = program("twice")

    def work(number: int) -> None:
        for n in range(300):
            if n % 3:
                assert (double(np.full(4, number, np.float32)) == 2 * number).all()
            else:
                with pytest.raises(CallError, match="below zero"):
                    double(np.full(4, -1, np.float32))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [None] * 8
    assert served(double) > 1000


POLL = """HloModule m
cond {
  s = s32[] parameter(0)
  zero = s32[] constant(0)
  ROOT c = pred[] compare(s, zero), direction=NE
}
body {
  s = s32[] parameter(0)
  ROOT r = s32[] custom-call(), custom_call_target="entry.ready", api_version=API_VERSION_TYPED_FFI
}
ENTRY e {
  one = s32[] constant(1)
  ROOT w = s32[] while(one), condition=cond, body=body
}
"""


@pytest.mark.parametrize("host", ["compiled", "interpreted"])
def test_a_loop_goes_on_while_a_handler_says_so(host):
    """Its memory never changes, but the handler's state does. Native code pauses after each iteration here."""
    poll = testbed.compile(POLL, "legacy", CompileOptions(host_program=host))
    for _ in range(2):
        SEEN.clear()
        assert poll() == 0 and len(SEEN) == 3000
        if poll._contexts.program is not None:
            poll._contexts.program.words[entry.W["rounds"]] = 1
    SEEN.clear()
    assert testbed.evaluate(POLL, [])[0] == 0 and len(SEEN) == 3000


@pytest.fixture
def given():
    """Who called a handler, and how much user data and options it had."""
    seen: list[tuple[str, int, int]] = []

    @ffi.handler
    def notes(y: ffi.Result[F32]):
        seen.append((threading.current_thread().name, *_given()))
        y[...] = 0

    ffi.register("entry.notes", notes)
    yield seen
    registry.unregister("entry.notes")


def test_what_a_caller_gives_reaches_the_threads_of_long_runs(given, monkeypatch):
    monkeypatch.setattr(executable, "LONG", 0.0)
    long = program("notes", "")
    with user_data({5: 1}), custom_options({"a": 1}):
        long()
    long()
    assert given == [("run", 1, 1), ("run", 0, 0)]


def test_what_a_caller_gives_reaches_several_devices(given):
    lines = ["i = u32[] replica-id()", f"a = {call('notes', '')}", "ROOT r = (u32[], f32[4]{0}) tuple(i, a)"]
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, "}"])
    both = testbed.compile(text, "legacy", CompileOptions(replicas=2))
    with user_data({5: 1, 6: 1}):
        results = both.execute_replicated([[], []])
    assert [int(i) for i, _ in results] == [0, 1]
    assert sorted(row[1:] for row in given) == [(2, 0), (2, 0)] and len({row[0] for row in given}) == 2


def test_the_first_thread_may_end():
    """The frame of a call site belongs to the first thread that calls."""
    double = program("twice")
    thread = threading.Thread(target=lambda: [double(X) for _ in range(10)])
    thread.start()
    thread.join()
    time.sleep(0.01)
    assert all(double(X + n).tolist() == (2 * (X + n)).tolist() for n in range(10))
