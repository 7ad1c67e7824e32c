"""The time of a report's steps by instruction, opcode, family, stack or line of source, with what is only estimated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .facts import Facts
from .report import Report, Step

BETWEEN, ENTRY = "between steps", "entry"
"""Rows of what belongs to no step: the host program itself; arguments and results of a call."""

UNKNOWN = "unknown"
NO_SOURCE = "no metadata"


@dataclass(frozen=True, slots=True)
class Group:
    """own: nanoseconds a run of what belongs to it; estimated: the part of it that is shares of fusions.

    calls: of steps a run; a fusion counts in each group that it has a part of.
    """

    name: str
    own: float
    estimated: float
    calls: float


def _instruction(facts: Facts) -> str:
    return facts.name


def _opcode(facts: Facts) -> str:
    return facts.opcode or UNKNOWN


def _family(facts: Facts) -> str:
    return facts.family or UNKNOWN


def _source(facts: Facts) -> str:
    return facts.source or facts.op_name or NO_SOURCE


OF_INSTRUCTIONS: Mapping[str, Callable[[Facts], str]] = {
    "instruction": _instruction,
    "opcode": _opcode,
    "family": _family,
    "source": _source,
}

WAYS = (*OF_INSTRUCTIONS, "stack")
"""What times can be grouped by."""


def groups(report: Report, way: str) -> list[Group]:
    """The groups of a report, the longest first, then BETWEEN and ENTRY. way: one of WAYS."""
    found: dict[str, list[float]] = {}
    for step in report.steps:
        for name, share in _names(step, way).items():
            row = found.setdefault(name, [0.0, 0.0, 0.0])
            row[0] += step.own * share
            row[1] += step.own * share if share < 1.0 else 0.0
            row[2] += step.calls
    made = [Group(name, own, estimated, calls) for name, (own, estimated, calls) in found.items()]
    made.sort(key=lambda group: -group.own)
    return [*made, Group(BETWEEN, report.between, 0.0, 1.0), Group(ENTRY, report.entry, 0.0, 1.0)]


def _names(step: Step, way: str) -> dict[str, float]:
    """Name of a group → share of the step's own time."""
    if way == "stack":
        return {step.stack or "host program": 1.0}
    name = OF_INSTRUCTIONS[way]
    if not step.parts:
        return {name(step.facts): 1.0}
    shares: dict[str, float] = {}
    for part in step.parts:
        key = name(part.facts)
        shares[key] = shares.get(key, 0.0) + part.share
    whole = sum(shares.values()) if len(shares) > 1 else 0.0
    return {key: share / whole if whole else 1.0 for key, share in shares.items()}
