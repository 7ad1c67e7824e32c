"""What ranges and threads cost and gain in the programs of the suite: compile time, and run time on one thread, of
kernels that take ranges over those with constant bounds; run time on several threads; whether all give equal bits.

Run: .venv/bin/python -m testbed.benchmarks.thread_cost [WORKLOAD…] [--stacks legacy,mlir] [--threads 2] [--rounds 9]
     [--compiles 3]
Contestants take turns; ratios are of minima: of processor time, which a busy machine disturbs little, for compiling
without a cache and for one thread; of elapsed time for several. "split" is the number of kernels that take ranges, of
all; "rest" the estimated share of the run time in kernels that do not.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..backends.base import CompileOptions
from ..backends.host.estimate import seconds_by_kernel
from ..backends.host.executable import HostExecutable
from ..codegen.options import EmitOptions
from ..codegen.threads import set_threads, threads
from ..formats.program import Program
from ..formats.text.parser import parse_module
from ..migration.compile import compile_program
from ..migration.flags import Flags
from ..thunks import KernelThunk
from .paired import race
from .suite.child import load
from .suite.workloads import WORKLOADS
from .tables import left, right, text_table


@dataclass(frozen=True)
class Row:
    """Ratios to kernels with constant bounds on one thread. milliseconds: of these."""

    name: str
    split: str
    rest: float
    compile: float
    milliseconds: float
    one: float
    several: float
    equal: bool

    def cells(self) -> tuple[str, ...]:
        ratios = [f"{x:.2f}" for x in (self.rest, self.compile)] + [f"{self.milliseconds:.3f}"]
        return (self.name, self.split, *ratios, f"{self.one:.2f}", f"{self.several:.2f}", "yes" if self.equal else "NO")


def measure(workload: str, stack: str, count: int, rounds: int, compiles: int) -> Row:
    """One program on one stack. count: the number of threads."""
    _, text, inputs = load(workload)
    program = Program(workload, text, parse_module(text, workload))
    made: dict[bool, HostExecutable] = {}
    spent = {False: math.inf, True: math.inf}
    for turn in range(2 * compiles):
        ranges = bool(turn % 2)
        options = CompileOptions(emit=replace(EmitOptions.host(), ranges=ranges), cache=None)
        start = time.process_time()
        made[ranges] = compile_program(program, Flags.parse(stack), options)
        spent[ranges] = min(spent[ranges], time.process_time() - start)
    constant, ranged = _run(made[False], inputs, 1), _run(made[True], inputs, 1)
    several = _run(made[True], inputs, count)
    results = [[x.tobytes() for x in run()] for run in (constant, ranged, several)]
    equal = all(other == results[0] for other in results[1:])
    timings = race({"constant": constant, "several": several}, rounds=rounds, seconds=0.02)
    base, more = timings["constant"].minimum, timings["several"].minimum
    alone = race({"constant": constant, "ranged": ranged}, rounds=rounds, seconds=0.005, clock=time.thread_time)
    split, kernels, rest = _split(made[True])
    name = f"{workload} {stack}"
    one = alone["ranged"].minimum / alone["constant"].minimum
    row = (spent[True] / spent[False], base * 1e3, one, more / base, equal)
    return Row(name, f"{split}/{kernels}", rest, *row)


def _run(executable: HostExecutable, inputs: Sequence[Any], count: int) -> Callable[[], Sequence[Any]]:
    outputs = executable.execute(inputs)

    def run() -> Sequence[Any]:
        if threads() != count:
            set_threads(count)
        return executable.execute(inputs, outputs=outputs)

    return run


def _split(executable: HostExecutable) -> tuple[int, int, float]:
    """(kernels that take ranges, all kernels, the share of the estimated time in others)."""
    kernels = [t for t in executable.thunks.walk() if isinstance(t, KernelThunk)]
    assert executable.plan is not None
    seconds = seconds_by_kernel(executable.plan)
    total = sum(seconds.get(t.symbol, 0.0) for t in kernels)
    others = sum(seconds.get(t.symbol, 0.0) for t in kernels if t.split is None)
    return sum(t.split is not None for t in kernels), len(kernels), others / total if total else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="names of the suite's programs (all)")
    parser.add_argument("--stacks", type=lambda text: text.split(","), default=["legacy", "mlir"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compiles", type=int, default=3)
    options = parser.parse_args()
    unknown = set(options.workloads) - WORKLOADS.keys()
    if unknown:
        parser.error(f"unknown workloads {', '.join(sorted(unknown))}; choose from {', '.join(WORKLOADS)}")
    numbers = options.threads, options.rounds, options.compiles
    rows = []
    for name in options.workloads or WORKLOADS:
        for stack in options.stacks:
            rows.append(measure(name, stack, *numbers))
            print(*rows[-1].cells(), flush=True)
    columns = [left(""), right("split"), right("rest"), right("compile"), right("ms"), right("1 thread")]
    columns += [right(f"{options.threads} threads"), left("equal")]
    print(text_table(columns, [row.cells() for row in rows]))
    for field in ("compile", "one", "several"):
        mean = math.exp(sum(math.log(getattr(row, field)) for row in rows) / len(rows))
        print(f"{field}: geometric mean {mean:.3f}, most {max(getattr(row, field) for row in rows):.2f}")


if __name__ == "__main__":
    main()
