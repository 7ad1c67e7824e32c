"""Programs that failed, and kernels that differ from their shadows, as findings (docs/debugging.md) in a folder."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.host.shadows import Report
from ..formats.text.printer import print_module
from ..hlo.errors import TestbedError
from ..hlo.ir import Module
from .settings import settings

MOST_FAILURES = 20
"""Findings of failures that a process writes: a loop that fails each time says the same."""

SHADOWS: dict[str, Any] = {"kernels": 0, "differing": {}, "findings": []}
"""Of all runs of this process: kernels that ran on both stacks; calls that differ, by kernel; folders of findings."""

_written: set[str] = set()


def keep_failure(folder: Path, module: Module, inputs: Sequence[np.ndarray] | None, error: BaseException) -> None:
    """Write a program that failed, with its inputs or with drawn ones. Never raises: the error itself matters more."""
    from ..differential.finding import case_of, write_finding
    from ..formats.program import Program
    from ..hlo.records import replace

    text = print_module(module)
    sentence = f"{type(error).__name__} in a process of JAX: {error}"
    name = f"{module.name}-{hashlib.sha256((text + str(error)).encode()).hexdigest()[:12]}"
    if name in _written or len(_written) >= MOST_FAILURES:
        return
    _written.add(name)
    try:
        given = None if inputs is None else tuple(np.array(value) for value in inputs)
        case = case_of(Program(module.name, text, module, inputs=given))
        place = write_finding(folder / name, replace(case, sentence=sentence), stages={})
    except (TestbedError, OSError, ValueError) as failed:
        print(f"testbed: no finding of {module.name} was written: {failed}", file=sys.stderr)
    else:
        print(f"testbed: {module.name} failed; finding: {place}", file=sys.stderr)


def note_shadows(folder: Path | None, report: Report) -> None:
    """Take what a run found. With a folder, kernels that differ beyond their bounds become findings there."""
    SHADOWS["kernels"] += len(report.shadowed)
    for kernel, calls in report.calls.items():
        SHADOWS["differing"][kernel] = SHADOWS["differing"].get(kernel, 0) + calls
    if folder is None:
        return
    from ..differential.shadow import write_mismatch
    from ..migration.choose import pair_of

    for mismatch in report.mismatches:
        found, place = write_mismatch(folder, mismatch, pair_of(settings().flags, mismatch.kernel))
        if place is not None and str(place) not in SHADOWS["findings"]:
            SHADOWS["findings"].append(str(place))
            print(f"testbed: {mismatch.kernel.name}: {found.sentence}; finding: {place}", file=sys.stderr)
