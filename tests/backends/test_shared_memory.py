"""A device whose memory is the host's: nothing is copied, blocks are the pool's. Others have their own."""

import gc
from contextlib import contextmanager

import numpy as np
import pytest

from ... import ffi
from ...backends.base import CompileOptions
from ...backends.device import BackendError, MemorySpace
from ...backends.host.memory import POOL
from ...backends.opencl.library import SYSTEM_ACCESS, UNIFIED, devices
from ...backends.registry import platform
from ...evaluator.evaluator import evaluate
from ...ffi.registry import register, unregister
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...thunks.kinds import CopyThunk

pytestmark = pytest.mark.skipif(not devices()[0], reason=f"platform opencl: {devices()[1]}")

SUM = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { p = f32[64,33] parameter(0)
  z = f32[] constant(0)
  r = f32[64] reduce(p, z), dimensions={1}, to_apply=add
  w = f32[64,64] broadcast(r), dimensions={0}
  d = f32[64,64] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[64,64], f32[64]) tuple(d, r) }
"""

ALIASED = """HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { p = f32[33] parameter(0)
  q = f32[33] parameter(1)
  ROOT r = f32[33] add(p, q) }
"""

LOOP = """HloModule m
body { s = (s32[], f32[5]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[5] get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[5] add(x, x)
  ROOT t = (s32[], f32[5]) tuple(m, y) }
test { s = (s32[], f32[5]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  l = s32[] constant(7)
  ROOT c = pred[] compare(n, l), direction=LT }
even { x = f32[5] parameter(0)
  ROOT y = f32[5] negate(x) }
odd { x = f32[5] parameter(0)
  ROOT y = f32[5] exponential(x) }
ENTRY e { k = s32[] parameter(0)
  x = f32[5] parameter(1)
  i = (s32[], f32[5]) tuple(k, x)
  w = (s32[], f32[5]) while(i), condition=test, body=body
  y = f32[5] get-tuple-element(w), index=1
  ROOT r = f32[5] conditional(k, y, y), branch_computations={even, odd} }
"""

FOREIGN = """HloModule m
ENTRY e { p = f32[33]{0} parameter(0)
  n = f32[33]{0} negate(p)
  c = f32[33]{0} custom-call(n, p), custom_call_target="host.alone", api_version=API_VERSION_TYPED_FFI
  ROOT r = f32[33]{0} negate(c) }
"""


def _compiled(text, stack="legacy"):
    compiler, options, module = platform("opencl").compiler(), CompileOptions(cache=None), parse_module(text)
    verify(module)
    return compiler.compile(compiler.run_hlo_passes(module, options), emit_for(Flags.parse(stack)), options)


@pytest.fixture
def copies(monkeypatch):
    """The calls of the driver that copy or allocate."""
    functions, seen = platform("opencl").executor(0).device.functions, []
    for name in ("clEnqueueMemcpyINTEL", "clDeviceMemAllocINTEL", "clHostMemAllocINTEL"):
        true = functions[name]
        monkeypatch.setitem(functions, name, lambda *a, name=name, true=true: seen.append(name) or true(*a))
    return seen


@contextmanager
def _apart():
    """Let the device say that it does not share memory; a whole program, as an executable asks once."""
    device = platform("opencl").executor(0).device
    before, device.__dict__["shares_memory"] = device.shares_memory, False
    try:
        yield
    finally:
        device.__dict__["shares_memory"] = before


@pytest.mark.parametrize("answers, shares", [((1, 0xF), True), ((1, 0xE), False), ((0, 0xF), False), ((0, 0), False)])
def test_the_device_says_whether_it_shares_memory(monkeypatch, answers, shares):
    device = platform("opencl").executor(0).device
    known = dict(zip((UNIFIED, SYSTEM_ACCESS), answers, strict=True))
    monkeypatch.setattr(type(device), "numbers", lambda self, what, count=1, bytes_each=8: (known[what],))
    assert type(device).shares_memory.func(device) is shares


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_arrays_are_used_in_place(copies, stack):
    executable, rng = _compiled(SUM, stack), np.random.default_rng(0)
    out = executable.execute([np.zeros((64, 33), np.float32)])[1]
    copies.clear()
    for _ in range(3):
        x = rng.normal(size=(64, 33)).astype(np.float32)
        square, sums = executable.execute([x], [None, out])
        assert sums is out
        for found, wanted in zip((square, sums), evaluate(executable.program, [x]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert not copies


def test_arrays_at_a_wrong_boundary_and_in_another_order_are_right():
    executable = _compiled(SUM)
    space, x = np.zeros(64 * 33 * 4 + 1, np.uint8), np.random.default_rng(1).normal(size=(33, 64)).astype(np.float32)
    odd = space[1:].view(np.float32).reshape(64, 33)
    odd[...] = x.T
    for given in (odd, x.T):
        np.testing.assert_allclose(executable.execute([given])[1], x.sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("apart", [False, True])
def test_an_aliased_input_is_its_results_memory_only_if_it_is_donated(apart):
    x, y = np.arange(33, dtype=np.float32), np.ones(33, np.float32)
    with _apart() if apart else _nothing():
        executable = _compiled(ALIASED)
        (kept,) = executable.execute([x, y])
        assert (x == np.arange(33)).all() and (kept == x + 1).all()
        (result,) = executable.execute([x, y], donated=(0,))
    assert (result == np.arange(33) + 1).all() and (result is x) is not apart


@contextmanager
def _nothing():
    yield


@pytest.mark.parametrize("apart", [False, True])
def test_blocks_in_a_stream_are_used_in_place(copies, apart):
    with _apart() if apart else _nothing():
        executor, executable = platform("opencl").executor(0), _compiled(ALIASED)
        stream = executor.create_stream()
        x, y = np.arange(33, dtype=np.float32), np.ones(33, np.float32)
        a, b, odd = executor.allocate(132), executor.allocate(132), executor.allocate(136)
        for block, array in ((a, x), (b, y), (odd.slice(1, 132), y)):
            executor.synchronous_memcpy_from_host(block, array)
        for second, count in ((b, 1), (odd.slice(1, 132), 2)):
            copies.clear()
            (result,) = executable.execute_async_on_stream(stream, [a, second])
            stream.synchronize()
            assert copies.count("clEnqueueMemcpyINTEL") == count  # the aliased one, which was not donated
            found = np.empty(33, np.float32)
            executor.synchronous_memcpy_to_host(found, result)
            assert (found == x + 1).all()
        executor.synchronous_memcpy_to_host(found, a)
        assert (found == x).all()


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_control_flow_reads_in_place(copies, stack):
    executable = _compiled(LOOP, stack)
    for k in (-3, 0, 1, 9):
        given = [np.array(k, np.int32), np.linspace(-1, 1, 5, dtype=np.float32)]
        executable.execute(given)
        copies.clear()
        (found,) = executable.execute(given)
        np.testing.assert_allclose(found, evaluate(executable.program, given)[0], rtol=1e-6)
        own = sum(isinstance(thunk, CopyThunk) for thunk in executable.thunks.walk())  # before and behind the loop
        assert copies == ["clEnqueueMemcpyINTEL"] * own


@pytest.mark.parametrize("apart", [False, True])
def test_a_handler_of_the_host_gets_the_programs_own_memory(copies, apart):
    places = []

    def run(x, y, out):
        places.append(y.ctypes.data)
        np.add(x, 2 * y, out)

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).to(run)
    register("host.alone", bound)
    try:
        with _apart() if apart else _nothing():
            executable = _compiled(FOREIGN)
            buffer = np.zeros(33 + 16, np.float32)
            x = buffer[-(buffer.ctypes.data // 4) % 16 :][:33]
            x[:] = np.arange(33)
            copies.clear()
            (result,) = executable.execute([x])
    finally:
        unregister("host.alone")
    assert (result == -x).all()
    assert (places == [x.ctypes.data]) is not apart
    assert copies.count("clEnqueueMemcpyINTEL") == (6 if apart else 0)


@pytest.mark.parametrize("space", MemorySpace)
def test_blocks_are_the_pools_and_are_taken_again(copies, space):
    executor = platform("opencl").executor(0)
    gc.collect()
    before, in_use = executor.statistics(), POOL.stats().bytes_in_use
    first = executor.allocate(9 << 20, space)
    address = first.address
    assert POOL.stats().bytes_in_use >= in_use + (9 << 20)
    assert executor.statistics().bytes_in_use == before.bytes_in_use + (9 << 20)
    executor.deallocate(first)
    assert POOL.stats().bytes_in_use == in_use and executor.statistics().bytes_in_use == before.bytes_in_use
    again = executor.allocate(9 << 20, space)
    assert again.address == address and not copies
    del again
    gc.collect()
    assert POOL.stats().bytes_in_use == in_use and executor.statistics().bytes_in_use == before.bytes_in_use


def test_memory_that_the_pool_does_not_give_is_one_line():
    executor = platform("opencl").executor(0)
    before = executor.statistics().bytes_in_use
    POOL.set_limit(POOL.stats().bytes_in_use + 1000)
    try:
        with pytest.raises(BackendError, match="OpenCL cannot allocate 100000 bytes: MEM_OBJECT_ALLOCATION") as caught:
            executor.allocate(100000)
    finally:
        POOL.set_limit(None)
    assert "use less memory at once" in caught.value.remedy and "\n" not in str(caught.value)
    assert executor.statistics().bytes_in_use == before and executor.allocate(100000).size == 100000
