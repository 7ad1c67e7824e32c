"""Saved profiles, as the board shows them: the time of a program by step and by group, with a flame view."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...formats.program import read_text
from ...profiling import flame
from ...profiling.groups import WAYS, Group, groups
from ...profiling.report import Report, from_json
from ..profile_tables import summary
from .findings_view import page_name

MOST_GROUPS = 12
"""Rows of a table by opcode, family, stack or source; the rest is one row."""


@dataclass(frozen=True)
class StepView:
    name: str
    opcode: str
    stack: str
    depth: int
    calls: float
    total: float
    share: float


@dataclass(frozen=True)
class ProfileView:
    """A profile and its page. tables: (by what, groups)."""

    report: Report
    page: str
    summary: tuple[str, ...]
    steps: tuple[StepView, ...]
    tables: tuple[tuple[str, tuple[Group, ...]], ...]
    picture: str

    @property
    def title(self) -> str:
        return f"{self.report.program}, {self.report.emitters}"

    @property
    def kernels(self) -> int:
        return sum(step.kind == "kernel" for step in self.report.steps)


def profiles_in(files: Iterable[Path]) -> list[ProfileView]:
    """All profiles in files that `testbed profile --json` wrote. Raises InputError."""
    pages: set[str] = set()
    return [_view(report, pages) for file in files for report in from_json(read_text(file), str(file))]


def _view(report: Report, pages: set[str]) -> ProfileView:
    whole = report.sum or 1.0
    steps = tuple(
        StepView(s.name, s.opcode or s.kind, s.stack, s.depth, s.calls, s.total, s.total / whole) for s in report.steps
    )
    tables = tuple((way, tuple(_most(groups(report, way)))) for way in WAYS if way != "instruction")
    page = "profile-" + page_name(f"{report.program} {report.emitters}", pages)
    return ProfileView(report, page, tuple(summary(report)), steps, tables, flame.svg(report, "page"))


def _most(found: list[Group]) -> list[Group]:
    if len(found) <= MOST_GROUPS:
        return found
    rest = found[MOST_GROUPS - 1 :]
    own, estimated = sum(g.own for g in rest), sum(g.estimated for g in rest)
    return [*found[: MOST_GROUPS - 1], Group(f"{len(rest)} more", own, estimated, sum(g.calls for g in rest))]
