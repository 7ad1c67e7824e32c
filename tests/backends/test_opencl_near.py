"""Launches of short kernels on OpenCL: on the thread that asks for them, with arguments of their own."""

import ctypes
import threading
from dataclasses import replace

import numpy as np
import pytest

from ...backends.accelerator.launches import Launch
from ...backends.base import CompileOptions
from ...backends.device import BackendError, Kernel, LaunchDimensions
from ...backends.opencl import executor as executor_of_opencl
from ...backends.opencl.launches import Launches
from ...backends.opencl.library import devices
from ...backends.opencl.near import HANDOVER, are_near
from ...backends.opencl.stream import OpenClStream
from ...backends.registry import platform
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...thunks.wire.program import read_program
from ..support.device_programs import without

needs_opencl = without("opencl")
needs_near = pytest.mark.skipif(
    not devices()[0] or not devices()[0][0].runs_near, reason="the OpenCL device runs no kernel on the calling thread"
)


def launch(nanoseconds: int, groups: int = 64) -> Launch:
    return Launch(Kernel("k", 0, None), LaunchDimensions((groups, 1, 1), (16, 1, 1)), (), nanoseconds)


@pytest.mark.parametrize(
    ("rows", "processors", "near"),
    [
        ([launch(HANDOVER)], 2, True),
        ([launch(3 * HANDOVER)], 2, False),
        ([launch(3 * HANDOVER), launch(1), launch(1)], 2, True),  # three launches that need not be handed over
        ([launch(int(1.5 * HANDOVER))], 2, True),
        ([launch(int(1.5 * HANDOVER))], 8, False),
        ([launch(1000 * HANDOVER, groups=1)], 8, True),  # nobody helps with one group
        ([launch(0)], 2, False),  # nobody knows
        ([launch(1000 * HANDOVER)], 1, True),
    ],
)
def test_launches_are_near_if_other_processors_save_less_than_they_cost(rows, processors, near):
    assert are_near(rows, processors) == near


LOOP = """HloModule m
less {{ i = (s32[], f32[{n}]) parameter(0)
  c = s32[] get-tuple-element(i), index=0
  most = s32[] constant(5)
  ROOT l = pred[] compare(c, most), direction=LT }}
body {{ i = (s32[], f32[{n}]) parameter(0)
  c = s32[] get-tuple-element(i), index=0
  x = f32[{n}] get-tuple-element(i), index=1
  one = s32[] constant(1)
  d = s32[] add(c, one)
  y = f32[{n}] tanh(x)
  ROOT t = (s32[], f32[{n}]) tuple(d, y) }}
ENTRY e {{
  p = f32[{n}] parameter(0)
  zero = s32[] constant(0)
  first = (s32[], f32[{n}]) tuple(zero, p)
  loop = (s32[], f32[{n}]) while(first), condition=less, body=body
  ROOT r = f32[{n}] get-tuple-element(loop), index=1
}}
"""


def compiled(size: int, stack: str = "legacy"):
    module, compiler, options = parse_module(LOOP.format(n=size)), platform("opencl").compiler(), CompileOptions()
    verify(module)
    return compiler.compile(compiler.run_hlo_passes(module, options), emit_for(Flags.parse(stack)), options)


def wanted(x: np.ndarray) -> np.ndarray:
    for _ in range(5):
        x = np.tanh(x)
    return x


def _noting(results, function):
    """The function, whose results are kept, too."""

    def noting(*given):
        results.append(function(*given))
        return results[-1]

    return noting


@needs_near
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize(("size", "near"), [(64, True), (1 << 22, False)])
def test_short_kernels_of_a_loop_are_run_by_the_calling_thread(size, near, stack, monkeypatch):
    """Those that are not are handed over between the same launches of the condition."""
    asked, seen, enqueue = [], [], Launches.enqueue
    monkeypatch.setattr(OpenClStream, "near", _noting(asked, OpenClStream.near))
    monkeypatch.setattr(Launches, "enqueue", lambda *given: seen.append((given[0].rows, given[1])) or enqueue(*given))
    executable, x = compiled(size, stack), np.random.default_rng(0).normal(size=size).astype(np.float32)
    np.testing.assert_allclose(executable.execute([x])[0], wanted(x), rtol=1e-5)
    run = {row.kernel for rows, queue in seen if queue in asked for row in rows}
    kernels = {entry.kernel for entry in executable.entries.values()}
    assert run == kernels if near else run and run < kernels


@needs_near
def test_what_was_handed_over_is_done_before():
    """A copy of 16 MB, then a near kernel that reads its end, by turns in one stream."""
    executable, device = compiled(64), platform("opencl").executor(0)
    context, size = executable.context(), 1 << 24
    blocks = [device.allocate(size) for _ in range(2)]
    for number in range(5):
        data = np.full(size // 4, number, np.float32)
        context.stream.copy(blocks[0].address, data.ctypes.data, size)
        context.stream.copy(blocks[1].address, blocks[0].address, size)
        context.bases[0] = blocks[1].address + size - 256
        found = np.empty(64, np.float32)
        executable.steps(context.stream, context.bases)
        (place,) = {executable._signature.variable[-1]}
        context.stream.copy(found.ctypes.data, context.bases[place], 256)
        context.stream.synchronize()
        np.testing.assert_allclose(found, wanted(data[:64]), rtol=1e-5)
    for block in blocks:
        device.deallocate(block)
    context.free()


@needs_opencl
def test_a_queue_is_waited_for_if_somebody_may_have_used_it(monkeypatch):
    executor, calls = platform("opencl").executor(0), []
    finish = executor.device.functions["clFinish"]
    monkeypatch.setitem(executor.device.functions, "clFinish", lambda queue: calls.append(queue) or finish(queue))
    stream, block, event = executor.create_stream(), executor.allocate(64), executor.create_event()
    data = np.ones(16, np.float32)

    def times(use) -> int:
        use()
        calls.clear()
        stream.synchronize()
        stream.synchronize()
        return len(calls)

    assert times(lambda: None) == 0
    for use in (
        lambda: stream.memcpy_from_host(block, data),
        lambda: stream.memset(block, 1),
        lambda: stream.record(event),
        lambda: stream.wait_for(event),
        lambda: stream.enqueue(lambda: None),
    ):
        assert times(use) == 1
    assert times(stream.lend) == 2
    executor.deallocate(block)


@needs_opencl
def test_launches_that_fail_are_waited_for_all_the_same(monkeypatch):
    executable = compiled(1 << 22)
    context = executable.context([np.ones(1 << 22, np.float32)])
    monkeypatch.setattr(Launches, "enqueue", lambda *given: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        platform("opencl").executor(0).launches([launch(0)])(context.stream, context.bases)
    assert context.stream._uses != context.stream._finished
    context.free()


@needs_near
def test_threads_run_a_program_at_once_with_arguments_of_their_own():
    executable, failures = compiled(64), []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        x = np.random.default_rng(number).normal(size=64).astype(np.float32)
        start.wait()
        for _ in range(100):
            if not np.allclose(executable.execute([x])[0], wanted(x), rtol=1e-5):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@needs_opencl
@pytest.mark.parametrize("shared", [True, False])
def test_an_argument_is_given_again_where_its_address_may_be_that_of_another_block(shared, monkeypatch):
    """Blocks of the host's memory are known by their addresses; those of USM are not."""
    device, seen = platform("opencl").executor(0).device, []
    name = "clSetKernelArgMemPointerINTEL"
    give = device.functions[name]

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
    def given(kernel, number, address):
        seen.append((kernel, number, address))
        return give(kernel, number, address)

    monkeypatch.setitem(device.functions, name, given)
    executable = compiled(64)
    contexts = [executable.context([np.full(64, n, np.float32)]) for n in range(2)]
    counts = []
    for context in (contexts[0], contexts[0], contexts[1]):
        with monkeypatch.context() as patched:
            patched.setitem(vars(device), "shares_memory", shared)
            executable.steps(context.stream, context.bases)
            context.stream.synchronize()
        counts.append(len(seen))
        seen.clear()
    first, again, moved = counts
    assert again == (0 if shared else moved) and first >= moved > 0
    for context in contexts:
        context.free()


@needs_near
@pytest.mark.parametrize("watch", [False, True])
def test_a_near_launch_that_the_driver_refuses_is_named(watch, monkeypatch):
    rows = []
    monkeypatch.setattr(executor_of_opencl, "are_near", lambda given, processors: rows.append(given) or True)
    executable = compiled(64)
    context = executable.context([np.ones(64, np.float32)])
    found = rows[-1][0]
    wrong = replace(found, dimensions=LaunchDimensions((1, 1, 1), (1 << 20, 1, 1)))
    enqueue = platform("opencl").executor(0).launches([found, wrong, found])
    if watch:
        context.stream.watch()
    with pytest.raises(BackendError, match=rf"run {found.kernel.name}: INVALID_WORK_"):
        enqueue(context.stream, context.bases)
    context.stream.watched()
    context.free()


@needs_near
def test_events_of_near_launches_have_times():
    executable = compiled(64)
    context = executable.context([np.ones(64, np.float32)])
    context.stream.watch()
    executable.steps(context.stream, context.bases)
    spans = [note.span() for note in context.stream.watched() if not isinstance(note, int)]
    assert len(spans) >= 11 and all(begin <= end for begin, end in spans)
    assert spans == sorted(spans)
    context.free()


@needs_opencl
def test_a_device_without_near_queues_gets_none(monkeypatch):
    monkeypatch.setattr(OpenClStream, "near", None)
    device = platform("opencl").executor(0).device
    monkeypatch.setitem(vars(device), "runs_near", False)
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    np.testing.assert_allclose(compiled(64).execute([x])[0], wanted(x), rtol=1e-5)


@needs_opencl
def test_files_say_how_long_kernels_take():
    """So that a loaded program hands the same launches over."""
    executable = compiled(64)
    data = executable.serialize()
    kernels = {kernel.symbol: kernel.nanoseconds for kernel in read_program(data)[0].device.kernels}
    assert kernels == {symbol: entry.nanoseconds for symbol, entry in executable.entries.items()}
    loaded = platform("opencl").compiler().load_executable(data)
    assert {symbol: entry.nanoseconds for symbol, entry in loaded.entries.items()} == kernels
    assert min(kernels.values()) > 0
