"""The pool runs each chunk once, whatever the number of threads, from any thread, nested, after a fork, and stops."""

import ctypes
import os
import threading
import time
from pathlib import Path

import pytest

from ...codegen.options import Target
from ...codegen.pool import pool
from ...codegen.pool_ir import FUTEX, pool_ir
from ...codegen.threads import processors, quotas, set_threads, threads
from ...hlo.errors import InputError

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
CALL = ctypes.CFUNCTYPE(None, BODY, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p)
CHUNKS = [(0, 3), (3, 6), (6, 9), (9, 10)]


@pytest.fixture(autouse=True)
def number_of_threads():
    before = threads()
    yield
    set_threads(before)


def parallel_for(body, extent=10, chunk=3, scratch=0, stop=None):
    CALL(pool().parallel_for)(BODY(body), None, extent, chunk, scratch, stop)


def chunks_and_threads(wait=0.0, **named):
    seen = []

    def body(context, begin, end, scratch):
        seen.append((begin, end, threading.get_ident(), scratch))
        time.sleep(wait)  # lets the other threads have Python

    parallel_for(body, **named)
    return seen


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_chunk_runs_once_and_boundaries_do_not_depend_on_the_number_of_threads(count):
    set_threads(count)
    for _ in range(20):
        assert sorted(s[:2] for s in chunks_and_threads()) == CHUNKS


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_regions_hold_each_chunk_once(count):
    set_threads(count)
    for chunks in (2, 3, 4, 5, 9, 64, 101):
        for wait in (0.0, 0.0005):
            seen = chunks_and_threads(wait, extent=chunks, chunk=1)
            assert sorted(s[:2] for s in seen) == [(n, n + 1) for n in range(chunks)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_thread_takes_neighbours_one_from_the_front_and_one_from_the_end(count):
    """Chunks in turns made a product on two threads 6% slower: each fetches ahead what the other writes."""
    set_threads(count)
    shared = False
    for _ in range(20):
        seen = chunks_and_threads(0.001, extent=16, chunk=1)
        own = [begin for begin, _, thread, _ in seen if thread == threading.get_ident()]
        others = [begin for begin, _, thread, _ in seen if thread != threading.get_ident()]
        assert own == list(range(len(own))) and others == list(range(15, len(own) - 1, -1))
        shared |= bool(others)
    assert shared == (count == 2)


def test_several_threads_take_part_and_never_more_than_allowed():
    def most(wanted):
        counts = (len({s[2] for s in chunks_and_threads(0.002, extent=30, chunk=1)}) for _ in range(50))
        return next((n for n in counts if n >= wanted), 0)

    set_threads(2)
    assert most(2) == 2
    set_threads(4)
    assert most(3) in (3, 4)
    set_threads(2)
    assert most(2) == 2  # threads that exist stay away
    set_threads(1)
    assert most(1) == 1


def test_threads_other_than_the_callers_have_scratch_memory_of_their_own():
    set_threads(3)
    for size in (100, 5000, 64):
        seen = chunks_and_threads(0.002, extent=30, chunk=1, scratch=size)
        own = {(thread, scratch) for _, _, thread, scratch in seen}
        assert len(own) == len({thread for thread, _ in own})
        given = [scratch for _, scratch in own if scratch is not None]
        assert len(given) == len(set(given)) == len(own) - any(t == threading.get_ident() for t, _ in own)
        assert all(scratch % 64 == 0 for scratch in given)


def test_a_call_inside_a_body_runs_its_chunks_on_that_thread():
    set_threads(3)
    inner = []

    def body(context, begin, end, scratch):
        thread = threading.get_ident()
        seen = []
        parallel_for(lambda c, b, e, s: seen.append((b, e, threading.get_ident() == thread)))
        inner.append(seen)

    parallel_for(body)
    assert inner == [[(*chunk, True) for chunk in CHUNKS]] * len(CHUNKS)


def test_many_threads_call_at_once():
    set_threads(2)
    wrong = []

    def call():
        for _ in range(200):
            seen = []
            parallel_for(lambda c, b, e, s, seen=seen: seen.append((b, e)))
            if sorted(seen) != CHUNKS:
                wrong.append(seen)

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_the_number_may_change_while_jobs_run():
    set_threads(2)
    going = True

    def change():
        while going:
            for count in (1, 4, 2, 3):
                set_threads(count)
                time.sleep(0.0005)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        assert all(sorted(s[:2] for s in chunks_and_threads()) == CHUNKS for _ in range(300))
    finally:
        going = False
        changer.join()


def test_no_further_chunk_begins_once_the_word_is_set():
    set_threads(2)
    stop, seen = ctypes.c_int64(0), []

    def body(context, begin, end, scratch):
        seen.append(begin)
        stop.value = 1

    parallel_for(body, extent=1000, chunk=1, stop=ctypes.addressof(stop))
    assert 1 <= len(seen) <= 2
    parallel_for(body, extent=1000, chunk=1, stop=ctypes.addressof(stop))
    assert len(seen) <= 2
    stop.value = 0
    assert sorted(s[:2] for s in chunks_and_threads(stop=ctypes.addressof(stop))) == CHUNKS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_makes_its_own_threads():
    set_threads(2)
    assert sorted(s[:2] for s in chunks_and_threads(0.002)) == CHUNKS
    child = os.fork()
    if child == 0:  # its exit status is the number of threads that took part, or 99
        seen = chunks_and_threads(0.01)
        os._exit(len({s[2] for s in seen}) if sorted(s[:2] for s in seen) == CHUNKS else 99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc")
def test_workers_sleep_when_there_is_no_job():
    set_threads(3)
    chunks_and_threads(0.002)

    def states():
        others = (p for p in Path("/proc/self/task").iterdir() if p.name != str(threading.get_native_id()))
        return [(p / "stat").read_text().rpartition(")")[2].split()[0] for p in others]

    for _ in range(1000):
        time.sleep(0.01)
        if set(states()) <= {"S"}:
            break
    assert len(states()) >= 2 and set(states()) <= {"S"}


def test_one_thread_or_more():
    with pytest.raises(InputError, match="0 threads"):
        set_threads(0)
    set_threads(None)
    assert threads() == processors() <= len(os.sched_getaffinity(0))


def test_quotas_of_control_groups(tmp_path: Path):
    own, groups = tmp_path / "own", tmp_path / "groups"
    own.write_text("0::/outer/inner\n")
    (groups / "outer/inner").mkdir(parents=True)
    (groups / "outer/cpu.max").write_text("350000 100000\n")
    (groups / "outer/inner/cpu.max").write_text("max 100000\n")
    assert quotas(groups, own) == [4]
    own.write_text("5:cpuset:/\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n")
    (groups / "cpu/job").mkdir(parents=True)
    (groups / "cpu/job/cpu.cfs_quota_us").write_text("50000\n")
    (groups / "cpu/job/cpu.cfs_period_us").write_text("100000\n")
    (groups / "cpu/cpu.cfs_quota_us").write_text("-1\n")
    (groups / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert quotas(groups, own) == [1]
    assert quotas(groups, tmp_path / "none") == []


@pytest.mark.parametrize(
    "triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu"]
)
def test_code_for_each_architecture(triple):
    import llvmlite.binding as llvm

    from ...codegen.llvm import start

    start()
    target = Target(triple, "", "", 128)
    assert str(FUTEX[target.architecture]) in pool_ir(target)
    module = llvm.parse_assembly(pool_ir(target))
    machine = llvm.Target.from_triple(triple).create_target_machine()
    assert "testbed_parallel_for" in machine.emit_assembly(module)
