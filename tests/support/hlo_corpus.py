"""The conformance corpus for tests of hlo/: modules and inputs, sampled with a fixed seed; skipped where absent."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ...formats.program import load_io, parameter_leaves, result_leaves
from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from .corpus import CORPUS

DEEP = bool(os.environ.get("TESTBED_DEEP"))


@dataclass(frozen=True)
class CorpusCase:
    """One row of a manifest."""

    suite: str
    name: str
    path: Path
    io: Path

    def module(self, optimized: bool = False) -> Module:
        """The module, or XLA's optimised form of it."""
        path = self.path.with_name("xla_optimized.hlo") if optimized else self.path
        return parse_module(path.read_text(), str(path))

    def inputs(self) -> list[np.ndarray]:
        module = self.module()
        return list(load_io(self.io, parameter_leaves(module), result_leaves(module))[0])


@cache
def manifest(suite: str) -> tuple[CorpusCase, ...]:
    folder = CORPUS / suite
    if not (folder / "manifest.jsonl").exists():
        return ()
    rows = map(json.loads, (folder / "manifest.jsonl").read_text().splitlines())
    return tuple(CorpusCase(suite, r["id"], folder / r["hlo"], folder / r["golden"]) for r in rows)


def sample(suite: str, count: int, *, biggest: int = 10**9, seed: int = 0) -> list[CorpusCase]:
    """`count` cases of a suite (all in a deep run) whose text has at most `biggest` bytes."""
    cases = [c for c in manifest(suite) if DEEP or c.path.stat().st_size <= biggest]
    return cases if DEEP else random.Random(seed).sample(cases, min(count, len(cases)))


def each(suite: str, count: int, *, biggest: int = 10**9, seed: int = 0):
    """Parametrise a test by `case`; one skipped case if the corpus is absent."""
    cases = sample(suite, count, biggest=biggest, seed=seed)
    if not cases:
        missing = pytest.param(
            None, marks=pytest.mark.skip(reason=f"no corpus at {CORPUS / suite} (set TESTBED_CORPUS)")
        )
        return pytest.mark.parametrize("case", [missing])
    return pytest.mark.parametrize("case", cases, ids=[c.name for c in cases])
