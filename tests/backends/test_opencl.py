"""The platform opencl: the conformance suite with each stack, errors in one line, memory, caches."""

import gc
import struct
from dataclasses import replace

import numpy as np
import pytest

from ...backends.accelerator import build
from ...backends.accelerator import compiler as compiler_of_devices
from ...backends.base import CompileOptions
from ...backends.conformance import BackendConformance
from ...backends.device import BackendError, KernelSpec, LaunchDimensions
from ...backends.opencl import executor as executor_of_opencl
from ...backends.opencl.library import devices
from ...backends.opencl.spirv import HEADER_WORDS
from ...backends.registry import platform
from ...codegen.cache import ObjectCache
from ...formats.text.parser import parse_module
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...migration.stacks import STACKS
from ..support.device_programs import SOFTMAX, compiled, negated

pytestmark = pytest.mark.skipif(not devices()[0], reason=f"platform opencl: {devices()[1]}")


class TestLegacy(BackendConformance):
    platform = "opencl"
    emit_for = staticmethod(emit_for(Flags.parse("legacy")))
    kernel = property(lambda self: negated("opencl"))


class TestMlir(BackendConformance):
    platform = "opencl"
    emit_for = staticmethod(emit_for(Flags.parse("mlir")))
    kernel = property(lambda self: negated("opencl"))


def _compiled(stack="legacy", cache=None):
    return compiled(platform("opencl"), SOFTMAX, stack, cache)


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
    spec = negated("opencl")
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


def test_platforms_are_stacks_of_conform_and_diff():
    assert {"legacy@opencl", "mlir@opencl"} <= STACKS.keys()
