"""The process's thread pool: native threads that run chunks of kernels. It is compiled once (pool_ir.py) and kept.

Native code calls

    void testbed_parallel_for(ptr body, ptr context, i64 extent, i64 chunk, i64 scratch_bytes, ptr stop)

which runs the steps [0, extent) as chunks [k·chunk, min((k+1)·chunk, extent)), in any order and on any of the threads,
the caller's included, and returns when all are done. The chunks depend on the arguments only, never on the number of
threads. For each chunk it calls

    void body(ptr context, i64 begin, i64 end, ptr scratch)

scratch: null on the caller's thread, which uses the memory that the Plan gave it, and where scratch_bytes is 0; on any
other thread `scratch_bytes` bytes of its own, 64-byte aligned. Bodies run with the caller's mode of floats. stop: the
address of a 64-bit word, or null: while the word is not 0, no further chunk begins, and the results are undefined.

Any thread may call it, also inside a body. There is one job at a time: a second caller runs its chunks alone, in order.
A caller never waits for a thread that sleeps. Workers are made by the first job that can use them, again after a fork.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

from ..hlo.records import dataclass
from .cache import ObjectCache
from .load import LoadedCode, load
from .pool_ir import pool_ir
from .runtime import runtime_object, runtime_target
from .threads import listen

PARALLEL_FOR = "testbed_parallel_for"


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """parallel_for: the address of the function that the file's text describes."""

    parallel_for: int
    code: LoadedCode


_LOCK = threading.Lock()
_pool: Pool | None = None


def pool(cache: ObjectCache | None = None) -> Pool:
    """The process's pool. It is never unloaded, because its threads never end."""
    global _pool
    with _LOCK:
        if _pool is None:
            _pool = _made(cache)
        return _pool


def _made(cache: ObjectCache | None) -> Pool:
    text = pool_ir(runtime_target())
    code = load([runtime_object(text, lambda: text, cache)])
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    set_count = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("testbed_pool_threads"))
    listen(set_count if sys.platform == "linux" else lambda count: set_count(1))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(code.address("testbed_pool_reset")))
    return Pool(code.address(PARALLEL_FOR), code)
