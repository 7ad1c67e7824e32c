"""Programs on a device against the host, in one process and in turn.

`python -m testbed.benchmarks.devices [PLATFORM [PROGRAM]]`; the latter is a part of a program's name. A run on a device
includes the copies of its inputs and results; `device` is its kernels alone. Then the cost of a launch, of a
program's kernels when it starts, first and again, and two independent kernels on one queue and on two.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.accelerator.launches import Launch
from ..backends.base import CompileOptions
from ..backends.device import LaunchDimensions
from ..backends.registry import platform
from ..codegen.cache import DEFAULT_CACHE, ObjectCache
from ..formats.text.parser import parse_module
from ..hlo.verify.verifier import verify
from ..migration.choose import emit_for
from ..migration.flags import Flags

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"

MATMUL = """
ENTRY e {
  p = f32[512,512] parameter(0)
  q = f32[512,512] parameter(1)
  ROOT r = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

PROGRAMS: dict[str, tuple[str, list[tuple[int, ...]]]] = {
    "elementwise 4M": (
        "ENTRY e { p = f32[4194304] parameter(0)\n q = f32[4194304] multiply(p, p)\n ROOT r = f32[4194304] tanh(q) }",
        [(4194304,)],
    ),
    "row reduction": (
        ADD + "ENTRY e { p = f32[2048,2048] parameter(0)\n z = f32[] constant(0)\n"
        " ROOT r = f32[2048] reduce(p, z), dimensions={1}, to_apply=add }",
        [(2048, 2048)],
    ),
    "column reduction": (
        ADD + "ENTRY e { p = f32[2048,2048] parameter(0)\n z = f32[] constant(0)\n"
        " ROOT r = f32[2048] reduce(p, z), dimensions={0}, to_apply=add }",
        [(2048, 2048)],
    ),
    "softmax": (
        ADD + "ENTRY e { p = f32[2048,1024] parameter(0)\n z = f32[] constant(0)\n x = f32[2048,1024] exponential(p)\n"
        " s = f32[2048] reduce(x, z), dimensions={1}, to_apply=add\n"
        " b = f32[2048,1024] broadcast(s), dimensions={0}\n ROOT r = f32[2048,1024] divide(x, b) }",
        [(2048, 1024)],
    ),
    "matmul 512": (
        MATMUL,
        [(512, 512), (512, 512)],
    ),
    "convolution": (
        (
            "ENTRY e { p = f32[1,56,56,64] parameter(0)\n q = f32[3,3,64,64] parameter(1)\n ROOT r = f32[1,56,56,64]"
            " convolution(p, q), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }"
        ),
        [(1, 56, 56, 64), (3, 3, 64, 64)],
    ),
    "transposition": (
        "ENTRY e { p = f32[2048,2048] parameter(0)\n ROOT r = f32[2048,2048] transpose(p), dimensions={1,0} }",
        [(2048, 2048)],
    ),
    "sort": (
        (
            "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
            "ENTRY e { p = f32[65536] parameter(0)\n ROOT r = f32[65536] sort(p), dimensions={0}, to_apply=less }"
        ),
        [(65536,)],
    ),
}
"""Name → (HLO, dimensions of the inputs)."""

GPT2 = Path(__file__).resolve().parent.parent / "examples" / "gpt2_block"

RUNS = 15


def compiled(name: str, text: str, stack: str, cache: ObjectCache | None = DEFAULT_CACHE) -> Any:
    compiler, module = (
        platform(name).compiler(),
        parse_module(text if text.startswith("HloModule") else f"HloModule m\n{text}"),
    )
    verify(module)
    options = CompileOptions(cache=cache)
    return compiler.compile(compiler.run_hlo_passes(module, options), emit_for(Flags.parse(stack)), options)


def in_turn(*runs: Callable[[], object]) -> list[float]:
    """The median seconds of each, run in turn."""
    return [seconds for seconds, _ in both_in_turn(*runs)]


def both_in_turn(*runs: Callable[[], object]) -> list[tuple[float, float]]:
    """(The median seconds, the least seconds of all processors together) of each, run in turn. The latter hardly
    depends on what else the machine does.
    """
    seconds: list[list[tuple[float, float]]] = [[] for _ in runs]
    for _ in range(RUNS):
        for run, found in zip(runs, seconds, strict=True):
            start, used = time.perf_counter(), time.process_time()
            run()
            found.append((time.perf_counter() - start, time.process_time() - used))
    return [(statistics.median(t for t, _ in f[1:]), min(t for _, t in f[1:])) for f in seconds]


def on_device(executable: Any, inputs: Sequence[np.ndarray]) -> Callable[[], object]:
    """The kernels of a program alone, on inputs in a context's memory."""
    context = executable.context(inputs)

    def run() -> None:
        executable.steps(context.stream, context.bases)
        context.stream.synchronize()

    return run


def compare(name: str, stack: str, chosen: str) -> None:
    rng = np.random.default_rng(0)
    programs = {
        t: (text, [rng.normal(size=d).astype(np.float32) for d in dims]) for t, (text, dims) in PROGRAMS.items()
    }
    with np.load(GPT2 / "io.npz") as arrays:
        given = [arrays[f"in{n}"] for n in range(sum(key.startswith("in") for key in arrays))]
    programs["GPT-2 block"] = (GPT2 / "module.hlo").read_text(encoding="utf-8"), given
    for title, (text, inputs) in programs.items():
        if chosen not in title:
            continue
        host, device = compiled("host", text, stack), compiled(name, text, stack)
        runs = partial(host.execute, inputs), partial(device.execute, inputs), on_device(device, inputs)
        (a, least), (b, _), (c, used) = both_in_turn(*runs)
        print(
            f"{title:17} {stack:7} host {a * 1e3:8.3f} ms  {name} {b * 1e3:8.3f} ms ({b / a:.2f})"
            f"  device {c * 1e3:8.3f} ms ({c / a:.2f}; processors {used / least:.2f})"
        )


def launches(name: str) -> None:
    """The cost of a launch of an empty kernel: in a row of programs, which may run it on this thread, in one program on
    the device's threads, and by the driver's function alone (called from Python, so its own work is less).
    """
    device = compiled(name, "ENTRY e { p = f32[8] parameter(0)\n ROOT r = f32[8] negate(p) }", "legacy")
    context = device.context()

    def row() -> None:
        for _ in range(1000):
            device.steps(context.stream, context.bases)
        context.stream.synchronize()

    (entry,) = device.entries.values()
    launch = Launch(entry.kernel, LaunchDimensions((1, 1, 1), (8, 1, 1)), ((0, 0), (1, 0)))
    executor: Any = platform(name).executor(0)
    many = executor.launches([launch] * 1000)

    def program() -> None:
        many(context.stream, context.bases)
        context.stream.synchronize()

    programs, one = in_turn(row, program)
    print(f"launch            programs {programs * 1e3:.2f} us  in one program {one * 1e3:.2f} us", end="")
    if name == "opencl":
        stream, sizes = context.stream, (ctypes.c_size_t * 3)(8, 1, 1)
        launch.enqueue(stream, context.bases)  # the kernel keeps its arguments
        enqueue, kernel, queue = stream.executor.device.clEnqueueNDRangeKernel, entry.kernel.handle.value, stream.lend()

        def driver() -> None:
            for _ in range(1000):
                enqueue(queue, kernel, 3, None, sizes, sizes, 0, None, None)
            stream.synchronize()

        (alone,) = in_turn(driver)
        print(f"  driver {alone * 1e3:.2f} us", end="")
    print()


def starts(name: str) -> None:
    """The cost of a program's kernels at its first start and at its next ones, which load the device's binaries."""
    text = (GPT2 / "module.hlo").read_text(encoding="utf-8")
    compiled(name, PROGRAMS["sort"][0], "legacy")  # the driver's compiler is there
    for stack in ("legacy", "mlir"):
        with tempfile.TemporaryDirectory() as folder:
            cache = ObjectCache(Path(folder))
            seconds = [compiled(name, text, stack, cache) for _ in range(5)]
        count = len(seconds[0].entries)
        first, *later = [1e3 * made.timings["build"] / count for made in seconds]
        print(f"start             {stack:7} {count} kernels: {first:.2f} ms each, from the cache {min(later):.2f} ms")


def queues(name: str) -> None:
    """Two independent products, on one queue and on two."""
    text, _ = PROGRAMS["matmul 512"]
    for size in (64, 512):
        device = compiled(name, text.replace("512", str(size)), "legacy")
        first, second = device.context(), device.context()

        one, two = in_turn(partial(_pair, device, first, first), partial(_pair, device, first, second))
        print(f"two products {size:4}  one queue {one * 1e3:8.3f} ms  two queues {two * 1e3:8.3f} ms ({two / one:.2f})")


def _pair(device: Any, first: Any, second: Any) -> None:
    """A program twice, on the streams of two contexts."""
    for context in (first, second):
        device.steps(context.stream, context.bases)
    for context in (first, second):
        context.stream.synchronize()


def main(arguments: list[str]) -> int:
    name, chosen = [*arguments, *("opencl", "")[len(arguments) :]][:2]
    for stack in ("legacy", "mlir"):
        compare(name, stack, chosen)
    if not chosen:
        launches(name)
        starts(name)
        queues(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
