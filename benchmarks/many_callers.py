"""Many threads call the same executables at once: is a result ever wrong, does memory grow, what does a call cost?

Run: .venv/bin/python -m testbed.benchmarks.many_callers [--callers 8] [--calls 10000] [--threads N] [--emitters FLAGS]
Each caller calls a small program, a split one, rows with a reduction, and a loop of split kernels in turn, the small
one most often, with inputs of its own, and compares the bits of each result with those of one thread alone. The heap is
malloc's count of bytes, after a first part with the same number of calls, and at the end. Exits 1 if a result is wrong
or the heap or the pool of results has grown by more than --growth KiB.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..backends.host.executable import HostExecutable
from ..backends.host.memory import memory_stats
from ..codegen.threads import on_threads
from ..formats.text.parser import parse_module
from ..migration import Flags, compile_module
from .growth import heap_bytes

SMALL = "HloModule small\nENTRY e { x = f32[8] parameter(0)\n  ROOT y = f32[8] add(x, x) }\n"

SPLIT = "HloModule split\nENTRY e { x = f32[262144] parameter(0)\n  ROOT y = f32[262144] tanh(x) }\n"

ROWS = """HloModule rows
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[512,512] parameter(0)
  z = f32[] constant(0)
  s = f32[512] reduce(x, z), dimensions={1}, to_apply=add
  c = f32[512,512] broadcast(s), dimensions={0}
  ROOT y = f32[512,512] subtract(x, c) }
"""

LOOP = """HloModule loop
next { s = (s32[], f32[262144]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[262144] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[262144] sine(x)
  ROOT t = (s32[], f32[262144]) tuple(j, y) }
more { s = (s32[], f32[262144]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[262144] parameter(0)
  i = s32[] constant(0)
  s = (s32[], f32[262144]) tuple(i, x)
  w = (s32[], f32[262144]) while(s), condition=more, body=next
  ROOT r = f32[262144] get-tuple-element(w), index=1 }
"""

PROGRAMS = {"small": SMALL, "split": SPLIT, "rows": ROWS, "loop": LOOP}
EVERY = {"small": 1, "split": 20, "rows": 20, "loop": 100}
"""Every how many of a caller's calls one is of this program."""


@dataclass(frozen=True)
class Outcome:
    """wrong: (program, caller) of results with other bits. heap, pool: bytes in use after the first part, and last."""

    calls: int
    seconds: float
    heap: tuple[int, int]
    pool: tuple[int, int]
    wrong: Sequence[tuple[str, int]] = field(default=())

    def growth(self) -> int:
        """Bytes."""
        return max(0, self.heap[1] - self.heap[0]) + max(0, self.pool[1] - self.pool[0])


def measure(callers: int, calls: int, count: int | None, emitters: str) -> Outcome:
    """Two parts of `calls` calls by each caller. count: of threads that may work at a kernel."""
    programs = {name: compile_module(parse_module(text), Flags.parse(emitters)) for name, text in PROGRAMS.items()}
    inputs = [_inputs(programs, caller) for caller in range(callers)]
    with on_threads(1):
        wanted = [{name: p.execute([given[name]])[0].tobytes() for name, p in programs.items()} for given in inputs]
    wrong: list[tuple[str, int]] = []

    def call(caller: int) -> None:
        for number in range(calls):
            name = next(n for n in reversed(EVERY) if number % EVERY[n] == EVERY[n] - 1)
            if programs[name].execute([inputs[caller][name]])[0].tobytes() != wanted[caller][name]:
                wrong.append((name, caller))

    heap, pool, start = [], [], 0.0
    with on_threads(count):
        for _ in range(2):
            start = time.perf_counter()
            together = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
            for thread in together:
                thread.start()
            for thread in together:
                thread.join()
            heap.append(_heap())
            pool.append(memory_stats().bytes_in_use)
        seconds = time.perf_counter() - start
    return Outcome(callers * calls, seconds, (heap[0], heap[1]), (pool[0], pool[1]), tuple(wrong))


def _inputs(programs: dict[str, HostExecutable], caller: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(caller)
    shapes = {name: program.program.entry.parameters[0].shape.dims for name, program in programs.items()}
    return {name: random.standard_normal(dims).astype(np.float32) for name, dims in shapes.items()}


def _heap() -> int:
    """Bytes that malloc has handed out; 0 where the C library does not say."""
    try:
        return heap_bytes()
    except (AttributeError, OSError):
        return 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--calls", type=int, default=10_000, help="of each caller, in each of two parts (10,000)")
    parser.add_argument("--threads", type=int, help="that may work at a kernel (one a processor)")
    parser.add_argument("--emitters", default="legacy", help="the stack or flags (legacy)")
    parser.add_argument("--growth", type=int, default=256, metavar="KIB")
    options = parser.parse_args(argv)
    found = measure(options.callers, options.calls, options.threads, options.emitters)
    each = found.seconds / found.calls * 1e6
    print(f"{found.calls:,} calls by {options.callers} callers: {found.seconds:.2f} s, {each:.1f} µs each")
    print(f"wrong results: {len(found.wrong)}" + "".join(f"\n  {name} of caller {n}" for name, n in found.wrong[:8]))
    for what, (first, last) in {"heap": found.heap, "pool": found.pool}.items():
        print(f"{what}: {first / 1024:.1f} KiB after the first part, {(last - first) / 1024:+.1f} KiB at the end")
    return 1 if found.wrong or found.growth() > options.growth * 1024 else 0


if __name__ == "__main__":
    sys.exit(main())
