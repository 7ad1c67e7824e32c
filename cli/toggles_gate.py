"""The gate of a row of the ledger: differential cases, run time, compile time and memory against parity."""

from __future__ import annotations

import datetime
import math
import subprocess
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import __version__
from ..benchmarks.parity_race import geometric_mean, interval, run_rounds, start_race
from ..codegen.threads import on_threads
from ..differential.filled_inputs import filled_inputs
from ..differential.row_check import check_row
from ..differential.row_programs import workloads_of
from ..formats.text.parser import parse_module
from ..hlo.errors import UnsupportedError
from ..hlo.remedies import TESTS
from ..migration.ledger import Evidence
from ..migration.parity import PARITY, Parity, Speed, shortfalls

if TYPE_CHECKING:
    from ..benchmarks.parity_race import Race
    from ..migration.ledger import Row

ROUNDS, MOST_ROUNDS = 15, 60
"""Rounds of timing at first, and at most: as long as the interval of the mean includes the limit."""


def suites() -> list[Path]:
    """The suites that a gate runs besides its own programs: that of the checkout."""
    return [TESTS / "corpus"] if (TESTS / "corpus" / "manifest.jsonl").is_file() else []


def run_gate(
    row: Row, cases: int, folders: Sequence[Path], parity: Parity = PARITY, on_case: Callable[[], None] = lambda: None
) -> tuple[Evidence, list[Speed]]:
    """The evidence for a row, with why it is refused, if it is; and the timed programs."""
    compared = check_row(row.unit, row.dtypes, cases, folders, on_case)
    with on_threads(1):
        races = _races(row)
        rounds = _rounds([race for _, race in races], parity)
    speeds = [
        Speed(name, *interval(ratios), race.compile_ms, race.compile_ratio, race.memory_ratio)
        for (name, race), ratios in zip(races, rounds, strict=True)
    ]
    mean = geometric_mean(rounds) if rounds else (math.inf,) * 3
    compiling = _mean([s.compile_ratio for s in speeds])
    refused = "; ".join(shortfalls(compared, speeds, mean, compiling, parity))
    evidence = Evidence(
        kind="sampled",
        cases=compared.cases,
        seeds=compared.seeds,
        worst_ulp=compared.worst_ulp,
        workloads=len(speeds),
        ratio=round(mean[0], 3),
        low=round(mean[1], 3),
        high=round(mean[2], 3),
        compile_ms=round(_mean([s.compile_ms for s in speeds]), 1),
        compile_ratio=round(compiling, 2),
        memory_ratio=round(max((s.memory_ratio for s in speeds), default=math.inf), 2),
        date=datetime.date.today(),
        versions=versions(),
        commit=commit(),
        refused=refused,
    )
    return evidence, speeds


def _races(row: Row) -> list[tuple[str, Race]]:
    """The row's timed programs that both stacks compile, with their names."""
    found = []
    for number, text in enumerate(workloads_of(row.unit, row.dtypes)):
        module = parse_module(text, f"{row.name} workload {number}")
        try:
            race = start_race(module, filled_inputs(module, "random", number))
        except UnsupportedError:
            continue
        given = module.entry.parameters[0].shape
        name = f"{module.entry.root.opcode.value} of {given.dtype.value}[{','.join(map(str, given.dims))}]"
        found.append((name, race))
    return found


def _rounds(races: Sequence[Race], parity: Parity) -> list[tuple[float, ...]]:
    """The ratios of each race's rounds. Rounds are added while it is open on which side of the limit the mean is."""
    rounds = run_rounds(races, ROUNDS)
    while races and len(rounds[0]) < MOST_ROUNDS:
        _, low, high = geometric_mean(rounds)
        if not low <= parity.mean <= high:
            break
        rounds = [a + b for a, b in zip(rounds, run_rounds(races, ROUNDS, seed=len(rounds[0])), strict=True)]
    return rounds


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; infinite for no values."""
    return float(np.exp(np.mean(np.log(values)))) if values else math.inf


def versions() -> str:
    """The versions that decide what code is made."""
    return f"testbed {__version__}, llvmlite {version('llvmlite')}, MLIR {version('xtc-mlir-python-bindings')}"


def commit() -> str:
    """The commit of the checkout, with + if anything but the ledger is changed; unknown where there is none."""
    head = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--", ".", ":!migration/ledger.toml")
    return f"{head}{'+' if changed else ''}" if head else "unknown"


def _git(*words: str) -> str:
    """What git prints; nothing where it fails or is not there."""
    try:
        done = subprocess.run(["git", *words], cwd=TESTS.parent, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
