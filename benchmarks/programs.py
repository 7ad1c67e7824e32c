"""The conformance programs on legacy, MLIR and XLA:CPU, one core: compile time from an empty cache, and run time.

Run: .venv/bin/python -m testbed.benchmarks.programs [--corpus DIR] [--only NAME,NAME]   (needs ./testbed setup --xla)
Runs are interleaved and include the call from Python. Inputs are in place before a run. Our stacks write to reused
result arrays, XLA allocates its own. A ratio below 1 is faster than XLA.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STACKS = ("legacy", "mlir")


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """One program. Seconds by stack, including xla."""

    name: str
    compiling: dict[str, float]
    running: dict[str, float]

    def ratio(self, stack: str, what: str) -> float:
        return getattr(self, what)[stack] / getattr(self, what)["xla"]


def measure(folder: Path, rounds: int, seconds: float) -> ProgramTimes:
    """Measure a program of the corpus. Raises TestbedError if a stack does not support it."""
    import time

    from testbed.backends.base import CompileOptions
    from testbed.backends.xla import XlaExecutable
    from testbed.benchmarks.contestants import contestant
    from testbed.benchmarks.paired import race
    from testbed.formats.program import load_program
    from testbed.migration import Flags, compile_module

    program = load_program(str(folder))
    assert program.inputs is not None
    compiling = {}
    for stack in (*STACKS, "xla"):
        start = time.perf_counter()
        if stack == "xla":
            XlaExecutable(program.text)
        else:
            compile_module(program.module, Flags.parse(stack), CompileOptions(cache=None))
        compiling[stack] = time.perf_counter() - start
    runs = {s: contestant(s, program, program.inputs).run for s in (*STACKS, "xla")}
    times = race(runs, rounds=rounds, seconds=seconds)
    return ProgramTimes(folder.name, compiling, {name: t.median for name, t in times.items()})


def table(rows: Sequence[ProgramTimes]) -> str:
    """One line per program, then the geometric means."""
    import numpy as np

    head = " ".join(f"{s:>9}" for s in ("xla", "legacy", "mlir", "legacy/x", "mlir/x"))
    lines = [f"{'':<32}  compile ms{'':<40}  run µs", f"{'program':<32} {head}   {head}"]
    for row in rows:
        cells = []
        for what, scale in (("compiling", 1e3), ("running", 1e6)):
            values = getattr(row, what)
            cells.append(
                " ".join(f"{values[s] * scale:>9.1f}" for s in ("xla", *STACKS))
                + " "
                + " ".join(f"{row.ratio(s, what):>9.2f}" for s in STACKS)
            )
        lines.append(f"{row.name:<32} {'   '.join(cells)}")
    for what in ("compiling", "running"):
        for stack in STACKS:
            ratios = [row.ratio(stack, what) for row in rows]
            mean = float(np.exp(np.mean(np.log(ratios))))
            slower = ", ".join(f"{r.name} {r.ratio(stack, what):.1f}" for r in rows if r.ratio(stack, what) > 2)
            lines.append(f"{what}, {stack} / xla: geomean {mean:.3f}; above 2: {slower or 'none'}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    repository = Path(__file__).resolve().parents[1]
    parser.add_argument("--corpus", default=str(repository.parent / "shared/corpus"))
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.01, help="seconds per contestant and round")
    parser.add_argument("--cpu", type=int, default=0)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})  # before XLA starts its threads, so that they share the core
    wanted = [n for n in options.only.split(",") if n]
    folders = sorted(p.parent for p in Path(options.corpus, "jax_programs").glob("*/module.hlo"))
    folders = [f for f in folders if not wanted or f.name in wanted]
    if not folders:
        parser.error(f"no such programs in {options.corpus}/jax_programs")
    print(table([measure(folder, options.rounds, options.seconds) for folder in folders]))


if __name__ == "__main__":
    main()
