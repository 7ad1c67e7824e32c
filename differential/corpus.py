"""A conformance suite on disk: a folder with a manifest.jsonl, one case per line (form: docs/testing.md)."""

from __future__ import annotations

import fnmatch
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.documents import json_of
from ..formats.program import Program, load_io, parameter_leaves, read_bytes, read_text, result_leaves
from ..hlo.dtypes import FROM_NUMPY
from ..hlo.errors import InputError
from ..migration.programs import load_any
from ..migration.stacks import STACKS
from .comparison import Difference, compare

PARSE, LHLO, EXECUTIONS, EXACT = "parse", "lhlo", "executions", "exact"
ALL_STACKS = (*STACKS, PARSE, LHLO, EXECUTIONS, EXACT)


@dataclass(frozen=True)
class Case:
    """One line of a manifest. Paths are absolute. golden: None if the suite has no inputs.

    hlo: the module to run. It is StableHLO if the suite is read with source='stablehlo'.
    """

    id: str
    hlo: str
    golden: str | None
    one_op: str | None  # the opcode of a one-op case; it selects the default bounds
    atol: float | None
    rtol: float | None


def read_suite(folder: Path, source: str = "hlo") -> tuple[Case, ...]:
    """All cases of a suite that have the source. Raises InputError with file and line for a malformed manifest."""
    manifest = folder / "manifest.jsonl"
    if not manifest.exists():
        raise InputError(f"{manifest}: no such file", remedy="give the folder of a suite, with a manifest.jsonl")
    cases = []
    for number, line in enumerate(read_text(manifest).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json_of(line)
            if "hlo" in row and source not in row:
                continue
            cases.append(_case(folder, row, source))
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{manifest}:{number}:1: not a case: {error!r}", remedy="each line is an object with id and hlo"
            ) from None
    if not cases and source != "hlo":
        raise InputError(f"{manifest}: no case has a {source!r} path", remedy="run it with --source hlo")
    if not cases:
        raise InputError(f"{manifest}: holds no case", remedy="each line is an object with id and hlo")
    return tuple(cases)


def _case(folder: Path, row: dict[str, Any], source: str) -> Case:
    golden = row.get("golden")
    one_op = row["id"].split(".")[0] if row.get("suite") == "op_cases" else None
    return Case(
        row["id"],
        str((folder / row[source]).resolve()),
        str((folder / golden).resolve()) if golden else None,
        one_op,
        row.get("atol"),
        row.get("rtol"),
    )


def select(cases: Sequence[Case], pattern: str | None, sample: int | None, seed: int) -> tuple[Case, ...]:
    """The cases whose id matches a glob, in manifest order. sample: at most that many, picked at random by `seed`.

    Raises InputError if no case matches.
    """
    chosen = [c for c in cases if pattern is None or fnmatch.fnmatchcase(c.id, pattern)]
    if not chosen:
        raise InputError(f"no case matches {pattern!r}", remedy="the pattern is a glob over case ids, such as 'add.*'")
    if sample is not None and sample < len(chosen):
        picked = set(random.Random(seed).sample(range(len(chosen)), sample))
        chosen = [c for i, c in enumerate(chosen) if i in picked]
    return tuple(chosen)


def load_case(case: Case) -> Program:
    """Parse a case and read its inputs and expected results."""
    path = Path(case.hlo)
    loaded = load_any(read_bytes(path), str(path))
    module = loaded.module
    if case.golden is None:
        return Program(case.id, loaded.text, module, plan=loaded.plan)
    inputs, expected = load_io(Path(case.golden), parameter_leaves(module), result_leaves(module))
    return Program(case.id, loaded.text, module, inputs, expected, loaded.plan)


def compare_leaves(case: Case, results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> list[Difference]:
    """Compare each leaf by the rule of the corpus (differential/comparison.py)."""
    if len(results) != len(expected):
        raise InputError(f"{len(results)} result leaves where {len(expected)} are expected")
    return [
        compare(a, e, FROM_NUMPY[e.dtype], atol=case.atol, rtol=case.rtol, one_op=case.one_op)
        for a, e in zip(results, expected, strict=True)
    ]
