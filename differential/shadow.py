"""What shadow kernels found: by how much they may differ, and pairs that differ as findings on disk."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np

from ..backends.host.shadows import Mismatch
from ..hlo.ir import Module
from ..migration.ledger_states import USUAL
from ..planning.plan import KernelRequest
from ..planning.plan_text import standalone
from .bounds import bounds_of
from .finding import finding_of, write_finding
from .outcome import Outcome, OutcomeKind, Run, RunKind, concluded, run_stack

MOST = 1 << 40
"""The largest tolerance of a comparison in the program."""


def tolerances(kernel: KernelRequest) -> list[tuple[int, int]]:
    """The bounds of the kernel's own module, rounded up: of the results, in their order."""
    bounds = iter(bounds_of(standalone(kernel.instruction, "kernel")))
    return [
        (min(math.ceil(b.ulp), MOST), min(math.ceil(b.scaled), MOST))
        for shape in kernel.result_shapes
        for b in ([next(bounds)] if shape.is_array else [])
    ]


def judged(mismatch: Mismatch, stacks: tuple[str, str] = USUAL) -> tuple[Module, list[np.ndarray], Outcome]:
    """The kernel alone on what it read, and the outcome of both results beside the evaluator's. stacks: of these."""
    module = standalone(mismatch.kernel.instruction, mismatch.kernel.name)
    given = dict(zip(mismatch.kernel.instruction.operands, mismatch.operands, strict=True))
    inputs = list(given.values())
    runs = {
        "evaluator": run_stack(module, inputs, "evaluator"),
        stacks[0]: Run(RunKind.RAN, mismatch.ours),
        stacks[1]: Run(RunKind.RAN, mismatch.theirs),
    }
    return module, inputs, concluded(module, inputs, runs)


def write_mismatch(folder: Path, mismatch: Mismatch, stacks: tuple[str, str] = USUAL) -> tuple[Outcome, Path | None]:
    """Judge a mismatch. If it is one, or may be one, write it as a finding below the folder, unless it
    is there already."""
    module, inputs, found = judged(mismatch, stacks)
    if not found.is_finding and found.kind is not OutcomeKind.UNDECIDED:
        return found, None
    data = b"".join(np.ascontiguousarray(x).tobytes() for x in (*inputs, *mismatch.ours, *mismatch.theirs))
    place = folder / f"{mismatch.kernel.name}-{hashlib.sha256(data).hexdigest()[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        write_finding(place, finding_of(module, inputs, found))
    return found, place
