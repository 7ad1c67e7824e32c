"""Handlers that are registered for a device: on the recording driver of CUDA and HIP, which checks each argument."""

import gc
import threading

import numpy as np
import pytest

from ... import ffi
from ...backends.cuda.dialect import CUDA
from ...backends.rocm.dialect import HIP
from ...ffi.calls import CallError
from ...ffi.registry import register, unregister
from ...hlo.errors import UnsupportedError
from ..support.device_programs import compiled
from ..support.host_items import host_items
from ..support.recorded import Recorded

DIALECTS = [(CUDA, "CUDA"), (HIP, "ROCM")]

TEXT = """HloModule m
ENTRY e {
  p = f32[64]{0} parameter(0)
  n = f32[64]{0} negate(p)
  c = f32[64]{0} custom-call(n), custom_call_target="device.seen", api_version=API_VERSION_TYPED_FFI,
    backend_config={k = 2.0 : f32}
  ROOT r = f32[64]{0} negate(c)
}
"""


@pytest.fixture
def registered():
    """register(name, handler, platform), until the test has ended."""
    names = []

    def add(name, handler, platform):
        names.append((name, platform))
        return register(name, handler, platform)

    yield add
    for name, platform in names:
        unregister(name, platform)


@pytest.mark.parametrize("dialect, platform", DIALECTS, ids=["cuda", "rocm"])
def test_a_handler_gets_the_devices_addresses_and_the_runs_stream(dialect, platform, registered):
    made, seen = Recorded(dialect, host_items()), []
    library = made.library

    def run(x, y, k, stream, device):
        live = type(library.live.get(int(stream))).__name__
        blocks = [library._inside(a.ctypes.data, a.nbytes) for a in (x, y)]
        seen.append((live, blocks, device))
        made.executor(0)._copies.synchronize()
        library.live[int(stream)].submit(lambda: None).result()  # what was enqueued before is done then
        y[...] = x * k

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).attr(ffi.float32, "k")
    handler = bound.ctx(ffi.PlatformStream).ctx(ffi.DeviceOrdinal).to(run)
    registered("device.seen", handler, platform)
    executable, x = compiled(made, TEXT), np.arange(64, dtype=np.float32)
    for _ in range(2):
        assert executable.execute([x])[0].tolist() == (2 * x).tolist()
    assert seen == [("_Stream", [True, True], 0)] * 2


def test_scratch_is_the_devices_and_is_given_back_behind_the_work(registered):
    made, seen = Recorded(CUDA, host_items()), []

    def run(x, y, scratch):
        first, second = scratch.allocate(100), scratch.allocate(100, 512)
        seen.append([made.library._inside(a, 100) for a in (first, second)] + [second % 512])

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).ctx(ffi.ScratchAllocator)
    registered("device.scratch", bound.to(run), "CUDA")
    text = TEXT.replace("device.seen", "device.scratch").replace(",\n    backend_config={k = 2.0 : f32}", "")
    executable, x = compiled(made, text), np.zeros(64, np.float32)
    executable.execute([x])
    executor = made.executor(0)
    gc.collect()
    before = executor.statistics().bytes_in_use
    executable.execute([x])
    gc.collect()
    assert seen == [[True, True, 0]] * 2 and executor.statistics().bytes_in_use == before


def test_what_a_handler_reports_ends_the_run_and_the_next_one_works(registered):
    made, fails = Recorded(CUDA, host_items()), [True]

    def run(x, y, k):
        if fails.pop():
            return ffi.Error(ffi.ErrorCode.OUT_OF_RANGE, "not now")
        y[...] = 7

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).attr(ffi.float32, "k")
    registered("device.seen", bound.to(run), "CUDA")
    executable, x = compiled(made, TEXT), np.zeros(64, np.float32)
    launches = [name for name, _ in made.library.calls].count("launch")
    with pytest.raises(CallError, match=r"c: custom-call\(device.seen\): OUT_OF_RANGE: not now"):
        executable.execute([x])
    assert [name for name, _ in made.library.calls].count("launch") == launches + 1
    fails.append(False)
    made.library.calls.clear()
    assert executable.execute([x])[0].tolist() == [-7] * 64


@pytest.mark.parametrize("error", [False, True], ids=["available", "error"])
def test_the_run_waits_for_a_future_and_ends_with_its_error(error, registered):
    made = Recorded(CUDA, host_items())

    def run(x, y, k):
        promise = ffi.Promise()
        y[...] = 3

        def complete():
            if error:
                promise.set_error(ffi.Error(ffi.ErrorCode.ABORTED, "too late"))
            else:
                promise.set_available()

        threading.Timer(0.05, complete).start()
        return ffi.Future(promise)

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).attr(ffi.float32, "k")
    registered("device.seen", bound.to(run), "CUDA")
    executable, x = compiled(made, TEXT), np.zeros(64, np.float32)
    made.library.calls.clear()
    if not error:
        assert executable.execute([x])[0].tolist() == [-3] * 64
        return
    with pytest.raises(CallError, match=r"c: custom-call\(device.seen\): ABORTED: too late"):
        executable.execute([x])
    assert [name for name, _ in made.library.calls].count("launch") == 1


HOST_FAILS = """HloModule m
ENTRY e {
  p = f32[64]{0} parameter(0)
  c = f32[64]{0} custom-call(p), custom_call_target="device.host", api_version=API_VERSION_TYPED_FFI
  ROOT r = f32[64]{0} negate(c)
}
"""


def test_what_a_handler_of_the_host_reports_ends_the_run_before_the_next_kernel(registered):
    made = Recorded(CUDA, host_items())
    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32])
    registered("device.host", bound.to(lambda x, y: ffi.Error(ffi.ErrorCode.ABORTED, "no")), "Host")
    executable = compiled(made, HOST_FAILS)
    made.library.calls.clear()
    with pytest.raises(CallError, match="ABORTED: no"):
        executable.execute([np.zeros(64, np.float32)])
    assert "launch" not in [name for name, _ in made.library.calls]


LAID_OUT = """HloModule m
ENTRY e {
  p = f32[2,3]{1,0} parameter(0)
  q = f32[2,3]{1,0} parameter(1)
  c = (f32[2,3]{1,0}, f32[2,3]{1,0}) custom-call(p, q), custom_call_target="device.laid",
    api_version=API_VERSION_TYPED_FFI, operand_layout_constraints={f32[2,3]{0,1}, f32[2,3]{1,0}},
    output_to_operand_aliasing={{1}: (1, {})}
  a = f32[2,3]{1,0} get-tuple-element(c), index=0
  b = f32[2,3]{1,0} get-tuple-element(c), index=1
  ROOT t = (f32[2,3]{1,0}, f32[2,3]{1,0}, f32[2,3]{1,0}) tuple(a, b, q)
}
"""


@pytest.mark.parametrize("order", ["1,0", "0,1"], ids=["aliased as it lies", "aliased in another layout"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_operands_lie_as_the_handler_wants_them_and_aliased_ones_are_the_result(stack, order, registered):
    made, seen = Recorded(CUDA, host_items()), []

    def run(x, q, y, z, stream):
        made.library.live[int(stream)].submit(lambda: None).result()
        seen.append((q.ctypes.data == z.ctypes.data, x.reshape(-1).tolist()))
        y[...] = 1
        z += 1

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).arg(ffi.Buffer[ffi.F32])
    bound = bound.ret(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).ctx(ffi.PlatformStream)
    registered("device.laid", bound.to(run), "CUDA")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = LAID_OUT.replace("q = f32[2,3]{1,0}", f"q = f32[2,3]{{{order}}}")
    results = compiled(made, text, stack).execute([x, 10 * x])
    assert seen == [(True, x.T.reshape(-1).tolist())]
    assert [r.tolist() for r in results] == [np.ones((2, 3)).tolist(), (10 * x + 1).tolist(), (10 * x).tolist()]


def test_a_target_for_another_platform_is_refused_by_name(registered):
    made = Recorded(CUDA, host_items())
    registered("device.seen", ffi.bind().to(lambda: None), "rocm")
    with pytest.raises(UnsupportedError, match=r"custom-call\(device.seen\) of c on CUDA.*registered for ROCM only"):
        compiled(made, TEXT)
    with pytest.raises(UnsupportedError, match=r"custom-call\(device.none\).*platform='CUDA'"):
        compiled(made, TEXT.replace("device.seen", "device.none"))


def test_a_handler_of_the_host_works_on_copies_unless_the_device_has_one(registered):
    made = Recorded(CUDA, host_items())

    def run(x, y, k):
        assert not made.library._inside(x.ctypes.data, x.nbytes)
        y[...] = x * k

    bound = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32]).attr(ffi.float32, "k")
    registered("device.seen", bound.to(run), "Host")
    x = np.arange(64, dtype=np.float32)
    assert compiled(made, TEXT).execute([x])[0].tolist() == (2 * x).tolist()


def test_older_versions_are_refused_on_a_device(registered):
    made = Recorded(CUDA, host_items())
    register("device.old", 4096, "CUDA", version="API_VERSION_ORIGINAL")
    try:
        text = TEXT.replace("device.seen", "device.old").replace(", api_version=API_VERSION_TYPED_FFI", "")
        with pytest.raises(UnsupportedError, match="handlers on a device have API_VERSION_TYPED_FFI"):
            compiled(made, text.replace("backend_config={k = 2.0 : f32}", 'backend_config=""'))
    finally:
        unregister("device.old", "CUDA")
