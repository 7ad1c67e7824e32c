"""XLA:CPU's own migration from its old to its new emitters, measured on its kernels: docs/xla-migration.md.

Run: .venv/bin/python -m testbed.benchmarks.xla_migration FOLDER… [--kernels N] [--seed N] [--output FILE] [--json FILE]
A FOLDER is a program or holds programs. jaxlib, which needs both generations (0.10.2), compiles each; N kernels of each
emitter, drawn with the seed, run alone on XLA's code and on our stacks; all programs run whole. One processor.
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
    text = report(kernels, programs, f"{options.kernels} kernels of each emitter, seed {options.seed}")
    if options.json is not None:
        rows = {"kernels": [_plain(row) for row in kernels], "programs": [asdict(row) for row in programs]}
        write_text(options.json, json.dumps(rows, indent=1) + "\n")
    if options.output is None:
        print(text)
    else:
        write_text(options.output, text)
    return 0


def _plain(row: KernelRow) -> dict[str, object]:
    return {name: value for name, value in vars(row).items() if name != "key"}


def _measure(options: argparse.Namespace) -> tuple[list[KernelRow], list[ProgramRow]]:
    start_client()
    made: list[tuple[str, XlaProgram]] = []
    programs = []
    for program in programs_in(options.folders):
        of = {g: made_by_jaxlib(program.text_for_xla, g) for g in GENERATIONS}
        made += [(program.name, xla) for xla in of.values()]
        row = measure_program(program, options.rounds, options.seconds)
        row.kernels = {g: (len(x.kernels.kernels), len(x.matches.by_symbol)) for g, x in of.items()}
        programs.append(row)
        print(f"{program.name}: {len(row.seconds)} stacks", file=sys.stderr, flush=True)
    kernels = []
    for name, xla, i in chosen(made, options.kernels, np.random.default_rng(options.seed)):
        own = f"xla-{xla.generation}" if xla.generation else "xla-new"
        stacks = (own, f"{own}-ir", *OURS)
        kernels.append(measure_kernel(xla, i, name, stacks, options.rounds, options.seconds, options.seed))
    return kernels, programs


if __name__ == "__main__":
    raise SystemExit(main())
