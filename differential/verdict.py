"""Verdicts over several stacks: which ones agree, and which one to suspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..hlo.dtypes import FROM_NUMPY
from .bounds import Bound, Tolerance
from .comparison import Difference, compare_within, disagreeing
from .permitted import Permitted


@dataclass(frozen=True)
class LeafComparison:
    """The comparison of one result leaf between two stacks. permitted: beyond its bound, by the float rules."""

    leaf: int
    left: str
    right: str
    difference: Difference
    permitted: bool = False

    @property
    def agrees(self) -> bool:
        return self.difference.agrees or self.permitted


@dataclass(frozen=True)
class Verdict:
    """All leaf comparisons of a program. groups: sets of stacks that agree on every leaf."""

    comparisons: tuple[LeafComparison, ...]
    groups: tuple[frozenset[str], ...]
    sentence: str

    @property
    def agrees(self) -> bool:
        return len(self.groups) == 1


def judge(
    results: Mapping[str, Sequence[np.ndarray]],
    bounds: Sequence[Bound | Tolerance],
    permitted: Permitted | None = None,
) -> Verdict:
    """Compare the result leaves of every pair of stacks within bounds, one a leaf: the program's, or given ones.

    permitted: asked where results lie beyond the program's bounds; the evaluator's own are permitted.
    """
    comparisons, bad = [], set()
    for left, right in combinations(results, 2):
        if len(results[left]) != len(results[right]):
            bad.add((left, right))
        for i, (a, b) in enumerate(zip(results[left], results[right], strict=False)):
            # Relative errors refer to the expected value: the evaluator's if it is one of the two, otherwise the right
            # one's.
            actual, expected = (b, a) if left == "evaluator" else (a, b)
            difference = compare_within(actual, expected, FROM_NUMPY[expected.dtype], bounds[i])
            found = LeafComparison(i, left, right, difference)
            if not difference.agrees and permitted is not None:
                checked = [value for name, value in ((left, a), (right, b)) if name != "evaluator"]
                found = replace(found, permitted=_are_permitted(actual, expected, checked, i, bounds[i], permitted))
            comparisons.append(found)
            if not found.agrees:
                bad.add((left, right))
    groups = _groups(list(results), bad)
    open_ones = any(c.permitted for c in comparisons)
    return Verdict(tuple(comparisons), groups, _sentence(groups) + (OPEN if open_ones else ""))


OPEN = "; where they differ beyond the bounds, the float rules permit both results"
"""Added to the sentence of a verdict that some permitted results are in."""


def _are_permitted(
    actual: np.ndarray,
    expected: np.ndarray,
    checked: Sequence[np.ndarray],
    leaf: int,
    bound: Bound | Tolerance,
    permitted: Permitted,
) -> bool:
    """Whether each of `checked` is permitted wherever the two arrays disagree."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype or not isinstance(bound, Bound):
        return False
    places = disagreeing(actual, expected, FROM_NUMPY[expected.dtype], bound)
    return not any((permitted.forbids(leaf, value, bound) & places).any() for value in checked)


def _groups(names: list[str], bad: set[tuple[str, str]]) -> tuple[frozenset[str], ...]:
    """Partition greedily: a stack joins the first group in which it agrees with every member."""
    groups: list[set[str]] = []
    for name in names:
        for group in groups:
            if all((a, name) not in bad and (name, a) not in bad for a in group):
                group.add(name)
                break
        else:
            groups.append({name})
    return tuple(frozenset(g) for g in sorted(groups, key=len, reverse=True))


def _sentence(groups: tuple[frozenset[str], ...]) -> str:
    everyone = ", ".join(sorted(n for g in groups for n in g))
    if len(groups) == 1:
        return f"{everyone} agree"
    if len(groups[0]) == 1:
        return f"no two of {everyone} agree: suspect the module, or a rule that all share"
    others = ", ".join(sorted(n for g in groups[1:] for n in g))
    verb = "differ" if "," in others else "differs"
    return f"{others} {verb} from {', '.join(sorted(groups[0]))}: suspect {others}"
