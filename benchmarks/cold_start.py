"""Milliseconds from `import testbed` to the first result of x + 1 in a fresh process, on both stacks, with the cache of
objects off and on, against JAX's `jit` where that is installed.

Run: .venv/bin/python -m testbed.benchmarks.cold_start [--rounds N] [--json FILE]
Contestants take turns, each time in a process of its own, whose clock starts before its first import; what they share
is on disk: files in memory, Python's bytecode and the cache of objects, which a first turn fills. process: with
Python's own start and end. Peak memory is that of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..backends.xla import installed
from ..migration.flags import STACK_NAMES
from .tables import left, right, text_table

MODULE = """HloModule increment
ENTRY main {
  x = f32[4] parameter(0)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={}
  ROOT y = f32[4] add(x, ones)
}
"""

TIMED = """
import time
start = time.perf_counter()
{}
result = numpy.asarray(program(numpy.ones(4, numpy.float32)))
seconds = time.perf_counter() - start
assert result.tolist() == [2.0] * 4
import resource
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
"""Prints the seconds, and the peak of resident memory in KiB."""

OURS = """
import numpy, testbed
program = testbed.compile({!r}, {!r}, testbed.CompileOptions({}))"""

XLA = """
import jax, numpy
jax.config.update("jax_platforms", "cpu")
program = jax.jit(lambda x: x + 1)"""


def contestants() -> dict[str, str]:
    """Name → the program of a process."""
    found = {
        f"{stack}, cache {state}": TIMED.format(OURS.format(MODULE, stack, option))
        for stack in STACK_NAMES
        for state, option in (("off", "cache=None"), ("on", ""))
    }
    return {**found, "jax.jit": TIMED.format(XLA)} if installed() else found


def measure(programs: Mapping[str, str], rounds: int) -> dict[str, list[tuple[float, float, float]]]:
    """By contestant and round: ms inside the process, ms of the whole process, MiB. Raises CalledProcessError."""
    os.unsetenv("PYTHONDONTWRITEBYTECODE")  # a process of a user finds the .pyc files of an earlier one
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in programs}
    for turn in range(rounds + 1):
        for name, program in programs.items():
            start = time.perf_counter()
            run = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True)
            whole = time.perf_counter() - start
            seconds, memory = map(float, run.stdout.split())
            if turn:
                found[name].append((seconds * 1e3, whole * 1e3, memory / 1024))
    return found


def table(found: Mapping[str, Sequence[tuple[float, float, float]]]) -> str:
    """A line per contestant: medians, and the least of the times inside."""
    rows = []
    for name, rounds in found.items():
        inside, whole, memory = map(list, zip(*rounds, strict=True))
        numbers = (statistics.median(inside), min(inside), statistics.median(whole), statistics.median(memory))
        rows.append([name, *(f"{number:.0f}" for number in numbers)])
    heads = ("first result ms", "least", "process ms", "peak MiB")
    return text_table([left(""), *map(right, heads)], rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds in which each contestant runs (9)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(argv)
    found = measure(contestants(), max(1, options.rounds))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
