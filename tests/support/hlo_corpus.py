"""Tests parametrised by cases of the corpora: the small one's, and a sample of the shared ones where they are."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ...differential.corpus import Case
from ...formats.program import load_io, parameter_leaves, result_leaves
from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ..cases.evaluator_divergences import ELIDED, ENDLESS, SLOW
from .corpus import DEEP, shared_cases, small_cases


@dataclass(frozen=True)
class CorpusCase:
    """One row of a manifest. name: its id."""

    name: str
    path: Path
    io: Path

    @staticmethod
    def of(case: Case) -> CorpusCase:
        assert case.golden is not None, f"{case.id} has no inputs"
        return CorpusCase(case.id, Path(case.hlo), Path(case.golden))

    @property
    def text(self) -> str:
        return self.path.read_text()

    def module(self, optimized: bool = False) -> Module:
        """The module, or XLA's optimised form of it."""
        path = self.path.with_name("xla_optimized.hlo") if optimized else self.path
        return parse_module(path.read_text(), str(path))

    def inputs(self) -> list[np.ndarray]:
        module = self.module()
        return list(load_io(self.io, parameter_leaves(module), result_leaves(module))[0])


Where = Callable[[CorpusCase], bool]

MISFIT = "bdf3f1e09cb51b15"
"""A case whose golden does not fit its module (evaluator_divergences.py says how)."""


def whole(case: CorpusCase) -> bool:
    """Whether a module has values, ends, and fits its inputs: what is needed to compare it before and after a pass."""
    return case.name not in {*ELIDED, *ENDLESS, *SLOW, MISFIT}


def evaluable(case: CorpusCase) -> bool:
    """Whether the evaluator alone gives its results: nothing comes from a library or from outside."""
    text = case.text
    return whole(case) and not any(word in text for word in (" custom-call(", " infeed(", "{...}"))


def sample(
    suite: str, count: int, *, biggest: int = 10**9, seed: int = 0, where: Where = lambda case: True
) -> list[CorpusCase]:
    """`count` cases of the small corpus and of a shared suite each (all in a deep run) that a test can use.

    biggest: how many bytes the text of a module may have in a run that is not deep.
    """

    def draw(cases: Sequence[Case]) -> list[CorpusCase]:
        order = random.Random(seed).sample(range(len(cases)), len(cases))
        drawn = ((n, CorpusCase.of(cases[n])) for n in order)
        fit = ((n, c) for n, c in drawn if (DEEP or c.path.stat().st_size <= biggest) and where(c))
        return [c for _, c in sorted(islice(fit, None if DEEP else count), key=lambda pair: pair[0])]

    found = draw(small_cases(suite))
    assert found, f"no case of the small corpus is one that a test of {suite} can use"
    return found + draw(shared_cases(suite))


def each(suite: str, count: int, *, biggest: int = 10**9, seed: int = 0, where: Where = lambda case: True):
    """Parametrise a test by `case`."""
    cases = sample(suite, count, biggest=biggest, seed=seed, where=where)
    return pytest.mark.parametrize("case", cases, ids=[c.name for c in cases])
