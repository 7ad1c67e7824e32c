"""The gate of a row of the ledger: differential cases, run time, compile time and memory against parity."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..benchmarks.paired import Ratio
from ..benchmarks.parity_race import SETTINGS, race, tie
from ..benchmarks.rounds import geometric_mean
from ..benchmarks.suite import machine
from ..codegen.threads import on_threads
from ..differential.filled_inputs import filled_inputs
from ..differential.permitted import BUDGET
from ..differential.row_check import check_row
from ..differential.row_programs import workloads_of
from ..differential.same_code import same_code
from ..formats.program import Program
from ..formats.text.parser import parse_module
from ..hlo.errors import UnsupportedError
from ..hlo.remedies import TESTS
from ..migration.ledger import Evidence
from ..migration.ledger_file import RECORDS
from ..migration.ledger_states import FILE, USUAL
from ..migration.names import XLA_STACKS
from ..migration.parity import PARITY, Parity, Speed, shortfalls
from .toggles_checks import DRAWN, Check, Orders, run_checks

if TYPE_CHECKING:
    from ..benchmarks.rounds import Block, Settings
    from ..migration.ledger import Row


UNCOMMITTED, UNKNOWN = "uncommitted", "unknown"


def suites() -> list[Path]:
    """The suites that a gate runs besides its own programs: that of the checkout."""
    return [TESTS / "corpus"] if (TESTS / "corpus" / "manifest.jsonl").is_file() else []


def run_gate(
    row: Row,
    cases: int,
    folders: Sequence[Path],
    parity: Parity = PARITY,
    on_case: Callable[[], None] = lambda: None,
    settings: Settings | None = None,
    stacks: tuple[str, str] = USUAL,
    patience: float = BUDGET,
    checks: Sequence[Check] = (),
    drawn: int = DRAWN,
) -> tuple[Evidence, list[Speed]]:
    """The evidence for a row, with why it is refused, if it is; and the timed programs. settings: of the timing.
    patience: seconds of a case to find out what else the float rules permit. checks: what else is asked; drawn: cases.

    Machine code that is the same on both stacks proves that results and run time are.
    """
    compared = check_row(row.unit, row.dtypes, cases, folders, on_case, stacks, patience)
    with on_threads(1):
        races, ties = _races(row, settings or SETTINGS, stacks)
    speeds = [speed for speed, _ in races]
    mean = geometric_mean([blocks for _, blocks in races]) if races else Ratio(math.inf, math.inf, math.inf)
    compiling = _mean([s.compile_ratio for s in speeds])
    ran, more = run_checks(checks, row, stacks, Orders(drawn, patience))
    lacking = shortfalls(compared, speeds, (mean.median, mean.low, mean.high), compiling, parity)
    evidence = Evidence(
        kind="proved" if compared.same == compared.cases and ties == len(races) else "sampled",
        cases=compared.cases,
        seeds=compared.seeds,
        worst_ulp=compared.worst_ulp,
        workloads=len(speeds),
        ratio=round(mean.median, 3),
        low=round(mean.low, 3),
        high=round(mean.high, 3),
        compile_ms=round(_mean([s.compile_ms for s in speeds]), 1),
        compile_ratio=round(compiling, 2),
        memory_ratio=round(max((s.memory_ratio for s in speeds), default=math.inf), 2),
        date=datetime.date.today(),
        versions=versions(stacks),
        commit=commit(),
        refused="; ".join([*lacking, *more]),
        checks=", ".join(ran),
    )
    return evidence, speeds


def _races(row: Row, settings: Settings, stacks: tuple[str, str]) -> tuple[list[tuple[Speed, Sequence[Block]]], int]:
    """(The row's timed programs that both stacks compile, how many of them have the same machine code on both)."""
    found, ties = [], 0
    for number, text in enumerate(workloads_of(row.unit, row.dtypes)):
        module = parse_module(text, f"{row.name} workload {number}")
        given = module.entry.parameters[0].shape
        name = f"{module.entry.root.opcode.value} of {given.dtype.value}[{','.join(map(str, given.dims))}]"
        try:
            alike = same_code(module, stacks)
            inputs = filled_inputs(module, "random", number)
            found.append((tie if alike else race)(Program(name, text, module), inputs, settings, stacks))
            ties += alike
        except UnsupportedError:
            continue
    return found, ties


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; infinite for no values."""
    return statistics.geometric_mean(values) if values else math.inf


def versions(stacks: tuple[str, str] = USUAL) -> str:
    """The versions that decide what code is made."""
    ours = f"testbed {__version__}, llvmlite {version('llvmlite')}, MLIR {version('xtc-mlir-python-bindings')}"
    return f"{ours}, jaxlib {version('jaxlib')}" if set(stacks) & set(XLA_STACKS) else ours


def commit() -> str:
    """The commit whose files the checkout has, but for ledgers; UNCOMMITTED if it is none, UNKNOWN without git."""
    found = machine.commit("--", ".", *(f":!migration/{name}" for name in (FILE.name, *RECORDS)))
    return UNCOMMITTED if found.endswith("+") else found or UNKNOWN
