"""Two reports → what changed from one to the other, step by step, what counts most first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from .groups import BETWEEN, ENTRY
from .report import Report, Step


@dataclass(frozen=True, slots=True)
class Change:
    """Nanoseconds a run of a step in two reports. before, after: its names; "" where a report does not have it."""

    before: str
    after: str
    opcode: str
    old: float
    new: float

    @property
    def difference(self) -> float:
        return self.new - self.old

    @property
    def ratio(self) -> float | None:
        """new / old; None where there is no such number."""
        return self.new / self.old if self.old > 0 and self.after and self.before else None


def compare(old: Report, new: Report) -> list[Change]:
    """The steps of both, matched by name, the rest by opcode and shape in their order; largest difference first.

    A step counts with its own time, without the steps inside it, so that all differences add up to that of the runs.
    """
    left, right = list(old.steps), list(new.steps)
    pairs = [*_matched(left, right, _by_name), *_matched(left, right, _by_form)]
    found = [Change(a.name, b.name, b.opcode or a.opcode, a.own, b.own) for a, b in pairs]
    found += [Change(a.name, "", a.opcode, a.own, 0.0) for a in left]
    found += [Change("", b.name, b.opcode, 0.0, b.own) for b in right]
    found.append(Change(BETWEEN, BETWEEN, "", old.between, new.between))
    found.append(Change(ENTRY, ENTRY, "", old.entry, new.entry))
    return sorted(found, key=lambda change: -abs(change.difference))


def _by_name(step: Step) -> Hashable:
    return step.name, step.kind


def _by_form(step: Step) -> Hashable:
    """None for a step of which nothing is known but its name."""
    return (step.kind, step.opcode, step.shape) if step.shape else None


def _matched(left: list[Step], right: list[Step], key: Callable[[Step], Hashable]) -> list[tuple[Step, Step]]:
    """Pairs of steps with the same key, in their order; they are taken out of both lists."""
    waiting: dict[Hashable, deque[Step]] = {}
    for step in right:
        waiting.setdefault(key(step), deque()).append(step)
    waiting.pop(None, None)
    pairs = [(step, waiting[key(step)].popleft()) for step in left if waiting.get(key(step))]
    taken = {id(step) for pair in pairs for step in pair}
    left[:] = [step for step in left if id(step) not in taken]
    right[:] = [step for step in right if id(step) not in taken]
    return pairs
