"""`testbed run --emitters shadow`: what the kernels of the other stack found, their cost, and where findings are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import say, wrapped

if TYPE_CHECKING:
    from ..backends.host.shadows import Report
    from ..formats.program import Program
    from ..migration.stacks import Prepared, Run


@dataclass(frozen=True)
class Shadowed:
    """A run with shadow kernels. ratio: its time, relative to that of the program without them. wrong: a finding."""

    report: Report
    ratio: float
    sentence: str
    folder: str | None
    wrong: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "kernels": len(self.report.shadowed),
            "alone": [f"{name}: {reason}" for name, reason in self.report.alone.items()],
            "differing": self.report.pairs,
            "verdict": self.sentence,
            "finding": self.folder,
            "bytes": self.report.bytes,
            "time_ratio": self.ratio,
        }


def prepare_plain(program: Program, emitters: str, host_program: str) -> Prepared:
    """The program without shadow kernels: the stack whose results count, wherever the flags say shadow."""
    from ..migration.stacks import prepare

    return prepare("legacy", program, emitters.replace("shadow", "legacy"), False, host_program)


def shadowed_of(prepared: Prepared, run: Run, plain: Run, folder: Path) -> Shadowed | None:
    """What the last run found; None for a program without shadow kernels. folder: receives findings."""
    from ..differential.shadow import write_mismatch

    if not prepared.executable.has_shadows:
        return None
    report = prepared.executable.shadow_report()
    ratio = run.run_seconds / max(plain.run_seconds, 1e-9)
    if report.first is None:
        return Shadowed(report, ratio, "no result differs beyond its bounds", None, False)
    found, place = write_mismatch(folder, report.first)
    return Shadowed(report, ratio, found.sentence, None if place is None else str(place), place is not None)


def print_shadowed(done: Shadowed) -> None:
    report = done.report
    say()
    alone = f"; {len(report.alone)} on one" if report.alone else ""
    cost = f"{report.bytes:,} bytes of memory more, {done.ratio:.2f} times the run time"
    say(wrapped(f"shadow: {len(report.shadowed)} kernels ran on both stacks{alone}; {cost}"))
    for name, reason in list(report.alone.items())[:5]:
        say(wrapped(f"  {name}: {reason}"))
    if report.first is not None:
        say(wrapped(f"shadow: {report.pairs} comparisons differ, first {report.first.kernel.name}: {done.sentence}"))
    else:
        say(f"shadow: {done.sentence}")
    if done.folder is not None:
        say(wrapped(f"finding: {done.folder}"))
