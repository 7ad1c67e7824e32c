"""Arenas of programs that may take much, and resident memory over many compiles, compiles from the object cache, and
runs, each curve in a process of its own.

Run: .venv/bin/python -m testbed.benchmarks.memory [--compiles N] [--runs N] [--stack legacy,mlir] [--bound PERCENT]
Prints each arena and each curve, and exits 1 if an arena is larger than its bound, or if resident memory grows by more
than the bound after the first quarter, the warm-up.
Linux only. docs/findings.md lists what the libraries below leak, and how that is contained.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from ..backends.base import CompileOptions
from ..codegen.cache import ObjectCache
from ..hlo.errors import InputError
from ..migration.api import compile, parse
from ..migration.flags import STACK_NAMES
from ..migration.stacks import parse_stacks
from ..planning.plan import AllocationKind
from ..planning.planner import plan
from .growth import status_bytes

SAMPLES = 20
"""Points of a curve."""

WARM_UP = 4
"""One in WARM_UP points at the start is warm-up."""

SIZES = range(8, 18)

MODULES = (
    """HloModule elementwise
ENTRY e {
  x = f32[SIZE]{0} parameter(0)
  y = f32[SIZE]{0} tanh(x)
  ROOT z = f32[SIZE]{0} multiply(y, x)
}
""",
    """HloModule products
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[SIZE,SIZE]{1,0} parameter(0)
  y = f32[SIZE,SIZE]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  ROOT z = f32[SIZE]{0} reduce(y, zero), dimensions={1}, to_apply=add
}
""",
    """HloModule loop
condition {
  s = (s32[], f32[SIZE]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[SIZE]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[SIZE]{0} get-tuple-element(s), index=1
  y = f32[SIZE]{0} cosine(x)
  ROOT t = (s32[], f32[SIZE]{0}) tuple(j, y)
}
ENTRY e {
  x = f32[SIZE]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[SIZE]{0}) tuple(zero, x)
  w = (s32[], f32[SIZE]{0}) while(s), condition=condition, body=body
  ROOT z = f32[SIZE]{0} get-tuple-element(w), index=1
}
""",
)
"""HLO text, with SIZE for a number. Kernels, kernels with scratch memory, and control flow."""


ARENAS = {
    "sums of the product of arrays in two orders, f32 16384 x 16384": (
        """HloModule two_orders
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[16384,16384]{1,0} parameter(0)
  y = f32[16384,16384]{0,1} parameter(1)
  m = f32[16384,16384]{1,0} multiply(x, y)
  zero = f32[] constant(0)
  ROOT r = f32[16384]{0} reduce(m, zero), dimensions={1}, to_apply=add
}
""",
        1 << 12,
    ),
    "dot of rows and columns, f32 16384 x 16384": (
        """HloModule rows_and_columns
ENTRY e {
  x = f32[16384,16384]{1,0} parameter(0)
  y = f32[16384,16384]{1,0} parameter(1)
  ROOT r = f32[16384]{0} dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={1},
    rhs_contracting_dims={0}
}
""",
        1 << 12,
    ),
    "attention without a softmax, 96 heads of f32 1024 x 64": (
        """HloModule attention
ENTRY e {
  q = f32[96,1024,64]{2,1,0} parameter(0)
  k = f32[96,1024,64]{2,1,0} parameter(1)
  v = f32[96,1024,64]{2,1,0} parameter(2)
  s = f32[96,1024,1024]{2,1,0} dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
    rhs_contracting_dims={2}
  e = f32[96,1024,1024]{2,1,0} exponential(s)
  ROOT r = f32[96,1024,64]{2,1,0} dot(e, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
    rhs_contracting_dims={1}
}
""",
        6 << 20,
    ),
    "bits of Philox, u32 2^20": (
        """HloModule bits
ENTRY e {
  state = u64[2]{0} parameter(0)
  ROOT r = (u64[2]{0}, u32[1048576]{0}) rng-bit-generator(state), algorithm=rng_philox
}
""",
        1 << 12,
    ),
}
"""(A program, the most bytes of its arena), by what it is. It is planned, and not run."""


def arena_bytes(text: str) -> int:
    """Bytes of temporary memory of a program."""
    allocations = plan(parse(text)).assignment.allocations
    return sum(a.size for a in allocations if a.kind is AllocationKind.TEMPORARY)


def resident_bytes() -> int:
    """Resident memory of this process, in bytes. Raises InputError where the system does not say."""
    try:
        return status_bytes("VmRSS")
    except (OSError, KeyError):
        raise InputError("resident memory is not known here", remedy="run the command on Linux") from None


def curve(step: Callable[[], object], steps: int) -> list[int]:
    """Resident bytes at SAMPLES points, evenly spaced, of `steps` calls; each point follows a garbage collection."""
    points = []
    for number in range(SAMPLES):
        for _ in range(steps * number // SAMPLES, steps * (number + 1) // SAMPLES):
            step()
        gc.collect()
        points.append(resident_bytes())
    return points


def growth(points: Sequence[int]) -> float:
    """How much the largest point after the warm-up exceeds the last point of the warm-up, relative to that."""
    base = points[len(points) // WARM_UP - 1]
    return max(points[len(points) // WARM_UP :]) / base - 1


def compiling(stack: str, steps: int, cached: bool = False) -> list[int]:
    """The curve of compiles. cached: objects come from a cache that holds all of them from the warm-up on."""
    texts = itertools.cycle([text.replace("SIZE", str(size)) for size in SIZES for text in MODULES])
    with tempfile.TemporaryDirectory() as folder:
        options = CompileOptions(cache=ObjectCache(Path(folder)) if cached else None)
        return curve(lambda: compile(next(texts), stack, options), steps)


def cached(stack: str, steps: int) -> list[int]:
    return compiling(stack, steps, cached=True)


def running(stack: str, steps: int) -> list[int]:
    """The curve of runs of one program, with new results in each."""
    module = parse(MODULES[0].replace("SIZE", "64"))
    execute = compile(module, stack, CompileOptions(cache=None)).execute
    inputs = [np.linspace(-1, 1, 64, dtype=np.float32)]
    return curve(lambda: execute(inputs), steps)


CURVES: dict[str, Callable[[str, int], list[int]]] = {"compiles": compiling, "cached": cached, "runs": running}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiles", type=int, default=10_000, help="compiles per curve (10,000); 0 for none")
    parser.add_argument("--runs", type=int, default=1_000_000, help="runs per curve (1,000,000); 0 for none")
    parser.add_argument("--stack", default=",".join(STACK_NAMES), help="stacks, comma-separated (legacy,mlir)")
    parser.add_argument("--bound", type=float, default=2.0, metavar="PERCENT", help="largest growth in percent (2)")
    options = parser.parse_args(argv)
    try:
        stacks = parse_stacks(options.stack, STACK_NAMES)
        resident_bytes()
    except InputError as error:
        parser.error(str(error))
    for name, steps in (("--compiles", options.compiles), ("--runs", options.runs)):
        if 0 != steps < SAMPLES:
            parser.error(f"{name} {steps}: give 0 or at least {SAMPLES}")
    numbers = {"compiles": options.compiles, "cached": options.compiles, "runs": options.runs}
    worst, exceeded = 0.0, 0
    for name, (text, most) in ARENAS.items():
        size = arena_bytes(text)
        exceeded += size > most
        print(f"arena {size:>11} of {most:>11} bytes: {name}", flush=True)
    for stack, (name, steps) in itertools.product(stacks, numbers.items()):
        if steps:
            points = _in_a_new_process(name, stack, steps)
            worst = max(worst, growth(points))
            print(_line(f"{stack} {name}", steps, points), flush=True)
    print(f"largest growth after the warm-up: {worst:.2%} (bound {options.bound:g}%)")
    return 1 if exceeded or worst * 100 > options.bound else 0


def _in_a_new_process(name: str, stack: str, steps: int) -> list[int]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(CURVES[name], stack, steps).result()


def _line(name: str, steps: int, points: Sequence[int]) -> str:
    after = len(points) // WARM_UP
    each = (points[-1] - points[after - 1]) / (steps * (1 - after / len(points)))
    shown = " ".join(f"{p / 2**20:.1f}" for p in points)
    return f"{name:<16} {steps:>9}  MiB: {shown}  growth {growth(points):+.2%}, {each:+.0f} bytes each"


if __name__ == "__main__":
    sys.exit(main())
