"""backends/host: the native entry from Python keeps no reference, memory or context; threads, forks, the end."""

import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import testbed

from ...backends.host import entry
from ...backends.host.contexts import IDLE_CONTEXTS
from ...backends.host.interruptible import SHORT
from ...backends.host.memory import POOL
from ...benchmarks.growth import heap_bytes
from ..support.entry_programs import ADD, NEEDS_ENTRY, PAIR, SCALE, A, B, child, made
from ..support.hand_built import F32, X, Y, add_program, compiled

pytestmark = NEEDS_ENTRY


@pytest.fixture(scope="module")
def add():
    return made(ADD)


@pytest.fixture(scope="module")
def pair():
    return made(PAIR)


# -- memory and references --------------------------------------------------------------------------------------------
def counts(*values):
    return [sys.getrefcount(v) for v in values]


def test_calls_keep_no_references_and_no_memory(add, pair):
    out, both, scale = add(A, B), pair(A), made(SCALE.format("f32", "maximum"))
    objects = (A, B, A.dtype, None, np.ndarray, tuple, out, both, add, pair)

    def calls(n):
        for _ in range(n):
            add(A, B)
            add(A, B, out=out)
            pair(A)
            pair(A, out=both)
            add.execute([A, B])
            pair.execute([A], [None, None])
            add(A, B[::-1], out=None)
            scale(1.5, 10.0)

    calls(100)
    gc.collect()
    blocks, before, heap = POOL.stats(), counts(*objects), heap_bytes()
    calls(10_000)
    gc.collect()
    after = counts(*objects)
    assert all(abs(a - b) < 50 for a, b in zip(after, before)), (before, after)
    assert POOL.stats().bytes_in_use == blocks.bytes_in_use
    assert POOL.stats().system_allocations == blocks.system_allocations
    assert heap_bytes() - heap < 200_000


def test_a_result_keeps_its_block_and_gives_it_back(add):
    in_use = POOL.stats().bytes_in_use
    z = add(A, B)
    view = z[2:]
    assert POOL.stats().bytes_in_use == in_use + 64
    address = z.ctypes.data
    del z
    others = [add(B, B) for _ in range(10)]
    assert all(o.ctypes.data != address for o in others)
    np.testing.assert_array_equal(view, (A + B)[2:])
    del view, others
    assert POOL.stats().bytes_in_use == in_use


def test_no_memory_is_the_named_error_and_leaves_nothing_behind(add):
    before, idle = POOL.stats(), len(add._contexts)
    kept = [add(A, B)]
    POOL.trim()
    POOL.set_limit(POOL.stats().bytes_in_use)
    try:
        with pytest.raises(testbed.TestbedError, match=r"out of memory: output 0, f32\[8\], takes 32 bytes"):
            add(A, B)
        assert add(B, B, out=kept[0]) is kept[0]
    finally:
        POOL.set_limit(before.bytes_limit)
    kept.clear()
    np.testing.assert_array_equal(add(A, B), A + B)
    assert len(add._contexts) == idle and POOL.stats().bytes_in_use == before.bytes_in_use


# -- threads ----------------------------------------------------------------------------------------------------------
LARGE = """HloModule m
ENTRY e {
  x = f32[64,256] parameter(0)
  t = f32[64,256] tanh(x)
  c = f32[64,256] cosine(t)
  ROOT r = f32[64,256] add(t, c)
}"""


@pytest.mark.parametrize("text", [ADD, LARGE], ids=["short", "without the lock"])
def test_threads_call_at_once_and_nothing_grows(text):
    program = made(text)
    assert (
        bool(program._contexts.program.words[entry.W["unlocked"]])
        == (program.image.seconds >= SHORT)
        == (text is LARGE)
    )
    rounds = 10_000 if text is ADD else 300
    arrays = [[np.full(leaf.dims, n / 8, leaf.dtype) for leaf in program.inputs] for n in range(8)]
    alone = [program(*a) for a in arrays]
    start = threading.Barrier(8)

    def one(n):
        out = np.copy(alone[n])
        start.wait()
        good = True
        for i in range(rounds):
            z = program(*arrays[n])
            good = good and (i % 100 or bool((z == alone[n]).all()))
        return good and out is not None

    def once():
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(one, range(8)))
        gc.collect()

    once()
    blocks, heap = POOL.stats(), heap_bytes()
    once()
    assert POOL.stats().bytes_in_use <= blocks.bytes_in_use + 8 * (64 << 10)
    assert heap_bytes() - heap < 2_000_000
    assert len(program._contexts) <= IDLE_CONTEXTS


def test_more_threads_than_contexts_while_the_lock_is_free():
    program = made(LARGE)
    x = [np.full((64, 256), n, np.float32) for n in range(24)]
    expected = [program(a) for a in x]
    with ThreadPoolExecutor(24) as pool:
        for _ in range(20):
            for z, e in zip(pool.map(program, x), expected):
                np.testing.assert_array_equal(z, e)


def test_a_finalizer_may_call_the_program_during_a_call(pair):
    """Garbage collection runs while results are made, and with it any code."""
    found = []

    class Caller:
        def __init__(self):
            self.itself = self

        def __del__(self):
            found.append(pair(B)[0])

    old = gc.get_threshold()
    gc.set_threshold(20)
    try:
        for _ in range(2000):
            Caller()
            negated, doubled = pair(A)
            assert negated[1] == -1 and doubled[1] == 2
    finally:
        gc.set_threshold(*old)
    gc.collect()
    assert len(found) == 2000 and all((z == -B).all() for z in found)


def test_results_that_are_alive_at_the_end_of_the_process_do_no_harm():
    done = child("sys.modules['kept_by_somebody'] = kept; kept.append(f); print(kept[50][3])")
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_calls_and_allocates():
    code = """
stop = threading.Event()
def work():
    while not stop.is_set():
        f(x)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
good = 0
for _ in range(20):
    pid = os.fork()
    if not pid:
        ok = all((f(x) == 2 * x).all() for _ in range(50)) and (f(x[::-1]) == 2 * x[::-1]).all()
        os._exit(0 if ok else 1)
    good += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
for t in threads: t.join()
print(good)
"""
    done = child("import warnings; warnings.simplefilter('ignore')\n" + code)
    assert done.stdout == "20\n", done.stderr


def test_results_outlive_the_executable_and_its_record():
    program = compiled(add_program(F32))
    results = [program(np.full((3, 4), n, np.float32), Y) for n in range(20)]
    words = program._contexts.program.words
    del program
    gc.collect()
    compiled(add_program(F32))(X, X)
    assert words.size and all((z == n + Y).all() for n, z in enumerate(results))
