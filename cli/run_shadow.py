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
class Judged:
    """A kept pair. folder: of the finding; None if the difference is within what the rules leave open."""

    kernel: str
    sentence: str
    folder: str | None


@dataclass(frozen=True)
class Shadowed:
    """A run with shadow kernels. ratio: its time, relative to that of the program without them."""

    report: Report
    ratio: float
    judged: tuple[Judged, ...]

    @property
    def wrong(self) -> bool:
        """Whether there is a finding."""
        return any(one.folder is not None for one in self.judged)

    def of(self, kernel: str) -> list[Judged]:
        return [one for one in self.judged if one.kernel == kernel]

    def to_json(self) -> dict[str, Any]:
        first = self.judged[0] if self.judged else None
        groups = [
            {
                "kernel": kernel,
                "calls": calls,
                "pairs": [{"verdict": one.sentence, "finding": one.folder} for one in self.of(kernel)],
            }
            for kernel, calls in self.report.calls.items()
        ]
        return {
            "kernels": len(self.report.shadowed),
            "alone": [f"{name}: {reason}" for name, reason in self.report.alone.items()],
            "differing": self.report.pairs,
            "verdict": first.sentence if first else AGREED if self.report.shadowed else NOTHING,
            "finding": first.folder if first else None,
            "groups": groups,
            "limit": self.report.limit,
            "bytes": self.report.bytes,
            "time_ratio": self.ratio,
        }


AGREED, NOTHING = "no result differs beyond its bounds", "nothing was compared"


def prepare_plain(program: Program, emitters: str, host_program: str) -> Prepared:
    """The program without shadow kernels: the stack whose results count, wherever the flags say shadow."""
    from ..migration.flags import Flags
    from ..migration.stacks import prepare

    return prepare("legacy", program, str(Flags.parse(emitters).without_shadows), False, host_program)


def shadowed_of(prepared: Prepared, run: Run, plain: Run, folder: Path, emitters: str) -> Shadowed | None:
    """What the last run found; None for a program without shadow kernels. folder: receives findings."""
    from ..differential.shadow import write_mismatch
    from ..migration.choose import pair_of
    from ..migration.flags import Flags

    flags = Flags.parse(emitters)
    if not prepared.executable.has_shadows:
        return None
    report = prepared.executable.shadow_report()
    ratio = run.run_seconds / max(plain.run_seconds, 1e-9)
    judged = []
    for mismatch in report.mismatches:
        found, place = write_mismatch(folder, mismatch, pair_of(flags, mismatch.kernel))
        judged.append(Judged(mismatch.kernel.name, found.sentence, None if place is None else str(place)))
    return Shadowed(report, ratio, tuple(judged))


def print_shadowed(done: Shadowed) -> None:
    report = done.report
    say()
    alone = f"; {len(report.alone)} on one" if report.alone else ""
    cost = f"{report.bytes:,} bytes of memory more, {done.ratio:.2f} times the run time"
    say(wrapped(f"shadow: {len(report.shadowed)} kernels ran on both stacks{alone}; {cost}"))
    for name, reason in list(report.alone.items())[:5]:
        say(wrapped(f"  {name}: {reason}"))
    if not report.calls:
        say(f"shadow: {AGREED if report.shadowed else NOTHING}")
    for kernel, calls in report.calls.items():
        _print_kernel(kernel, calls, done.of(kernel))


def _print_kernel(kernel: str, calls: int, judged: list[Judged]) -> None:
    """What is known of a kernel whose results differ: its verdicts, once each, and the folders."""
    kept = f"{len(judged)} of them kept" if len(judged) < calls else "all kept"
    say(wrapped(f"shadow: {kernel}: {calls} call{'s differ' if calls > 1 else ' differs'}, {kept}"))
    for sentence in dict.fromkeys(one.sentence for one in judged):
        say(wrapped(f"  {sentence}", 4))
    for folder in dict.fromkeys(one.folder for one in judged if one.folder is not None):
        say(wrapped(f"  finding: {folder}", 4))
