"""What profiles account for, program by program: entry, steps and what is between them against the host's timer.

Run: .venv/bin/python -m testbed.benchmarks.profile_sums FOLDER [NAME…] [--emitters FLAGS] [--within F] [--overhead F]
FOLDER holds a folder a program (module.hlo, io.npz), as the corpus' jax_programs. `sum / wall` compares runs with marks
around the whole run, without their cost, with runs without marks. Exits 1 if a program's sum is farther off than
`within`, or if marks around each step take more than `overhead` of the time where kernels take 5 us or more on average.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..backends.base import CompileOptions
from ..backends.host.profiled import profiled
from ..codegen.threads import set_threads
from ..migration import Flags, emit_for
from ..migration.compile import compile_program
from ..migration.programs import load_program
from .profiles import Measured, measure
from .tables import left, right, text_table

LARGE = 5e3
"""Nanoseconds of the mean kernel from which the overhead has a bound."""


@dataclass(frozen=True)
class Sums:
    """A program's times. name: of its folder."""

    name: str
    measured: Measured

    @property
    def steps(self) -> float:
        """Kernels, copies, loops and conditionals a run."""
        return float(self.measured.times.calls.sum())

    @property
    def mean(self) -> float:
        """Nanoseconds of a step."""
        return self.measured.times.run / self.steps if self.steps else 0.0

    def is_off(self, within: float) -> bool:
        return abs(self.measured.ratio - 1.0) > within

    def is_slow(self, overhead: float) -> bool:
        return self.mean >= LARGE and self.measured.overhead - 1.0 > overhead

    def cells(self, within: float, overhead: float) -> tuple[str, ...]:
        m = self.measured
        times = (m.wall, m.entry, float(m.times.own.sum()), m.times.between)
        marks = ("off " if self.is_off(within) else "") + ("slow" if self.is_slow(overhead) else "")
        numbers = (f"{m.ratio:.3f}", f"{self.steps:g}", f"{self.mean / 1e3:.2f}", f"{m.overhead:.3f}")
        return (self.name, *(f"{t / 1e3:.2f}" for t in times), *numbers, f"{m.times.event:.0f}", marks.strip())


def sums_of(folder: Path, emitters: str, iterations: int | None = None) -> Sums:
    """Compile and measure the program in a folder, which has its inputs."""
    program, flags, options = load_program(str(folder)), Flags.parse(emitters), CompileOptions()
    executable = compile_program(program, flags, options)
    forms = profiled(executable, emit_for(flags), options)
    assert program.inputs is not None, f"{folder} has no io.npz"
    return Sums(folder.name, measure(forms, program.inputs, iterations))


HEADS = ("wall us", "entry", "steps", "between", "sum / wall", "calls", "us a call", "marks / wall", "ns a mark")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds a folder a program")
    parser.add_argument("names", nargs="*", help="folders in it (all)")
    parser.add_argument("--emitters", default="legacy", help="the stack or flags (legacy)")
    parser.add_argument("--iterations", type=int, help="runs of each form of a program (about half a second)")
    parser.add_argument("--threads", type=int, default=1, help="threads that work at a kernel (1)")
    parser.add_argument("--within", type=float, default=0.05, help="the largest difference of sum and wall (0.05)")
    parser.add_argument("--overhead", type=float, default=0.03, help="the largest overhead of marks (0.03)")
    options = parser.parse_args(argv)
    set_threads(options.threads)
    names = options.names or sorted(p.name for p in options.folder.iterdir() if (p / "io.npz").exists())
    found = []
    for name in names:
        found.append(sums_of(options.folder / name, options.emitters, options.iterations))
        if sys.stderr.isatty():
            print(f"{len(found)} of {len(names)}", end="\r", file=sys.stderr, flush=True)
    rows = [sums.cells(options.within, options.overhead) for sums in found]
    print(text_table([left("program"), *map(right, HEADS), left("")], rows))
    off = sum(sums.is_off(options.within) for sums in found)
    large = [sums for sums in found if sums.mean >= LARGE]
    slow = sum(sums.is_slow(options.overhead) for sums in large)
    print(f"sum within {options.within:.0%} of wall: {len(found) - off} of {len(found)} programs")
    print(f"marks up to {options.overhead:.0%} where kernels take 5 us or more: {len(large) - slow} of {len(large)}")
    return 1 if off or slow else 0


if __name__ == "__main__":
    sys.exit(main())
