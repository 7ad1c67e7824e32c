"""backends/host: the pool of blocks that results and arenas come from."""

import ctypes
import gc
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import testbed

from ...backends.host.memory import POOL, BlockPool, MemoryStats, native_functions, size_class
from ...benchmarks.growth import heap_bytes
from ...hlo.dtypes import DType
from ...hlo.shapes import array
from ..support.hand_built import add_program, compiled


def test_size_classes_waste_little():
    for size in [0, 1, 63, 64, 65, 1000, 4097, 1 << 20, (1 << 20) + 1, 123_456_789]:
        capacity = size_class(size)
        assert capacity >= max(size, 1) and capacity % 64 == 0 and capacity <= max(64, size + size // 8 + 64)


def test_the_pool_keeps_idle_blocks_up_to_its_limit():
    pool = BlockPool(idle_limit=10_000)
    blocks = [pool.allocate(3000) for _ in range(5)]
    view = blocks[0][100:200]
    assert all(b.ctypes.data % 64 == 0 for b in blocks) and pool.idle_bytes == 0
    del blocks
    assert 0 < pool.idle_bytes <= 10_000
    view[:] = 7
    assert all(not np.shares_memory(pool.allocate(3000), view) for _ in range(5))
    pool.trim()
    assert pool.idle_bytes == 0


def test_threads_take_distinct_blocks_and_give_all_back():
    pool = BlockPool()

    def one(n):
        for i in range(300):
            blocks = [pool.allocate(64 * (1 + (i + k) % 5)) for k in range(3)]
            for k, block in enumerate(blocks):
                block[:] = 3 * n + k
            if any((block != 3 * n + k).any() for k, block in enumerate(blocks)):
                return False
        return True

    with ThreadPoolExecutor(8) as workers:
        assert all(workers.map(one, range(8)))
    pool.trim()
    assert pool.idle_bytes == 0


def test_blocks_of_the_size_that_was_not_used_for_the_longest_time_go_first():
    pool = BlockPool(idle_limit=30_000)
    sizes = [size_class(n) for n in (4000, 8000, 12_000)]
    blocks = [pool.allocate(n) for n in sizes]
    while blocks:
        blocks.pop(0)
    pool.take(sizes[0])  # used again: now the newest
    pool.take(16_384)
    assert pool.idle_bytes == sizes[0] + 16_384
    made = pool.stats().system_allocations
    pool.take(sizes[0])
    assert pool.stats().system_allocations == made
    pool.take(sizes[1])
    assert pool.stats().system_allocations == made + 1


def test_a_block_larger_than_the_limit_of_idle_ones_drives_no_other_out():
    pool = BlockPool(idle_limit=10_000)
    pool.take(4096)
    pool.take(1 << 20)
    assert pool.idle_bytes == 4096


def test_statistics_count_blocks_and_bytes():
    pool = BlockPool()
    assert pool.stats() == MemoryStats(0, 0, 0, 0, 0, None)
    first, second = pool.allocate(64), pool.allocate(100)
    assert pool.stats() == MemoryStats(192, 192, 0, 2, 2, None)
    del first
    assert pool.stats() == MemoryStats(128, 192, 64, 2, 2, None)
    third = pool.allocate(1)
    assert pool.stats() == MemoryStats(192, 192, 0, 3, 2, None) and second.size + third.size == 101


def test_idle_blocks_are_freed_before_the_limit_refuses():
    pool = BlockPool(limit=10_240)
    blocks = [pool.allocate(1024) for _ in range(8)]
    del blocks
    assert pool.idle_bytes == 8192
    held = pool.allocate(8192)
    assert pool.stats().bytes_in_use == 8192 and pool.idle_bytes <= 2048
    with pytest.raises(MemoryError, match="no block of 4,096 bytes"):
        pool.allocate(4096)
    assert pool.idle_bytes <= 2048 and held.size == 8192
    pool.set_limit(None)
    assert pool.allocate(4096).size == 4096
    pool.set_limit(8192)
    assert pool.idle_bytes == 0 and pool.stats().bytes_limit == 8192
    pool.set_limit(0)
    with pytest.raises(MemoryError):
        pool.allocate(1)


def test_what_the_system_does_not_have_is_refused_and_idle_blocks_go():
    pool = BlockPool()
    pool.allocate(1 << 20)
    assert pool.idle_bytes == 1 << 20
    for size in (1 << 46, 1 << 62, 1 << 63):
        with pytest.raises(MemoryError):
            pool.take(size)
    assert pool.stats().bytes_in_use == 0 and pool.idle_bytes == 0


def test_blocks_of_a_dead_pool_are_freed():
    pool = BlockPool()
    blocks = [pool.allocate(1 << 20) for _ in range(20)]
    pool.allocate(1 << 20)
    del pool
    gc.collect()
    before = heap_bytes()
    del blocks
    assert before - heap_bytes() >= 19 << 20


def test_native_threads_may_share_a_pool():
    """The native lock alone: functions called through CDLL release the interpreter's lock."""
    pool = BlockPool(idle_limit=64 << 10)
    shelves = [pool.shelf(size_class(n)) for n in (64, 1000, 30_000)]
    functions = native_functions()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(functions["testbed_take"])
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(functions["testbed_give"])

    def one(n):
        for i in range(3000):
            shelf = shelves[(i + n) % 3]
            held = [take(shelf) for _ in range(3)]
            if len(set(held)) < 3:
                return False
            for block in held:
                give(shelf, block)
        return True

    with ThreadPoolExecutor(6) as workers:
        assert all(workers.map(one, range(6)))
    stats = pool.stats()
    assert stats.bytes_in_use == 0 and stats.allocations == 6 * 3000 * 3 and 0 < stats.cached_bytes <= 64 << 10


def test_the_public_functions_are_about_this_process():
    before = testbed.memory_stats()
    held = POOL.allocate(5000)
    assert testbed.memory_stats().allocations == before.allocations + 1
    assert testbed.memory_stats().bytes_in_use == before.bytes_in_use + size_class(5000)
    testbed.trim_memory()
    assert testbed.memory_stats().cached_bytes == 0 and held.size == 5000
    for wrong in (-1, 1 << 64):
        with pytest.raises(testbed.InputError, match="the limit of memory is"):
            testbed.set_memory_limit(wrong)


def test_a_limit_names_the_array_that_does_not_fit():
    shape = array(DType.F32, 1 << 18)
    executable, x = compiled(add_program(shape)), np.ones(1 << 18, np.float32)
    testbed.trim_memory()
    testbed.set_memory_limit(testbed.memory_stats().bytes_in_use + (1 << 19))
    try:
        with pytest.raises(testbed.OutOfMemoryError, match=r"output 0, f32\[262144\], takes 1,048,576 bytes"):
            executable(x, x)
    finally:
        testbed.set_memory_limit(None)
    assert executable(x, x)[0][7] == 2


def test_resident_memory_stays_level_over_many_runs():
    shape = array(DType.F32, 1 << 20)
    executable = compiled(add_program(shape))
    x = np.ones(1 << 20, np.float32)
    for _ in range(5):
        executable.execute([x, x])
    before = _resident()
    for _ in range(100):
        executable.execute([x, x])
    assert _resident() - before < 20 << 20


def _resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
