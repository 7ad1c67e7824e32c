"""CUDA and ROCm without a card: the conformance suite on a recording driver, errors, and what is on this machine."""

from __future__ import annotations

import functools
import gc
import threading

import numpy as np
import pytest

from ...backends.accelerator.targets import nvptx
from ...backends.base import CompileOptions
from ...backends.conformance import BackendConformance
from ...backends.cuda.dialect import CUDA
from ...backends.cuda.platform import target_of
from ...backends.device import BackendError, LaunchDimensions, MemorySpace
from ...backends.gpu.driver import Dialect, Driver, NoDevice, load_driver, started
from ...backends.registry import platform, status
from ...backends.rocm.dialect import HIP
from ...backends.rocm.platform import processors
from ...formats.text.parser import parse_module
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ..support.host_items import host_items
from ..support.recorded import Recorded, negated
from ..support.recording_driver import RecordingDriver


@functools.cache
def recorded(name: str) -> Recorded:
    return Recorded({"cuda": CUDA, "hip": HIP}[name], host_items())


class TestCuda(BackendConformance):
    platform = property(lambda self: recorded("cuda"))
    emit_for = staticmethod(emit_for(Flags.parse("legacy")))
    kernel = property(lambda self: negated())


class TestRocm(BackendConformance):
    platform = property(lambda self: recorded("hip"))
    emit_for = staticmethod(emit_for(Flags.parse("mlir")))
    kernel = property(lambda self: negated())


@pytest.mark.parametrize("name, library", [("cuda", "libcuda.so.1"), ("rocm", "libamdhip64.so")])
def test_a_machine_without_a_driver_says_so_in_one_line(name, library):
    found = platform(name)
    if found.unavailable() is None:
        assert found.visible_device_count() > 0
        return
    assert found.unavailable().startswith("no device: ") and "\n" not in status(name).why
    assert found.visible_device_count() == 0
    with pytest.raises(BackendError, match=f"platform {name} has no device 0"):
        found.executor(0)
    missing = Dialect(**{**vars(CUDA), "libraries": (f"no_{library}",)})
    assert load_driver(missing) == NoDevice(
        f"no device: no_{library} is not installed (it comes with the driver of CUDA)"
    )


@pytest.mark.parametrize("dialect", [CUDA, HIP], ids=lambda d: d.name)
def test_a_driver_without_devices_or_of_another_age_is_a_line(dialect):
    assert started(dialect, RecordingDriver(dialect, devices=0)).why.startswith(f"no device: {dialect.name} says ")
    library = RecordingDriver(dialect)
    library.fail["init"] = 999
    assert started(dialect, library).why.lower() == f"no device: {dialect.name.lower()} says unknown (999)"
    delattr(library, dialect.functions["launch"])
    assert dialect.functions["launch"] in started(dialect, library).why


@pytest.mark.parametrize(
    "capability, processor", [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90"), ((12, 0), "sm_100")]
)
def test_a_device_takes_the_newest_code_that_it_runs(capability, processor):
    driver = started(CUDA, RecordingDriver(CUDA, capability=capability))
    assert isinstance(driver, Driver) and target_of(driver, 0) == nvptx(processor)


def test_an_old_device_is_refused():
    with pytest.raises(BackendError, match=r"device 0 has compute capability 7.5 \(use one of 8.0 or later\)"):
        target_of(started(CUDA, RecordingDriver(CUDA, capability=(7, 5))), 0)


def test_the_kernel_tells_the_processors_of_amds_devices(tmp_path):
    for number, version in enumerate((0, 90402, 110000, 90010)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "properties").write_text(f"cpu_cores_count 0\ngfx_target_version {version}\n")
    assert processors(tmp_path) == ("gfx942", "gfx1100", "gfx90a")


FAILURES = [
    ("allocate", 2, "allocate 64 bytes: ", "use less memory at once"),
    ("stream_create", 719, "create a stream: ", "the device is lost"),
    ("launch", 701, "run negated: ", "use less memory at once"),
    ("module_load", 218, "load a program: ", "give code for"),
    ("module_function", 500, "find the kernel negated: ", "testbed platforms"),
    ("event_record", 400, "record an event: ", "testbed platforms"),
    ("stream_synchronize", 719, "finish a stream: ", "the device is lost"),
    ("memset8", 1, "fill 64 bytes: ", "testbed platforms"),
]


@pytest.mark.parametrize("function, code, what, remedy", FAILURES, ids=[row[0] for row in FAILURES])
def test_each_failure_of_the_driver_is_one_line_with_a_remedy(function, code, what, remedy):
    made = Recorded(CUDA, host_items())
    executor = made.executor(0)
    stream = executor.create_stream()

    def work():
        memory = executor.allocate(64)
        executor.create_stream()
        stream.memset(memory, 1)
        kernel = executor.load_kernel(negated())
        stream.launch(kernel, LaunchDimensions(), [memory, memory])
        stream.record(executor.create_event())
        stream.synchronize()

    made.library.fail[function] = code
    with pytest.raises(BackendError, match=f"CUDA cannot {what}") as error:
        work()
    assert remedy in error.value.remedy and "\n" not in str(error.value)
    work()


def test_what_the_drivers_compiler_says_is_in_the_line():
    with pytest.raises(BackendError, match=r"INVALID_IMAGE \(200\): ptxas fatal : no entry ptxas fatal") as error:
        recorded("cuda").executor(0).build(b"no code")
    assert "\n" not in str(error.value)


def test_arguments_of_the_fake_are_checked():
    """What the executor never does, the recording driver would notice."""
    made = Recorded(CUDA, host_items())
    executor, library = made.executor(0), made.library
    driver = executor.driver
    assert driver.call("enter", 0) == 0 and driver.call("enter", 7) == 101
    assert driver.call("copy", 64, 64, 8, executor.create_stream().value) == 1
    assert driver.call("memset8", 64, 0, 8, executor.create_stream().value) == 1
    assert driver.call("stream_synchronize", 12345) == 400
    assert driver.call("free", 12345) == 1
    assert driver.call("launch", 12345, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 400
    assert library.calls[0] == ("init", (0,))


def test_nothing_is_left_when_an_executor_is_forgotten():
    made = Recorded(CUDA, host_items())
    library = made.library
    text = "HloModule m\nENTRY e { x = f32[64] parameter(0) y = f32[64] exponential(x) ROOT r = f32[] reduce(y, z), "
    text += "dimensions={0}, to_apply=a }\n"
    text = text.replace("ROOT", "z = f32[] constant(0) ROOT")
    text = text.replace("ENTRY", "a { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }\nENTRY")
    compiler, options = made.compiler(), CompileOptions(cache=None)
    plan = compiler.run_hlo_passes(parse_module(text), options)
    executable = compiler.compile(plan, emit_for(Flags.parse("legacy")), options)
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    for _ in range(50):
        (result,) = executable.execute([x])
    assert np.allclose(result, np.exp(x).sum(), rtol=1e-5)
    assert library.blocks and library.of("Module")
    events = library.of("Event")
    del executable, compiler
    gc.collect()
    assert (library.blocks, library.of("Module")) == ({}, 0) and library.of("Event") <= events


CONSTANTS = """HloModule m
ENTRY e {
  x = s32[3] parameter(0)
  a = s32[5] constant({3, 1, 4, 1, 5})
  b = s32[5] constant({9, 2, 6, 5, 3})
  p = s32[5,3] broadcast(x), dimensions={1}
  q = s32[5,3] broadcast(a), dimensions={0}
  r = s32[5,3] add(p, q)
  ROOT t = (s32[5,3], s32[5], s32[5]) tuple(r, a, b)
}
"""


def compiled(made, text):
    compiler, options = made.compiler(), CompileOptions(cache=None)
    plan = compiler.run_hlo_passes(parse_module(text), options)
    return compiler.compile(plan, emit_for(Flags.parse("legacy")), options)


def test_an_error_of_a_run_is_not_hidden_by_the_next_one_and_leaks_nothing():
    made = Recorded(CUDA, host_items())
    executor, executable = made.executor(0), compiled(made, CONSTANTS)
    gc.collect()
    before, x = executor.statistics().bytes_in_use, np.arange(3, dtype=np.int32)
    made.library.fail |= {"launch": 701, "stream_synchronize": 719}
    with pytest.raises(BackendError, match=r"CUDA cannot run .*: LAUNCH_OUT_OF_RESOURCES \(701\)"):
        executable.execute([x])
    assert made.library.fail == {} and executor.statistics().bytes_in_use == before
    assert executable.execute([x])[1].tolist() == [3, 1, 4, 1, 5]


def test_a_failed_run_in_a_stream_keeps_no_context():
    made = Recorded(CUDA, host_items())
    executor, executable = made.executor(0), compiled(made, CONSTANTS)
    stream, block = executor.create_stream(), executor.allocate(12)
    gc.collect()
    before = executor.statistics().bytes_in_use
    made.library.fail["launch"] = 701
    executable.execute_async_on_stream(stream, [block])
    with pytest.raises(BackendError, match="LAUNCH_OUT_OF_RESOURCES"):
        stream.synchronize()
    gc.collect()
    assert executor.statistics().bytes_in_use == before and not executable._idle


def test_constants_are_copied_in_one_stream_and_leak_nothing():
    made = Recorded(CUDA, host_items())
    executor, library = made.executor(0), made.library
    before = executor.statistics().bytes_in_use
    library.fail["cuMemcpyAsync"] = 1
    with pytest.raises(BackendError, match="CUDA cannot copy"):
        compiled(made, CONSTANTS)
    assert executor.statistics().bytes_in_use == before
    library.calls.clear()
    executable = compiled(made, CONSTANTS)
    assert len(executable.image.constants) >= 2
    assert [name for name, _ in library.calls].count("stream_create") == 1


def test_ptx_is_loaded_and_its_launches_are_recorded():
    made = Recorded(CUDA, nvptx("sm_90"))
    compiler, options = made.compiler(), CompileOptions(cache=None)
    text = "HloModule m\nENTRY e { x = f32[4096] parameter(0) ROOT y = f32[4096] tanh(x) }\n"
    for stack in ("legacy", "mlir"):
        plan = compiler.run_hlo_passes(parse_module(text), options)
        executable = compiler.compile(plan, emit_for(Flags.parse(stack)), options)
        made.library.calls.clear()
        executable.execute([np.zeros(4096, np.float32)])
        (launch,) = [arguments for name, arguments in made.library.calls if name == "launch"]
        blocks, threads = launch[1:4], launch[4:7]
        assert np.prod(blocks) * np.prod(threads) >= 4096 and threads[0] == 256 and launch[7] == 0


def test_pinned_memory_is_the_hosts_too():
    executor = recorded("cuda").executor(0)
    block = executor.allocate(16, MemorySpace.HOST)
    executor.host_view(block)[:] = 7
    device = executor.allocate(16)
    executor.synchronous_memcpy(device, block, 16)
    result = np.zeros(16, np.uint8)
    executor.synchronous_memcpy_to_host(result, device)
    assert result.tolist() == [7] * 16


def test_work_of_the_host_in_a_stream_holds_up_what_is_behind_it_and_nothing_else():
    """The driver waits for its streams where a block is given back, and where memory that is not pinned is copied."""
    executor, go, seen = recorded("cuda").executor(0), threading.Event(), []
    stream, other = executor.create_stream(), executor.create_stream()
    block, copy, unused = (executor.allocate(16) for _ in range(3))
    event, found = executor.create_event(), np.zeros(16, np.uint8)
    stream.enqueue(lambda: seen.append(go.wait(60)))
    stream.memcpy_from_host(block, np.full(16, 7, np.uint8))
    stream.record(event)
    other.wait_for(event)
    other.memcpy(copy, block, 16)
    other.memcpy_to_host(found, copy)
    executor.deallocate(unused)
    assert not event.is_complete and not seen
    go.set()
    other.synchronize()
    assert seen == [True] and event.is_complete and found.tolist() == [7] * 16
    stream.synchronize()
