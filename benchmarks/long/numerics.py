"""Errors of long sums, products and windows: legacy, MLIR and XLA:CPU against f64 (c128 for complex numbers).

Run: .venv/bin/python -m testbed.benchmarks.long.numerics [--max-log2 27] [--stacks legacy] [--only TEXT] [--json FILE]
An error is max |found − exact| / |exact| over the elements of a result. It may be 2 × max(XLA's error, 1e-7). Without
jaxlib (./testbed setup --xla), XLA's error counts as the rounding of the result to its dtype, and programs that fix the
order of their steps are not judged. Exit status: 1 if an error is above its limit, 2 for bad arguments.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from ...backends.xla import REMEDY, installed
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...formats.whole_files import write_whole
from ...hlo.errors import TestbedError
from ...migration.stacks import STACKS, parse_stacks, prepare
from .cases import Case, LongProgram
from .programs import PROGRAMS

SMALLEST, TIMES = 1e-7, 2
"""An error may be TIMES × max(XLA's error, SMALLEST)."""


@dataclass(frozen=True, slots=True)
class Line:
    """One program of one size. errors: by stack, with xla if it was measured. limit: None if it is not judged.

    failures: what a stack or XLA said instead of a result.
    """

    program: str
    log2: int
    errors: dict[str, float]
    limit: float | None
    failures: dict[str, str]

    @property
    def above(self) -> list[str]:
        """The stacks whose error is above the limit, or that have none."""
        ours = [s for s in (*self.errors, *self.failures) if s != "xla"]
        return [s for s in ours if s in self.failures or (self.limit is not None and not self.errors[s] <= self.limit)]


def error_of(found: np.ndarray, exact: np.ndarray, whole: bool) -> float:
    """The largest relative error; inf if a value is not finite where the exact one is. whole: relative to the largest
    magnitude of `exact`.
    """
    found = np.asarray(found).reshape(exact.shape)
    wide = found.astype(np.complex128 if exact.dtype.kind == "c" else np.float64)
    scale = np.abs(exact).max() if whole else np.maximum(np.abs(exact), np.finfo(np.float64).tiny)
    worst = float(np.max(np.abs(wide - exact) / scale))
    return worst if np.isfinite(worst) else float("inf")


def limit_of(program: LongProgram, xla: float | None, dtype: np.dtype) -> float | None:
    """The largest error that is allowed. xla: XLA's, None if not measured."""
    if xla is None:
        if program.in_order:
            return None
        xla = float(ml_dtypes.finfo(dtype).eps) / 2
    return TIMES * max(xla, SMALLEST)


def measure(program: LongProgram, log2: int, stacks: Sequence[str], seed: int) -> Line:
    """Run one program on the stacks, one after the other."""
    case = program.make(1 << log2, np.random.default_rng([seed, log2, zlib.crc32(program.name.encode())]))
    exact = np.asarray(case.exact())
    errors, failures = {}, {}
    dtype = np.dtype(np.float32)
    for stack in stacks:
        try:
            found = _result(case, stack)
        except TestbedError as error:
            failures[stack] = str(error).splitlines()[0]
            continue
        errors[stack], dtype = error_of(found, exact, case.whole), found.dtype
        del found
    return Line(program.name, log2, errors, limit_of(program, errors.get("xla"), dtype), failures)


def _result(case: Case, stack: str) -> np.ndarray:
    program = Program("long", case.text, parse_module(case.text, "long.hlo"))
    (found,) = prepare(stack, program).run(case.inputs)
    return found


def row(line: Line, stacks: Sequence[str]) -> str:
    """The line as text, one column for each stack, the limit and the verdict."""
    cells = [f"{line.errors[s]:9.1e}" if s in line.errors else f"{'failed':>9}" for s in stacks]
    limit = f"{line.limit:9.1e}" if line.limit is not None else f"{'–':>9}"
    verdict = "above: " + ", ".join(line.above) if line.above else "ok" if line.limit is not None else "not judged"
    said = "".join(f"  [{stack}: {text}]" for stack, text in line.failures.items())
    return f"{line.program:<34} {line.log2:>4} {' '.join(cells)} {limit}  {verdict}{said}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--min-log2", type=int, default=10, help="log2 of the smallest size, at least 10")
    parser.add_argument("--max-log2", type=int, default=18, help="log2 of the largest size, at most 27")
    parser.add_argument("--step", type=int, default=4, help="step of log2 between sizes; the largest is always run")
    parser.add_argument("--stacks", default="legacy,mlir")
    parser.add_argument("--no-xla", action="store_true", help="do not run XLA:CPU")
    parser.add_argument("--only", default="", help="a part of the programs' names; several separated by commas")
    parser.add_argument("--json", type=Path, help="also write all lines to this file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if not 10 <= options.min_log2 <= options.max_log2 <= 27 or options.step < 1:
        parser.error("sizes are 10 ≤ --min-log2 ≤ --max-log2 ≤ 27, with --step ≥ 1")
    try:
        stacks = list(parse_stacks(options.stacks, [s for s in STACKS if s != "xla"]))
    except TestbedError as error:
        parser.error(str(error))
    wanted = [part for part in options.only.split(",") if part]
    programs = [p for p in PROGRAMS.values() if not wanted or any(part in p.name for part in wanted)]
    if not programs:
        parser.error(f"no program has {options.only!r} in its name; there are: {', '.join(PROGRAMS)}")
    if options.no_xla or not installed():
        print("without XLA's errors" + ("" if options.no_xla else f": {REMEDY}"))
    else:
        stacks.append("xla")
    lines = _measure_all(programs, stacks, options)
    if options.json is not None:
        data = json.dumps([{**asdict(line), "above": line.above} for line in lines], indent=1, ensure_ascii=False)
        write_whole(options.json, lambda file: file.write(f"{data}\n".encode()))
    above = [line for line in lines if line.above]
    print(f"{len({line.program for line in lines})} programs, {len(lines)} lines, {len(above)} above the limit")
    return 1 if above else 0


def _measure_all(programs: Sequence[LongProgram], stacks: Sequence[str], options: argparse.Namespace) -> list[Line]:
    """Measure and print line by line."""
    heads = " ".join(f"{stack:>9}" for stack in (*stacks, "limit"))
    print(f"{'program':<34} {'log2':>4} {heads}  verdict", flush=True)
    sizes = [*range(options.min_log2, options.max_log2, options.step), options.max_log2]
    lines = []
    for program in programs:
        for log2 in dict.fromkeys(min(size, program.most) for size in sizes):
            lines.append(measure(program, log2, stacks, options.seed))
            print(row(lines[-1], stacks), flush=True)
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
