"""XLA's kernels of a program, version by version of jaxlib: which emitter made each, its time, its distance from the
evaluator. Rows are kernels that compute the same on arrays of equal shapes, in whichever versions XLA formed them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ..backends.base import CompileOptions
from ..backends.xla.versions import XlaVersion, dump_with, run_with
from ..evaluator.evaluator import evaluate
from ..formats.program import Program
from ..hlo.errors import TestbedError
from ..hlo.ir import Instruction
from ..migration.compile import compile_program
from ..migration.flags import Flags
from ..migration.xla_programs import XlaProgram, read_program
from ..xla_kernels.folder import one_module
from .contestants import aligned
from .kernel_loop import Repeat, kernel_loop
from .paired import race
from .xla_inputs import drawn_inputs
from .xla_kernels import bursts, count_of, farthest, key_of, opcode_of

RUNS = 20
"""Runs of a whole program by a version of jaxlib; the fastest counts."""


@dataclass(frozen=True)
class Cell:
    """A kernel of one version. seconds: of a call; None if it was not timed. refused: why it did not run, or ''."""

    emitter: str
    symbol: str
    seconds: float | None
    ulp: float
    refused: str = ""


@dataclass(frozen=True)
class Whole:
    """A program in the runtime of one version. seconds: of its fastest run, in a process of its own."""

    compile_seconds: float
    seconds: float
    ulp: float


@dataclass
class HistoryRow:
    """One computation. opcode: of the kernel. cells: by version."""

    name: str
    opcode: str
    cells: dict[str, Cell] = field(default_factory=dict)


@dataclass
class History:
    """A program's kernels. whole: the program as each version runs it. refused: what a version lacks, and why."""

    program: str
    rows: list[HistoryRow] = field(default_factory=list)
    whole: dict[str, Whole] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def history(program: Program, versions: Sequence[XlaVersion], rounds: int, seconds: float, seed: int = 0) -> History:
    """Compile a program with each version and measure its kernels side by side in this process."""
    found = History(program.name)
    inputs = list(program.inputs or drawn_inputs(program.module, seed))
    expected = evaluate(program.module, inputs)
    with TemporaryDirectory(prefix="testbed-history-") as folder:
        made: dict[str, XlaProgram] = {}
        for version in versions:
            place = Path(folder) / version.version
            try:
                ran = run_with(version, program.module, inputs, RUNS)
                found.whole[version.version] = Whole(ran.compile_seconds, ran.seconds, farthest(ran.results, expected))
                dump_with(version, program.module, place)
                made[version.version] = read_program(one_module(place))
                if not made[version.version].matches.found:
                    found.refused[version.version] = "XLA makes one function of the program, no kernels"
            except TestbedError as error:
                found.refused[version.version] = str(error.message)
        for sides in _by_key(made).values():
            found.rows.append(_row(sides, rounds, seconds, seed))
    return found


Sides = Mapping[str, tuple[XlaProgram, Instruction]]


def _by_key(made: Mapping[str, XlaProgram]) -> dict[Hashable, dict[str, tuple[XlaProgram, Instruction]]]:
    groups: dict[Hashable, dict[str, tuple[XlaProgram, Instruction]]] = {}
    for version, xla in made.items():
        for match in xla.matches.by_symbol.values():
            groups.setdefault(key_of(match.instruction), {}).setdefault(version, (xla, match.instruction))
    return groups


def _row(sides: Sides, rounds: int, seconds: float, seed: int) -> HistoryRow:
    """Measure one computation in all versions that have it, interleaved."""
    instruction = list(sides.values())[-1][1]
    row = HistoryRow(instruction.name, opcode_of(instruction))
    expected: Sequence[np.ndarray] | None = None
    runs: dict[str, tuple[Repeat, int]] = {}
    for version, (xla, i) in sides.items():
        alone, kernel = xla.alone(i), xla.matches.found[i].kernel
        inputs = [aligned(x) for x in drawn_inputs(alone.module, seed)]
        expected = expected if expected is not None else evaluate(alone.module, inputs)
        try:
            flags = Flags.parse("xla-old" if xla.generation == "old" else "xla-new")
            executable = compile_program(alone, flags, CompileOptions())
            far = farthest(executable.execute(inputs), expected)
        except TestbedError as error:
            row.cells[version] = Cell(kernel.emitter, kernel.symbol, None, 0.0, str(error.message))
            continue
        row.cells[version] = Cell(kernel.emitter, kernel.symbol, None, far)
        repeat = kernel_loop(executable, inputs)
        if repeat is not None:
            runs[version] = repeat, count_of(repeat, seconds)
    if runs:
        times = race({name: bursts(*run) for name, run in runs.items()}, rounds=rounds, seconds=seconds)
        for version, timing in times.items():
            cell = row.cells[version]
            row.cells[version] = Cell(cell.emitter, cell.symbol, timing.minimum / runs[version][1], cell.ulp)
    return row
