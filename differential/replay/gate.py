"""What a gate says of moving from one version of jaxlib to the next, by the faults that the suite finds in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .measure import Measured, faults, slower
from .suite import SUITE, Look, Replayed


@dataclass(frozen=True)
class Move:
    """From a version to the next. brings: a phrase for each fault that the old one lacks; keeps: programs with
    wrong results or refusals in both, which no version may have; mends: programs that were at fault.
    """

    old: str
    new: str
    brings: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        return bool(self.brings or self.keeps)


@dataclass
class Replay:
    """The suite on versions. faults: version → program → phrases; missing: version → why it could not be had."""

    measured: dict[str, dict[str, Measured]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    suite: Sequence[Replayed] = SUITE

    def faults(self, version: str) -> dict[str, list[str]]:
        """Program → what is wrong with it; those without a fault are left out."""
        known = self.measured[version]
        found = {p.name: faults(p, known[p.name]) for p in self.suite if p.name in known}
        return {name: said for name, said in found.items() if said}

    def moves(self) -> list[Move]:
        """From each version to the next one that was measured."""
        return [self._move(old, new) for old, new in pairwise(self.measured)]

    def _move(self, old: str, new: str) -> Move:
        before, after = self.faults(old), self.faults(new)
        brings = {name: said[0] for name, said in after.items() if name not in before}
        keeps = [name for name, said in after.items() if name in before and not COSTS.issuperset(kinds(said))]
        for program in self.suite:
            if program.look is Look.SPEED and program.name not in after:
                said = slower(program, *(self.measured[v].get(program.name, Measured()) for v in (old, new)))
                brings |= {program.name: said} if said else {}
        mends = tuple(name for name in before if name not in after)
        return Move(old, new, _phrases(brings), tuple(keeps), mends)


COSTS = frozenset({"cost", "compiling", "speed"})
"""Kinds of faults that a version may keep: a move does not make them worse."""


def kinds(said: Sequence[str]) -> list[str]:
    """The kind of each phrase: its first word."""
    return [phrase.partition(":")[0] for phrase in said]


def _phrases(found: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name} ({phrase})" for name, phrase in found.items())


def sentence(move: Move) -> str:
    """The gate's answer in words."""
    head = f"{move.old} → {move.new}: {'refused' if move.refused else 'passed'}"
    parts = [f"{word} {', '.join(found)}" for word, found in (("brings", move.brings), ("keeps", move.keeps)) if found]
    parts += [f"mends {', '.join(move.mends)}"] if move.mends else []
    return "; ".join([head, *parts])
