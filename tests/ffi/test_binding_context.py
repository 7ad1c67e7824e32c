"""What a handler in Python gets of its context, states and threads; what it returns, and when."""

import ctypes
import gc
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

from ... import ffi
from ..support.ffi_runtime import RUNTIME, Frame, Runtime, call


# -- context ----------------------------------------------------------------------------------------------------------
def test_what_the_context_has():
    seen = []

    @ffi.handler
    def ask(
        stream: ffi.PlatformStream,
        scratch: ffi.ScratchAllocator,
        pool: ffi.ThreadPool,
        run: ffi.RunId,
        device: ffi.DeviceOrdinal,
        context: ffi.Ctx,
    ):
        block = scratch.array((3, 4), ml_dtypes.bfloat16)
        block[...] = 2
        assert scratch.allocate(100, 64) % 64 == 0 and len(RUNTIME.scratch) == 2
        done = threading.Barrier(3, timeout=20)
        for _ in range(2):
            pool.schedule(done.wait)
        done.wait()
        assert context.get(ffi.RunId) == run
        seen.append((stream, float(block.sum()), pool.num_threads(), run, device))

    assert call(ask) is None
    assert seen == [(0x5EA, 24.0, 3, 77, 5)] * 3 and not RUNTIME.scratch


def test_what_the_context_lacks():
    bare = Runtime()
    text = call(ffi.bind().ctx(ffi.PlatformStream).to(print), runtime=bare)
    assert text.endswith("(bad operands at: 0)\nDiagnostics:\nFailed to get platform stream: there are no streams")
    late = ffi.bind().ctx().to(lambda context: context.get(ffi.PlatformStream))
    assert call(late, runtime=bare) == "INTERNAL: Failed to get platform stream: there are no streams"
    greedy = ffi.bind().ctx(ffi.ScratchAllocator).to(lambda scratch: scratch.allocate(1 << 40))
    assert call(greedy) == "INTERNAL: Failed to allocate scratch memory: too much"
    both = ffi.bind().arg(ffi.Buffer[ffi.S8]).ctx(ffi.PlatformStream).to(print)
    assert "(bad operands at: 0, 1)" in call(both, [np.zeros(2)], runtime=bare)


class Counter:
    def __init__(self, start):
        self.count = start


class Other:
    pass


@ffi.handler(stage="instantiate")
def make_counter(start: ffi.Attr[ffi.int32]) -> Counter:
    if start < 0:
        raise ffi.Error(ffi.ErrorCode.OUT_OF_RANGE, "below zero")
    return Counter(start)


@ffi.handler
def use_counter(start: ffi.Attr[ffi.int32], counter: ffi.State[Counter], out: ffi.Result[ffi.BufferR0[ffi.S32]]):
    counter.count += 1
    out[...] = counter.count


@pytest.mark.parametrize("version", [(0, 1), (0, 2), (0, 3), (0, 5)])
def test_a_state_lives_from_instantiation_to_its_deletion(version):
    runtime, out, start = Runtime(version), np.zeros((), np.int32), {"start": np.int32(40)}
    metadata = runtime.metadata(make_counter.ffi_address)
    assert (metadata.state_type_id.type_id > 0) == (version > (0, 1))
    assert runtime.metadata(use_counter.ffi_address).state_type_id.type_id == 0
    assert call(make_counter, attrs=start, runtime=runtime, ctx=8, times=1) is None
    state = weakref.ref(ctypes.py_object.from_address(next(iter(runtime.states.values()))[1] + 8).value)
    for n in range(3):
        assert call(use_counter, [], [out], start, runtime, ctx=8, times=1) is None
        assert out == 41 + n
    assert "State is not set" in call(use_counter, [], [out], start, runtime, ctx=16, times=1)
    assert state().count == 43
    runtime.delete_states()
    gc.collect()
    assert state() is None


def test_a_thread_without_the_lock_only_hands_a_state_over():
    runtime, out, start = Runtime(), np.zeros((), np.int32), {"start": np.int32(1)}
    assert call(make_counter, attrs=start, runtime=runtime, times=1) is None
    node = next(iter(runtime.states.values()))[1]
    state = weakref.ref(ctypes.py_object.from_address(node + 8).value)
    deleter = next(iter(runtime.deleters.values()))
    pthread_t, libc = ctypes.c_ulong(), ctypes.CDLL(None)
    assert libc.pthread_create(ctypes.byref(pthread_t), None, ctypes.c_void_p(deleter), ctypes.c_void_p(node)) == 0
    libc.pthread_join(pthread_t, None)
    runtime.states.clear()
    assert "State is not set" in call(use_counter, [], [out], start, runtime, times=1)
    assert state() is None


def test_states_that_are_none():
    text = call(make_counter, attrs={"start": np.int32(-1)}, times=1)
    assert text == "OUT_OF_RANGE: below zero"
    wrong = ffi.bind("instantiate").to(lambda: Other(), state=Counter)
    assert call(wrong).endswith("Other, not Counter")


def test_user_data():
    ffi.register_type(Other, "testbed.tests.other")
    runtime, seen = Runtime(), []
    handler = ffi.bind().ctx(ffi.UserData[Other]).to(seen.append)
    assert "Failed to get user data from execution context: no user data of type" in call(handler, runtime=runtime)
    given = Other()
    holder = (ctypes.c_void_p * 2)(0, id(given))
    runtime.user_data[runtime.types["testbed.tests.other"]] = ctypes.addressof(holder)
    assert call(handler, runtime=runtime) is None and seen == [given] * 3


# -- results ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", [c for c in ffi.ErrorCode if c], ids=lambda c: c.name)
@pytest.mark.parametrize("how", ["return", "raise"])
def test_errors_of_every_code(code, how):
    def fail(x):
        if how == "raise":
            raise ffi.Error(code, "no\0pe ä")
        return ffi.Error(code, "no\0pe ä")

    assert call(ffi.bind().arg(ffi.AnyBuffer).to(fail), [np.zeros(3)]) == f"{code.name}: no\\0pe ä"


@pytest.mark.parametrize(
    "raised, text",
    [
        (ZeroDivisionError("by zero"), "INTERNAL: ZeroDivisionError: by zero"),
        (ValueError(), "INTERNAL: ValueError"),
        (KeyboardInterrupt(), "CANCELLED: KeyboardInterrupt"),
        (SystemExit(3), "INTERNAL: SystemExit: 3"),
        (ffi.Error.success(), "INTERNAL: the handler raised Error.success()"),
    ],
)
def test_an_exception_is_an_error(raised, text):
    def fail():
        raise raised

    assert call(ffi.bind().to(fail)) == text


def test_what_a_handler_may_return():
    assert call(ffi.bind().to(ffi.Error.success)) is None
    assert (
        call(ffi.bind().to(lambda: 3)) == "INTERNAL: the handler returned int, not None, an ffi.Error or an ffi.Future"
    )
    fails = iter([None, None, None, ffi.Error.invalid_argument("now"), None])
    handler = ffi.bind().to(lambda: next(fails))
    frame = Frame(RUNTIME, [], [], {})
    assert [frame.call(handler.ffi_address) for _ in range(5)] == [None] * 3 + ["INVALID_ARGUMENT: now", None]


@pytest.mark.parametrize("error", [None, ffi.Error(ffi.ErrorCode.ABORTED, "stopped")])
def test_a_future_completes_later(error):
    runtime, out, go = Runtime(), np.zeros(4, np.float32), threading.Event()

    @ffi.handler
    def later(y: ffi.Result[ffi.Buffer[ffi.F32]]) -> ffi.Future:
        promise = ffi.CountDownPromise(2)

        def compute():
            go.wait(20)
            y[...] += 1
            promise.count_down(1, error)
            promise.count_down(1)

        threading.Thread(target=compute).start()
        return ffi.Future(promise)

    for _ in range(3):
        frame = Frame(runtime, [], [out], {})
        assert frame.call(later.ffi_address) is None
        go.set()
        assert runtime.futures[frame.frame.future].wait(20)
        expected = None if error is None else (10, "stopped")
        assert runtime.outcomes[frame.frame.future] == expected


def test_threads_on_frames_of_their_own_and_on_one():
    handler = ffi.bind().arg(ffi.Buffer[ffi.S64]).ret(ffi.Buffer[ffi.S64]).to(lambda x, y: y.__setitem__(..., x + 1))
    wrong = []

    def work(n):
        frame = Frame(RUNTIME, [np.full(8, n)], [np.zeros(8, int)], {})
        for i in range(300):
            x, y = np.full(8, n * 1000 + i), np.zeros(8, int)
            frame.point(0, x)
            frame.point(0, y, is_result=True)
            if frame.call(handler.ffi_address) is not None or (y != x + 1).any():
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_handler_that_calls_its_own_call_site():
    depth = []

    def recurse(x):
        depth.append(len(depth))
        if len(depth) % 5:
            assert frame.call(handler.ffi_address) is None

    handler = ffi.bind().arg(ffi.AnyBuffer).to(recurse)
    frame = Frame(RUNTIME, [np.zeros(3)], [], {})
    assert [frame.call(handler.ffi_address) for _ in range(3)] == [None] * 3 and len(depth) == 15
