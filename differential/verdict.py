"""Verdicts over several stacks: which ones agree, and which one to suspect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType

import numpy as np

from ..hlo.dtypes import FROM_NUMPY
from .bounds import Bound, Tolerance
from .comparison import Difference, compare_within, disagreeing
from .permitted import Permitted

NOBODY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class LeafComparison:
    """The comparison of one result leaf between two stacks. permitted: beyond its bound, by the float rules. undecided:
    beyond its bound, and whether the float rules permit that was not found out.
    """

    leaf: int
    left: str
    right: str
    difference: Difference
    permitted: bool = False
    undecided: bool = False

    @property
    def agrees(self) -> bool:
        return self.difference.agrees or self.permitted


@dataclass(frozen=True)
class Verdict:
    """All leaf comparisons of a program. groups: sets of stacks that certainly differ on no leaf. reason: why a
    comparison is undecided, if one is. doubted: stack → why it is no oracle for this program.
    """

    comparisons: tuple[LeafComparison, ...]
    groups: tuple[frozenset[str], ...]
    sentence: str
    reason: str = ""
    doubted: Mapping[str, str] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        return len(self.groups) == 1 and not self.reason

    @property
    def undecided(self) -> bool:
        """Whether nothing certainly differs, and something may."""
        return len(self.groups) == 1 and bool(self.reason)


def judge(
    results: Mapping[str, Sequence[np.ndarray]],
    bounds: Sequence[Bound | Tolerance],
    permitted: Permitted | None = None,
    doubted: Mapping[str, str] = NOBODY,
) -> Verdict:
    """Compare the result leaves of every pair of stacks within bounds, one a leaf: the program's, or given ones.

    permitted: asked where results lie beyond the program's bounds; the evaluator's own are permitted. doubted: stacks
    that are no oracle for the program, and why; they have no voice (doubts.py).
    """
    pairs = list(combinations(results, 2))
    bad = {(left, right) for left, right in pairs if len(results[left]) != len(results[right])}
    found = [
        LeafComparison(leaf, left, right, compare_within(*_ordered(left, a, b), FROM_NUMPY[a.dtype], bounds[leaf]))
        for left, right in pairs
        for leaf, (a, b) in enumerate(zip(results[left], results[right], strict=False))
    ]
    if permitted is not None:
        permitted.ask_about(sorted({c.leaf for c in found if not c.difference.agrees}))
        found = [c if c.difference.agrees else _checked(c, results, bounds[c.leaf], permitted) for c in found]
    bad.update((c.left, c.right) for c in found if not (c.agrees or c.undecided))
    groups = _groups(list(results), bad)
    reason = (permitted.skipped or "") if permitted is not None and any(c.undecided for c in found) else ""
    doubted = {name: why for name, why in doubted.items() if name in results}
    return Verdict(tuple(found), groups, _said(groups, found, reason, doubted), reason, doubted)


def _ordered(left: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Actual, expected): relative errors refer to the evaluator's value if it is one of the two, else to the right
    one's.
    """
    return (b, a) if left == "evaluator" else (a, b)


def _checked(
    c: LeafComparison,
    results: Mapping[str, Sequence[np.ndarray]],
    bound: Bound | Tolerance,
    permitted: Permitted,
) -> LeafComparison:
    """A comparison of two arrays that differ, with whether the float rules permit both where they do."""
    actual, expected = _ordered(c.left, results[c.left][c.leaf], results[c.right][c.leaf])
    if actual.shape != expected.shape or actual.dtype != expected.dtype or not isinstance(bound, Bound):
        return c
    places = disagreeing(actual, expected, FROM_NUMPY[expected.dtype], bound)
    values = [results[name][c.leaf] for name in (c.left, c.right) if name != ORACLE]
    answer = permitted.permits(c.leaf, values, bound, places)
    return replace(c, permitted=answer is True, undecided=answer is None)


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


ORACLE = "evaluator"


def voices(group: Iterable[str], doubted: Mapping[str, str] = NOBODY) -> int:
    """How many independent opinions a group of stacks holds. The compiled stacks share passes, plan and thunks, and the
    evaluator after all passes shares these with them: together they are one. A doubted stack has none.
    """
    return len({_voice(name) for name in group if name not in doubted})


def _voice(name: str) -> str:
    if name in (ORACLE, "golden"):
        return name
    return "xla" if name.partition("-")[0] == "xla" else "ours"


def _said(
    groups: Sequence[frozenset[str]], comparisons: Sequence[LeafComparison], reason: str, doubted: Mapping[str, str]
) -> str:
    """The verdict in words."""
    more = "; where they differ beyond the bounds, the float rules permit both results"
    sentence = _sentence(groups, doubted) + (more if any(c.permitted for c in comparisons) else "")
    if not reason:
        return sentence
    leaves = len({c.leaf for c in comparisons if c.undecided})
    what = f"{leaves} of {len({c.leaf for c in comparisons})} results differ beyond their bounds"
    why = f"whether the float rules permit that was not found out: {reason}"
    return f"undecided: {what}, and {why}" if len(groups) == 1 else f"{sentence}; besides, {what}, and {why}"


def _sentence(groups: Sequence[frozenset[str]], doubted: Mapping[str, str]) -> str:
    everyone = ", ".join(sorted(n for g in groups for n in g))
    if len(groups) == 1:
        return f"{everyone} agree"
    if len(groups[0]) == 1 and len(groups) > 2:
        return f"no two of {everyone} agree: suspect the module, or a rule that all share"

    def count(group: frozenset[str]) -> int:
        return voices(group, doubted)

    why = "".join(f"; {name}: {reason}" for name, reason in doubted.items())
    first, *rest = sorted(groups, key=count, reverse=True)
    others = ", ".join(sorted(n for g in rest for n in g))
    differ = f"{others} {'differ' if ',' in others else 'differs'} from {', '.join(sorted(first))}"
    if count(first) > max(map(count, rest)):
        return f"{differ}: suspect {others}{why}"
    shared = [g for g in groups if len(g) > 1 and count(g) == 1]
    alike = "".join(f"; {' and '.join(sorted(g))} share much, and count as one" for g in shared)
    return f"{differ}{alike}: testbed bisect finds out who is wrong{why}"
