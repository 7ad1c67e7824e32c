"""The platform opencl: the conformance suite with each stack, errors in one line, memory, caches."""

import functools
import gc
import math
import mmap
import struct
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ...backends.accelerator import build
from ...backends.accelerator import compiler as compiler_of_devices
from ...backends.accelerator.build import build_device_code
from ...backends.accelerator.targets import SPIRV
from ...backends.base import CompileOptions
from ...backends.conformance import BackendConformance
from ...backends.device import BackendError, KernelSpec, LaunchDimensions
from ...backends.opencl import executor as executor_of_opencl
from ...backends.opencl.library import devices
from ...backends.opencl.spirv import HEADER_WORDS
from ...backends.registry import platform
from ...codegen.cache import ObjectCache
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...migration.stacks import STACKS
from ..support.corpus import DEEP

pytestmark = pytest.mark.skipif(not devices()[0], reason=f"platform opencl: {devices()[1]}")

NEGATED = """
define spir_kernel void @negated(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  br label %next
next:
  %n = phi i64 [ %i, %0 ], [ %m, %next ]
  %a = getelementptr float, ptr addrspace(1) %x, i64 %n
  %v = load float, ptr addrspace(1) %a, align 4
  %w = fneg float %v
  %b = getelementptr float, ptr addrspace(1) %y, i64 %n
  store float %w, ptr addrspace(1) %b, align 4
  %m = add i64 %n, 1
  %more = icmp ult i64 %m, 8
  br i1 %more, label %next, label %end
end:
  ret void
}
declare spir_func i64 @_Z13get_global_idj(i32)
"""


@functools.cache
def _negated() -> KernelSpec:
    return KernelSpec("negated", build_device_code(NEGATED, SPIRV, None), 2)


class TestLegacy(BackendConformance):
    platform = "opencl"
    emit_for = staticmethod(emit_for(Flags.parse("legacy")))
    kernel = property(lambda self: _negated())


class TestMlir(BackendConformance):
    platform = "opencl"
    emit_for = staticmethod(emit_for(Flags.parse("mlir")))
    kernel = property(lambda self: _negated())


SOFTMAX = """HloModule softmax
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[64,33] parameter(0)
  x = f32[64,33] exponential(p)
  zero = f32[] constant(0)
  sum = f32[64] reduce(x, zero), dimensions={1}, to_apply=add
  spread = f32[64,33] broadcast(sum), dimensions={0}
  ROOT y = f32[64,33] divide(x, spread)
}
"""


def _compiled(stack="legacy", cache=None):
    device, module = platform("opencl"), parse_module(SOFTMAX)
    compiler, options = device.compiler(), CompileOptions(cache=cache)
    verify(module)
    chosen = emit_for(Flags.parse(stack))
    return compiler.compile(compiler.run_hlo_passes(module, options), chosen, options)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_row_kernel_has_a_group_for_several_rows(stack):
    executable, x = _compiled(stack), np.random.default_rng(0).normal(size=(64, 33)).astype(np.float32)
    (group,) = [e.work.group for e in executable.entries.values()]
    assert (group.steps, group.across, group.down) == (8, 16, 8)
    y = np.exp(x)
    np.testing.assert_allclose(executable.execute([x])[0], y / y.sum(1, keepdims=True), rtol=1e-6)


SUBNORMAL = "HloModule m\nENTRY e { x = f64[4] parameter(0) ROOT y = f64[4] cbrt(x) }\n"


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_subnormal_that_counts_as_zero_has_a_cube_root(stack):
    """The device multiplies it as zero, and compares it as what it is."""
    compiler, options = platform("opencl").compiler(), CompileOptions(cache=None)
    plan = compiler.run_hlo_passes(parse_module(SUBNORMAL), options)
    executable = compiler.compile(plan, emit_for(Flags.parse(stack)), options)
    (found,) = executable.execute([np.array([5e-324, -5e-324, 0.0, 8.0])])
    assert (np.abs(found[:3]) < 1e-100).all() and found[3] == 2
    assert np.signbit(found).tolist() == [False, True, False, False]


def test_the_second_compilation_uses_the_binary(tmp_path, monkeypatch):
    cache, x = ObjectCache(tmp_path), np.ones((64, 33), np.float32)
    (first,) = _compiled(cache=cache).execute([x])

    def never(*arguments):
        raise AssertionError("emitted again")

    monkeypatch.setattr(build, "emitted_apart", never)
    monkeypatch.setattr(compiler_of_devices, "build_device_code", never)
    (second,) = _compiled(cache=cache).execute([x])
    assert first.tobytes() == second.tobytes()


def test_a_damaged_binary_is_built_again(tmp_path, monkeypatch):
    cache, x = ObjectCache(tmp_path), np.ones((64, 33), np.float32)
    (first,) = _compiled(cache=cache).execute([x])
    monkeypatch.setattr(cache, "read", lambda key: b"no program")
    monkeypatch.setattr(compiler_of_devices, "build_device_code", lambda text, target, _: build_again(text, target))
    assert _compiled(cache=cache).execute([x])[0].tobytes() == first.tobytes()


def build_again(text, target):
    return build.emitted_apart(text, target)


@pytest.mark.parametrize("code", [b"", b"nothing", (0x07230203).to_bytes(4, "little") + bytes(40)])
def test_code_that_is_no_program_is_one_line(code):
    executor = platform("opencl").executor(0)
    with pytest.raises(BackendError, match=r"OpenCL cannot (load|build) a program") as caught:
        executor.load_kernel(KernelSpec("k", code, 1))
    assert "\n" not in str(caught.value)


def test_a_kernel_that_is_not_there_is_one_line():
    spec = _negated()
    executor = platform("opencl").executor(0)
    with pytest.raises(BackendError, match="find the kernel other: INVALID_KERNEL_NAME"):
        executor.load_kernel(KernelSpec("other", spec.code, 2))
    with pytest.raises(BackendError, match="takes 2 blocks of memory, not 3"):
        executor.load_kernel(KernelSpec("negated", spec.code, 3))


def test_a_launch_that_the_driver_refuses_is_named(monkeypatch):
    """In a row of launches from native code, and in a stream that is watched, which launches from Python."""
    executable = _compiled()
    context = executable.context([np.ones((64, 33), np.float32)])
    seen = []
    monkeypatch.setattr(executor_of_opencl, "are_near", lambda rows, processors: seen.append(rows))
    assert _compiled() and len(seen) == 1
    (launch,) = seen[0]
    wrong = replace(launch, dimensions=LaunchDimensions((1, 1, 1), (7, 1, 1)))
    enqueue = platform("opencl").executor(0).launches([launch, wrong, launch])
    for watch in (False, True):
        if watch:
            context.stream.watch()
        with pytest.raises(BackendError, match=rf"run {wrong.kernel.name}: INVALID_WORK_GROUP_SIZE \(-54\)"):
            enqueue(context.stream, context.bases)
        context.stream.watched()
        context.stream.synchronize()
    context.free()


def test_runs_give_kernels_the_memory_of_each():
    """Two contexts by turns, of which one moves."""
    executable, rng = _compiled(), np.random.default_rng(0)
    contexts = [executable.context(), executable.context()]
    for turn in (0, 1, 0, 0, 1):
        x, found = rng.normal(size=(64, 33)).astype(np.float32), np.empty((64, 33), np.float32)
        context = contexts[turn]
        context.stream.copy(context.bases[0], x.ctypes.data, x.nbytes)
        executable.steps(context.stream, context.bases)
        context.stream.copy(found.ctypes.data, context.bases[1], x.nbytes)
        context.stream.synchronize()
        y = np.exp(x)
        np.testing.assert_allclose(found, y / y.sum(1, keepdims=True), rtol=1e-6)
    for context in contexts:
        context.free()


def test_a_block_at_an_address_that_was_free_is_given_again():
    """Large blocks come back at the address of the last ones."""
    device, module = (
        platform("opencl"),
        parse_module("HloModule m\nENTRY e { p = f32[1048576] parameter(0)\n ROOT r = f32[1048576] negate(p) }"),
    )
    verify(module)
    compiler, options = device.compiler(), CompileOptions()
    chosen = emit_for(Flags.parse("legacy"))
    executable = compiler.compile(compiler.run_hlo_passes(module, options), chosen, options)
    for number in range(4):
        context, x = executable.context(), np.full(1 << 20, number, np.float32)
        context.stream.copy(context.bases[0], x.ctypes.data, x.nbytes)
        executable.steps(context.stream, context.bases)
        y = np.empty_like(x)
        context.stream.copy(y.ctypes.data, context.bases[1], y.nbytes)
        context.stream.synchronize()
        context.free()
        np.testing.assert_array_equal(y, -x)


def test_a_run_past_the_memory_limit_leaks_nothing():
    executor, executable = platform("opencl").executor(0), _compiled()
    x = np.ones((64, 33), np.float32)
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


def test_more_than_the_device_has_is_one_line_and_leaks_nothing():
    executor = platform("opencl").executor(0)
    before = executor.statistics().bytes_in_use
    with pytest.raises(BackendError, match=r"OpenCL cannot allocate 1125899906842624 bytes: \w+ \(-\d+\)") as caught:
        executor.allocate(1 << 50)
    assert "use less memory at once" in caught.value.remedy and "\n" not in str(caught.value)
    assert executor.statistics().bytes_in_use == before
    text = "HloModule m\nENTRY e { c = s8[] constant(1) ROOT r = s8[70368744177664] broadcast(c), dimensions={} }\n"
    compiler, options = platform("opencl").compiler(), CompileOptions(cache=None)
    executable = compiler.compile(
        compiler.run_hlo_passes(parse_module(text), options), emit_for(Flags.parse("legacy")), options
    )
    with pytest.raises(BackendError) as context:
        executable.context()
    assert "use less memory at once" in str(context.value) and executor.statistics().bytes_in_use == before


def _with_capability(code, number):
    """SPIR-V whose first capability is another one."""
    words = [*struct.unpack(f"<{len(code) // 4}I", code)]
    at = HEADER_WORDS
    while words[at] & 0xFFFF != 17:
        at += words[at] >> 16
    words[at + 1] = number
    return struct.pack(f"<{len(words)}I", *words)


def test_a_kernel_that_fails_to_build_is_one_line_and_leaks_nothing(monkeypatch):
    executor = platform("opencl").executor(0)
    gc.collect()
    before, released = executor.statistics().bytes_in_use, []
    release = executor.device.functions["clReleaseProgram"]
    monkeypatch.setitem(executor.device.functions, "clReleaseProgram", lambda p: released.append(p) or release(p))
    build = compiler_of_devices.build_device_code
    monkeypatch.setattr(compiler_of_devices, "build_device_code", lambda *given: _with_capability(build(*given), 9999))
    with pytest.raises(BackendError, match=r"cannot build a program: BUILD_PROGRAM_FAILURE \(-11\): .*9999") as caught:
        _compiled()
    assert "\n" not in str(caught.value) and "the device's compiler refuses" in caught.value.remedy
    del caught
    gc.collect()
    assert len(released) == 1 and executor.statistics().bytes_in_use == before
    monkeypatch.undo()
    assert _compiled().execute([np.ones((64, 33), np.float32)])[0].shape == (64, 33)


def _resident():
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_many_runs_of_eight_threads_leak_nothing():
    executor, wrong = platform("opencl").executor(0), list[object]()
    gc.collect()
    before = executor.statistics().bytes_in_use
    executable = _compiled()
    x = np.random.default_rng(1).normal(size=(64, 33)).astype(np.float32)
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


def test_platforms_are_stacks_of_conform_and_diff():
    assert {"legacy@opencl", "mlir@opencl"} <= STACKS.keys()


def _agrees(text: str, stack: str, inputs: list[np.ndarray], tolerance: float = 0.0) -> None:
    """The device's results are the evaluator's."""
    device, module, options = platform("opencl"), parse_module(text), CompileOptions(cache=None)
    verify(module)
    compiler = device.compiler()
    made = compiler.compile(compiler.run_hlo_passes(module, options), emit_for(Flags.parse(stack)), options)
    for found, wanted in zip(made.execute(inputs), evaluate(module, inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("length", [0, 1, 16, 33, 65, 300, 1025])
def test_sorts_of_rows_are_stable(length, stack):
    """Rows of less than one run, of odd and even numbers of merges, by digits; equal keys keep their order."""
    rng = np.random.default_rng(length)
    keys = rng.integers(0, 9, (3, length)).astype(np.float32)
    if length > 2:
        keys[0, :3] = -0.0, math.nan, 0.0
    numbers = np.arange(3 * length, dtype=np.int32).reshape(3, length)
    text = """HloModule m
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = s32[] parameter(2)
 d = s32[] parameter(3)
 ROOT e = pred[] compare(a, b), direction=LT, type=TOTALORDER }
ENTRY e { p = f32[3,LENGTH] parameter(0)
 q = s32[3,LENGTH] parameter(1)
 ROOT r = (f32[3,LENGTH], s32[3,LENGTH]) sort(p, q), dimensions={1}, is_stable=true, to_apply=less }"""
    _agrees(text.replace("LENGTH", str(length)), stack, [keys, numbers])


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_convolution_in_tiles(stack):
    """Tiles cut in both directions, and an infinite element of the kernel, which padding is not multiplied by."""
    rng = np.random.default_rng(1)
    image, kernel = rng.normal(size=(1, 13, 9, 20)), rng.normal(size=(3, 3, 20, 24))
    kernel[0, 0, 3, 5] = math.inf
    text = """HloModule m
ENTRY e { x = f32[1,13,9,20] parameter(0)
 k = f32[3,3,20,24] parameter(1)
 ROOT r = f32[1,13,9,24] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }"""
    _agrees(text, stack, [image.astype(np.float32), kernel.astype(np.float32)], 1e-4)
