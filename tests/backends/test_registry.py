"""backends/: the registry, the interpreter as a back end, transfers and streams."""

import threading
import time

import numpy as np
import pytest

from ...backends.base import BackendError, CompileOptions, made_once
from ...backends.interpreter.platform import InterpreterPlatform
from ...backends.registry import platform, platforms, register_platform, unregister_platform
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import InputError, VerificationError
from ...hlo.shapes import array, tuple_shape

TEXT = """HloModule m
ENTRY e {
  p = f32[2,3] parameter(0)
  t = f32[2,3] negate(p)
  ROOT r = (f32[2,3], f32[2,3]) tuple(t, p)
}
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def interpreted(text):
    compiler = platform("interpreter").compiler()
    options = CompileOptions(cache=None)
    return compiler.compile(compiler.run_hlo_passes(parse_module(text), options), None, options)


def test_the_interpreter_runs_a_module_behind_the_same_interfaces():
    executable = interpreted(TEXT)
    t, p = executable.execute([X])
    np.testing.assert_array_equal(t, -X)
    np.testing.assert_array_equal(p, X)
    recycled, fresh = executable.execute([X + 1], outputs=[t, None])
    assert recycled is t and fresh is not p
    np.testing.assert_array_equal(t, -X - 1)


def test_the_interpreter_checks_what_it_is_given():
    executable = interpreted(TEXT)
    with pytest.raises(InputError):
        executable.execute([X, X])
    with pytest.raises(InputError, match="returns 2 outputs, given 1"):
        executable.execute([X], outputs=[None])
    with pytest.raises(InputError, match=r"output 0: expected float32\[2, 3\], given float64\[2, 3\]"):
        executable.execute([X], outputs=[np.zeros((2, 3)), None])
    with pytest.raises(VerificationError):
        interpreted(TEXT.replace("t = f32[2,3] negate", "t = f32[2,4] negate").replace("(f32[2,3],", "(f32[2,4],"))


def test_platforms_are_found_by_name_and_made_once():
    assert {"host", "interpreter"} <= set(platforms())
    assert platform("host") is platform("host") and platform("host").name == "host"
    with pytest.raises(BackendError, match=r"unknown platform 'hots'.*did you mean 'host'"):
        platform("hots")
    with pytest.raises(BackendError, match=r"unknown platform 'zzz'.*known: c, cuda, host, interpreter, opencl, rocm"):
        platform("zzz")


def test_threads_that_ask_at_once_get_one_device():
    """Of two executors, one would not know the other's blocks."""
    begun, made = threading.Barrier(4), []

    class Slow(InterpreterPlatform):
        @made_once
        def _executors(self, ordinal):
            made.append(ordinal)
            time.sleep(0.05)
            return object()

    slow, found = Slow(), []

    def ask():
        begun.wait(10)
        found.append(slow.executor(1))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] and len(found) == 4 and len(set(map(id, found))) == 1


def test_others_may_register():
    made = []

    def factory():
        made.append(InterpreterPlatform())
        return made[-1]

    register_platform("mine", factory)
    try:
        assert made == [] and platform("mine") is platform("mine") and len(made) == 1
        for name in ("mine", "host"):
            with pytest.raises(BackendError, match="registered already"):
                register_platform(name, factory)
    finally:
        unregister_platform("mine")
    with pytest.raises(BackendError, match="unknown platform 'mine'"):
        platform("mine")


def test_a_device_that_does_not_exist_is_refused():
    with pytest.raises(BackendError, match=r"platform host has no device 3 \(it has 1, from 0 on\)"):
        platform("host").executor(3)


@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_transfers_honour_the_layout(order):
    host = platform("host")
    executor, transfers = host.executor(), host.transfer_manager()
    shape = array(DType.F32, 2, 3).with_layout(order)
    memory = transfers.transfer_to_device(executor, X, shape)
    assert memory.size == transfers.byte_size_requirement(shape) == 24
    assert memory.owner.view(np.float32).tolist() == (X if order == (1, 0) else X.T).reshape(-1).tolist()
    np.testing.assert_array_equal(transfers.transfer_from_device(executor, memory, shape), X)
    assert transfers.byte_size_requirement(tuple_shape(shape, array(DType.U8, 5))) == 29
    other = executor.allocate(24)
    executor.synchronous_memcpy(other, memory, 24)
    np.testing.assert_array_equal(transfers.transfer_from_device(executor, other, shape), X)
    with pytest.raises(BackendError, match="cannot copy 25 bytes from a block of 24"):
        executor.synchronous_memcpy(executor.allocate(64), memory, 25)
    with pytest.raises(BackendError, match="needs 24 bytes, the block has 8"):
        transfers.transfer_from_device(executor, executor.allocate(8), shape)
    with pytest.raises(BackendError, match="-1 bytes"):
        executor.allocate(-1)


def test_a_stream_runs_work_in_order_and_reports_the_first_failure():
    stream, seen = platform("host").executor().create_stream(), []

    def fail():
        raise InputError("no good")

    for work in (lambda: seen.append(1), fail, lambda: seen.append(2)):
        stream.enqueue(work)
    with pytest.raises(InputError, match="no good"):
        stream.synchronize()
    stream.synchronize()
    assert seen == [1, 2]


@pytest.mark.parametrize("dims", [(), (1,), (0, 2)])
def test_a_transfer_keeps_the_rank(dims):
    host, value = platform("host"), np.full(dims, 7, np.float32)
    executor, transfers, shape = host.executor(), host.transfer_manager(), array(DType.F32, *dims)
    back = transfers.transfer_from_device(executor, transfers.transfer_to_device(executor, value, shape), shape)
    assert back.shape == dims and (back == value).all()
