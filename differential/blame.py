"""Whom to suspect where stacks differ: those outside the majority; without one, who is far off in double precision.

The compiled stacks share passes, plan and thunks, so they count as one vote: where they agree against the evaluator
alone, something that they share is suspected, unless XLA or double precision speaks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..hlo.dtypes import FROM_NUMPY
from ..hlo.ir import Module
from .bounds import bounds_of
from .comparison import disagreeing
from .precision import Exact, far_off
from .verdict import ORACLE, Verdict, voices

NOT_OURS = frozenset({"xla", "golden"})
"""Names of results that none of our stacks made. What XLA refuses is no finding."""


def blamed_for(
    module: Module, inputs: Sequence[np.ndarray], results: Mapping[str, Sequence[np.ndarray]], verdict: Verdict
) -> tuple[tuple[str, ...], str]:
    """The suspects, sorted, and a sentence that says why. verdict: one that does not agree."""
    counted = ((voices(group, verdict.doubted), group) for group in verdict.groups)
    votes = sorted(counted, key=lambda pair: pair[0], reverse=True)
    (most, majority), (next_most, _) = votes[0], votes[1]
    if most > next_most and most > 1:
        outside = _outside(results, majority)
        return outside, f"{_differ(outside)} from {', '.join(sorted(majority))}: suspect {', '.join(outside)}"
    exact = Exact(module, inputs)
    suspects = far_off(exact, results, _places(module, results, verdict)) if exact.says_more else ()
    if suspects:
        others = ", ".join(n for n in results if n not in suspects)
        names = ", ".join(suspects)
        return suspects, f"{_differ(suspects)} from {others}, and in double precision {names} far off: suspect {names}"
    trusted = next((group for group in verdict.groups if ORACLE in group), verdict.groups[0])
    outside = _outside(results, trusted)
    shared = len(outside) > 1 and any(set(outside) <= group for group in verdict.groups)
    whom = f"what {' and '.join(outside)} share" if shared else ", ".join(outside)
    return outside, f"{_differ(outside)} from {', '.join(sorted(trusted))}: suspect {whom}{_why(trusted, exact)}"


def _why(trusted: frozenset[str], exact: Exact) -> str:
    """What decides, where neither votes nor double precision do."""
    if ORACLE not in trusted:
        return ""
    than = "double precision blames nobody" if exact.says_more else "double precision says no more of these types"
    return f" ({than}, so the evaluator decides)"


def _outside(results: Mapping[str, Sequence[np.ndarray]], group: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in results if name not in group))


def _differ(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'differ' if len(names) > 1 else 'differs'}"


def _places(module: Module, results: Mapping[str, Sequence[np.ndarray]], verdict: Verdict) -> dict[int, np.ndarray]:
    """For each leaf on which stacks differ, the elements."""
    bounds, found = bounds_of(module), {}
    for c in verdict.comparisons:
        a, b = results[c.left][c.leaf], results[c.right][c.leaf]
        if not c.difference.agrees and a.shape == b.shape and a.dtype == b.dtype:
            bad = disagreeing(a, b, FROM_NUMPY[a.dtype], bounds[c.leaf])
            found[c.leaf] = found.get(c.leaf, np.zeros(a.shape, bool)) | bad
    return found
