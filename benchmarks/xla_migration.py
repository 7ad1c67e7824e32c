"""XLA:CPU's own migration from its old to its new emitters, measured on its kernels: docs/xla-migration.md.

Run: .venv/bin/python -m testbed.benchmarks.xla_migration FOLDER… [--kernels N] [--rows FILE] [--output FILE]
A FOLDER is a program or holds programs. jaxlib, which needs both generations (0.10.2), compiles each; N kernels of each
emitter, drawn with the seed, run alone on XLA's code and on our stacks; all programs run whole. One processor. With
--rows, a run that was cut short goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..backends.base import CompileOptions
from ..backends.xla import XlaExecutable, start_client
from ..backends.xla.dump import dump_flags
from ..formats.program import IN_FOLDER, Program
from ..formats.whole_files import write_text
from ..hlo.errors import TestbedError
from ..hlo.ir import Instruction
from ..migration.programs import load_program
from ..migration.xla_programs import XlaProgram, made_by_jaxlib
from .contestants import aligned
from .paired import race
from .xla_kernels import OURS, KernelRow, ProgramRow, farthest, key_of, measure_kernel, native
from .xla_report import report
from .xla_rows import Rows, plain_of

GENERATIONS = ("old", "new")


def measure_program(program: Program, rounds: int, seconds: float) -> ProgramRow:
    """Run a whole program on jaxlib's runtime with both generations, on XLA's kernels in ours, and on our stacks."""
    row = ProgramRow(program.name)
    inputs = [aligned(x) for x in program.inputs or ()]
    runs: dict[str, Callable[[], object]] = {}
    expected: Sequence[np.ndarray] = ()
    for generation in reversed(GENERATIONS):
        flags = tuple(f for f in dump_flags(generation, Path()) if not f[0].startswith("xla_dump"))
        start = time.perf_counter()
        executable = XlaExecutable(program.text_for_xla, flags)
        row.compile_seconds[generation] = time.perf_counter() - start
        arrays = executable.put(inputs)
        results = [np.asarray(x) for x in executable.run(arrays)]
        expected = expected or results
        row.ulps[f"jaxlib-{generation}"] = farthest(results, expected)
        runs[f"jaxlib-{generation}"] = _call(executable, arrays)
    for stack in ("xla-old", "xla-new", *OURS):
        try:
            runs[stack], found = native(program, stack, inputs, CompileOptions())
            row.ulps[stack] = farthest(found, expected)
        except TestbedError as error:
            row.refused[stack] = str(error)
    row.seconds = {name: timing.minimum for name, timing in race(runs, rounds=rounds, seconds=seconds).items()}
    return row


def _call(executable: XlaExecutable, arrays: Sequence[object]) -> Callable[[], object]:
    return lambda: executable.run(arrays)


def chosen(
    made: Sequence[tuple[str, XlaProgram]], count: int, random: np.random.Generator
) -> list[tuple[str, XlaProgram, Instruction]]:
    """Kernels by emitter: `count` of each, drawn, and the kernels of the other generation that compute the same."""
    groups: dict[str, list[tuple[str, XlaProgram, Instruction]]] = {}
    by_key: dict[object, list[tuple[str, XlaProgram, Instruction]]] = {}
    for name, xla in made:
        for match in xla.matches.by_symbol.values():
            one = (name, xla, match.instruction)
            groups.setdefault(f"{xla.generation}:{match.kernel.emitter}", []).append(one)
            by_key.setdefault((name, key_of(match.instruction)), []).append(one)
    picked: dict[tuple[int, str], tuple[str, XlaProgram, Instruction]] = {}
    for group in groups.values():
        for number in random.permutation(len(group))[:count]:
            name, _, i = group[number]
            for one in by_key[name, key_of(i)][:2]:
                picked[id(one[1]), one[2].name] = one
    return list(picked.values())


def programs_in(paths: Sequence[Path]) -> list[Program]:
    """The programs of folders that come with inputs."""

    def holds(path: Path) -> bool:
        return any((path / name).is_file() for name in IN_FOLDER)

    folders = [p for path in paths for p in ([path] if holds(path) else sorted(path.iterdir()))]
    return [load_program(str(p)) for p in folders if p.is_dir() and holds(p)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--kernels", type=int, default=12, help="kernels of each emitter")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.003, help="seconds of a stack in a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keep each row here at once, and go on from it")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report there instead of printing it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all rows")
    options = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        kernels, programs = _measure(options)
    except TestbedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = f"the same command goes on from {options.rows}" if options.rows else "with --rows, a run can go on"
        print(f"interrupted; {kept}", file=sys.stderr)
        return 130
    text = report(kernels, programs, f"{options.kernels} kernels of each emitter, seed {options.seed}")
    if options.json is not None:
        rows = {"kernels": [plain_of(row) for row in kernels], "programs": [asdict(row) for row in programs]}
        write_text(options.json, json.dumps(rows, indent=1) + "\n")
    if options.output is None:
        print(text)
    else:
        write_text(options.output, text)
    return 0


def _measure(options: argparse.Namespace) -> tuple[list[KernelRow], list[ProgramRow]]:
    settings = {name: getattr(options, name) for name in ("kernels", "rounds", "seconds", "seed")}
    rows = Rows(options.rows, settings)
    start_client()
    made: list[tuple[str, XlaProgram]] = []
    programs = programs_in(options.folders)
    left = Remaining(sum(program.name not in rows.programs for program in programs), "programs")
    for program in programs:
        of = {g: made_by_jaxlib(program.text_for_xla, g) for g in GENERATIONS}
        made += [(program.name, xla) for xla in of.values()]
        if program.name not in rows.programs:
            row = measure_program(program, options.rounds, options.seconds)
            row.kernels = {g: (len(x.kernels.kernels), len(x.matches.by_symbol)) for g, x in of.items()}
            rows.add_program(row)
            left.done(program.name)
    kernels = []
    picked = {
        (name, xla.generation, xla.matches.found[i].kernel.symbol): (xla, i)
        for name, xla, i in chosen(made, options.kernels, np.random.default_rng(options.seed))
    }
    left = Remaining(len(picked.keys() - rows.kernels.keys()), "kernels")
    for name, (xla, i) in picked.items():
        kernel = rows.kernel(name, key_of(i))
        if kernel is None:
            own = f"xla-{xla.generation}" if xla.generation else "xla-new"
            stacks = (own, f"{own}-ir", *OURS)
            kernel = measure_kernel(xla, i, name[0], stacks, options.rounds, options.seconds, options.seed)
            rows.add_kernel(kernel)
            left.done(" ".join(name))
        kernels.append(kernel)
    return kernels, [rows.programs[program.name] for program in programs]


class Remaining:
    """Says on stderr how far a run is, and how long the rest takes at the pace so far, twenty times and at the end."""

    def __init__(self, total: int, what: str):
        self.total, self.what, self.count, self.start = total, what, 0, time.perf_counter()

    def done(self, name: str) -> None:
        self.count += 1
        if self.count % max(self.total // 20, 1) == 0 or self.count == self.total:
            left = (time.perf_counter() - self.start) * (self.total - self.count) / self.count
            text = f"{self.count} of {self.total} {self.what} to measure, {left / 60:.1f} minutes left ({name})"
            print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
