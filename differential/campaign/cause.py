"""The cause of a finding: what two findings of one bug have in common, so that each bug is shrunk and kept once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...hlo.ir import Module
from ..outcome import Outcome, OutcomeKind, cause_of
from .task import known_stacks, pairs_of

CARRIERS = frozenset({"broadcast", "copy", "iota", "reshape", "convert"})
"""Opcodes that a small module often needs around the one that goes wrong."""


@dataclass(frozen=True)
class Cause:
    """kind, blamed, reason: of the outcome; a mixture is blamed only where neither of its stacks is.

    units: `opcode type` of what is left of the module when it is small.
    """

    kind: str
    blamed: tuple[str, ...]
    reason: str
    units: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name for a folder: what to look at, and a few letters that tell causes apart."""
        key = hashlib.sha256(repr((self.kind, self.blamed, self.reason, self.units)).encode()).hexdigest()[:6]
        what = [u.partition(" ")[0] for u in self.units[:2]]
        return "-".join([self.kind.replace(" ", "-"), *self.blamed[:2], *what, key])

    def folder(self, campaign: Path) -> Path:
        """Where a campaign in a folder keeps its finding."""
        return campaign / "findings" / self.name

    @property
    def title(self) -> str:
        what = ", ".join(self.units) or "any module"
        return f"{self.kind}, {' and '.join(self.blamed) or 'nobody'}: {self.reason or what}"

    def explains(self, outcome: Outcome, units: Iterable[str]) -> bool:
        """Whether a larger finding may be the same: it ended alike, and holds all that was left of this one."""
        if (self.kind, self.blamed, self.reason) != ended(outcome):
            return False
        return bool(self.reason) or set(self.units) <= set(units)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "blamed": list(self.blamed), "reason": self.reason, "units": list(self.units)}

    @staticmethod
    def from_json(found: dict[str, Any]) -> Cause:
        return Cause(found["kind"], tuple(found["blamed"]), found["reason"], tuple(found["units"]))


def ended(outcome: Outcome) -> tuple[str, tuple[str, ...], str]:
    """(Kind, whom it blames, why it did not run) of an outcome."""
    reasons = [cause_of(outcome.runs[n]) for n in outcome.blamed if n in outcome.runs and outcome.runs[n].reason]
    return outcome.kind.value, blamed_of(outcome.blamed), reasons[0] if reasons else ""


def blamed_of(names: Sequence[str]) -> tuple[str, ...]:
    found = set(known_stacks(names))
    return tuple(sorted(found - {"mixed"} or found))


def cause_in(module: Module, outcome: Outcome) -> Cause:
    """The cause of a finding whose module is small."""
    every = units_in(module)
    telling = [u for u in every if u.partition(" ")[0] not in CARRIERS]
    return Cause(*ended(outcome), tuple(telling or every))


def units_in(module: Module) -> list[str]:
    return [f"{op} {dtype}" for op, dtype in pairs_of(module)]


def is_ending(kind: str) -> bool:
    """Whether a finding of this kind ends the process that runs it."""
    return kind in (OutcomeKind.CRASH.value, OutcomeKind.HANG.value)
