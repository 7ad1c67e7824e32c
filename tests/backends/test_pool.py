"""backends/host: the pool of blocks that results and arenas come from."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...backends.host.addresses import address_of
from ...backends.host.memory import BlockPool, size_class
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


def test_blocks_that_come_back_while_the_pool_is_locked_are_not_lost():
    """A finalizer may run inside `take`: it must not wait for the lock nor change the state that `take` uses."""
    pool = BlockPool(idle_limit=10_000)
    block = pool.allocate(3000)
    address = address_of(block)
    with pool._lock:
        del block
        assert pool.idle_bytes == 0
    assert address_of(pool.allocate(3000)) == address
    gc.collect()
    assert pool.idle_bytes == size_class(3000)


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
    assert pool.idle_bytes == 0 and not pool._returned


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
