"""What every platform with a device must do, on each that has one here: opencl, cuda and rocm, with each stack.

On a GPU it is the conformance suite, too (test_opencl.py runs it on OpenCL, test_gpus.py on a driver that records).
"""

import gc
import math
import mmap
import threading
from pathlib import Path

import numpy as np
import pytest

from ...backends.conformance import BackendConformance
from ...backends.device import BackendError, KernelSpec
from ...backends.registry import platform
from ...codegen.cache import ObjectCache
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ..support.corpus import DEEP
from ..support.device_programs import PLATFORMS, SOFTMAX, compiled, negated, without

devices = pytest.mark.parametrize("name", [pytest.param(name, marks=without(name)) for name in PLATFORMS])
stacks = pytest.mark.parametrize("stack", ["legacy", "mlir"])


class _OnCard(BackendConformance):
    kernel = property(lambda self: negated(self.platform))


class _ByLegacy(_OnCard):
    emit_for = staticmethod(emit_for(Flags.parse("legacy")))


class _ByMlir(_OnCard):
    emit_for = staticmethod(emit_for(Flags.parse("mlir")))


@without("cuda")
class TestCudaByLegacy(_ByLegacy):
    platform = "cuda"


@without("cuda")
class TestCudaByMlir(_ByMlir):
    platform = "cuda"


@without("rocm")
class TestRocmByLegacy(_ByLegacy):
    platform = "rocm"


@without("rocm")
class TestRocmByMlir(_ByMlir):
    platform = "rocm"


def softmax(x):
    y = np.exp(x)
    return y / y.sum(1, keepdims=True)


def rows():
    return np.random.default_rng(0).normal(size=(64, 33)).astype(np.float32)


@devices
@stacks
def test_rows_are_shared_by_groups(name, stack):
    executable, x = compiled(platform(name), SOFTMAX, stack), rows()
    (group,) = [e.work.group for e in executable.entries.values()]
    # 64 rows of 33 elements; a vector of OpenCL's compiler is a row's, and a group has several
    assert (group.steps, group.across, group.down) == ((8, 16, 8) if name == "opencl" else (64, 32, 1))
    np.testing.assert_allclose(executable.execute([x])[0], softmax(x), rtol=1e-6)


@devices
def test_the_cache_gives_the_same_program(name, tmp_path):
    cache, x = ObjectCache(tmp_path), rows()
    first, second = (compiled(platform(name), SOFTMAX, cache=cache).execute([x])[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


@devices
def test_code_that_is_no_program_is_one_line(name):
    executor = platform(name).executor(0)
    for code in (b"", b"nothing"):
        with pytest.raises(BackendError, match=r"cannot (load|build) a program") as caught:
            executor.load_kernel(KernelSpec("k", code, 1))
        assert "\n" not in str(caught.value) and caught.value.remedy
    with pytest.raises(BackendError, match="cannot find the kernel other: "):
        executor.load_kernel(KernelSpec("other", negated(name).code, 2))


@devices
def test_runs_give_kernels_the_memory_of_each(name):
    """Two contexts by turns, of which one moves."""
    executable, rng = compiled(platform(name), SOFTMAX), np.random.default_rng(0)
    contexts = [executable.context(), executable.context()]
    for turn in (0, 1, 0, 0, 1):
        x, found = rng.normal(size=(64, 33)).astype(np.float32), np.empty((64, 33), np.float32)
        context = contexts[turn]
        context.stream.copy(context.bases[0], x.ctypes.data, x.nbytes)
        executable.steps(context.stream, context.bases)
        context.stream.copy(found.ctypes.data, context.bases[1], x.nbytes)
        context.stream.synchronize()
        np.testing.assert_allclose(found, softmax(x), rtol=1e-6)
    for context in contexts:
        context.free()


@devices
def test_a_block_at_an_address_that_was_free_is_given_again(name):
    """Large blocks come back at the address of the last ones."""
    text = "HloModule m\nENTRY e { p = f32[1048576] parameter(0)\n ROOT r = f32[1048576] negate(p) }"
    executable = compiled(platform(name), text)
    for number in range(4):
        context, x = executable.context(), np.full(1 << 20, number, np.float32)
        context.stream.copy(context.bases[0], x.ctypes.data, x.nbytes)
        executable.steps(context.stream, context.bases)
        y = np.empty_like(x)
        context.stream.copy(y.ctypes.data, context.bases[1], y.nbytes)
        context.stream.synchronize()
        context.free()
        np.testing.assert_array_equal(y, -x)


@devices
def test_a_run_past_the_memory_limit_leaks_nothing(name):
    executor, executable, x = platform(name).executor(0), compiled(platform(name), SOFTMAX), rows()
    gc.collect()
    before = executor.statistics().bytes_in_use
    executor.set_memory_limit(before + 100)
    try:
        with pytest.raises(BackendError, match="cannot allocate"):
            executable.context([x])
        assert executor.statistics().bytes_in_use == before
    finally:
        executor.set_memory_limit(None)
    assert executable.execute([x])[0].shape == (64, 33)


LARGE = "HloModule m\nENTRY e { c = s8[] constant(1) ROOT r = s8[70368744177664] broadcast(c), dimensions={} }\n"


@devices
def test_more_than_the_device_has_is_one_line_and_leaks_nothing(name):
    executor, size = platform(name).executor(0), 1 << 50
    before = executor.statistics().bytes_in_use
    with pytest.raises(BackendError, match=rf"cannot allocate {size} bytes: \w+ \(-?\d+\)") as caught:
        executor.allocate(size)
    assert "use less memory at once" in caught.value.remedy and "\n" not in str(caught.value)
    assert executor.statistics().bytes_in_use == before
    executable = compiled(platform(name), LARGE)
    with pytest.raises(BackendError) as context:
        executable.context()
    assert "use less memory at once" in context.value.remedy and executor.statistics().bytes_in_use == before


def _resident():
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@devices
def test_many_runs_of_eight_threads_leak_nothing(name):
    executor, wrong = platform(name).executor(0), list[object]()
    gc.collect()
    before = executor.statistics().bytes_in_use
    executable, x = compiled(platform(name), SOFTMAX), rows()
    (wanted,) = executable.execute([x])
    resident = _resident()

    def work(run):
        for _ in range(1250 if DEEP else 50):
            if run([x])[0].tobytes() != wanted.tobytes():
                wrong.append("other bits")

    threads = [threading.Thread(target=work, args=(executable.execute,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    assert len(executable._idle) <= 8 and _resident() - resident < 8 << 20
    del executable, threads, thread
    gc.collect()
    assert executor.statistics().bytes_in_use == before


def agrees(text: str, name: str, stack: str, inputs: list[np.ndarray], tolerance: float = 0.0) -> None:
    """The device's results are the evaluator's."""
    made = compiled(platform(name), text, stack)
    for found, wanted in zip(made.execute(inputs), evaluate(parse_module(text), inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


SORT = """HloModule m
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = s32[] parameter(2)
 d = s32[] parameter(3)
 ROOT e = pred[] compare(a, b), direction=LT, type=TOTALORDER }
ENTRY e { p = f32[3,LENGTH] parameter(0)
 q = s32[3,LENGTH] parameter(1)
 ROOT r = (f32[3,LENGTH], s32[3,LENGTH]) sort(p, q), dimensions={1}, is_stable=true, to_apply=less }"""


@devices
@stacks
@pytest.mark.parametrize("length", [0, 1, 16, 33, 65, 300, 1025])
def test_sorts_of_rows_are_stable(length, name, stack):
    """Rows of less than one run, of odd and even numbers of merges, by digits; equal keys keep their order."""
    rng = np.random.default_rng(length)
    keys = rng.integers(0, 9, (3, length)).astype(np.float32)
    if length > 2:
        keys[0, :3] = -0.0, math.nan, 0.0
    numbers = np.arange(3 * length, dtype=np.int32).reshape(3, length)
    agrees(SORT.replace("LENGTH", str(length)), name, stack, [keys, numbers])


CONVOLUTION = """HloModule m
ENTRY e { x = f32[1,13,9,20] parameter(0)
 k = f32[3,3,20,24] parameter(1)
 ROOT r = f32[1,13,9,24] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }"""


@devices
@stacks
def test_a_convolution_in_tiles(name, stack):
    """Tiles cut in both directions, and an infinite element of the kernel, which padding is not multiplied by."""
    rng = np.random.default_rng(1)
    image, kernel = rng.normal(size=(1, 13, 9, 20)), rng.normal(size=(3, 3, 20, 24))
    kernel[0, 0, 3, 5] = math.inf
    agrees(CONVOLUTION, name, stack, [image.astype(np.float32), kernel.astype(np.float32)], 1e-4)


FUSED = """HloModule m
ENTRY e { x = f32[4096] parameter(0)
 y = f32[4096] multiply(x, x)
 ROOT r = f32[4096] subtract(y, x) }"""


@devices
@stacks
def test_a_product_and_a_sum_are_fused_in_all_elements_or_in_none(name, stack):
    """Whatever the device's own compiler would do."""
    x = np.random.default_rng(2).normal(size=4096).astype(np.float32)
    found = compiled(platform(name), FUSED, stack).execute([x])[0]
    apart, fused = x * x - x, (x.astype(np.float64) * x - x).astype(np.float32)
    assert found.tobytes() in (apart.tobytes(), fused.tobytes())
