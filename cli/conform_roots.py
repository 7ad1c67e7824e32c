"""`testbed conform --roots DIR`: the failures of a suite by their root causes, each with one reduced module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .output import say, wrapped

if TYPE_CHECKING:
    from ..differential.child import Begin
    from ..differential.corpus import Case
    from ..differential.report import CaseResult

STACKS = ("optimized", "legacy", "mlir")
"""Stacks whose failures have root causes here, besides the evaluator."""


def print_roots(
    cases: Sequence[Case],
    failures: Sequence[CaseResult],
    folder: Path,
    jobs: int,
    seconds: float = 30.0,
    begin: Begin | None = None,
) -> None:
    """Reduce and bisect each case that failed, group them, and write the smallest of each group into the folder."""
    from ..differential.corpus import load_case
    from ..differential.finding import case_of
    from ..differential.follow_up import Followed, followed
    from ..differential.root_cause import grouped
    from ..hlo.errors import TestbedError

    stacks: dict[str, list[str]] = {}
    for row in failures:
        if row.stack in STACKS:
            stacks.setdefault(row.id, []).append(row.stack)
    found: dict[str, Followed] = {}
    for case in (case for case in cases if case.id in stacks):
        try:
            finding = case_of(load_case(case), ("evaluator", *stacks[case.id]))
            done = followed(finding, begin=begin, jobs=jobs, seconds=seconds)
        except TestbedError as error:
            say(wrapped(f"no root cause of {case.id}: {error.message}"))
            continue
        if done is None or done.root is None:
            say(wrapped(f"no root cause of {case.id}: the evaluator and {', '.join(stacks[case.id])} agree on it"))
        else:
            found[case.id] = done
    rooted = ((name, done.small.progress.size, done.root) for name, done in found.items() if done.root is not None)
    groups = grouped(rooted)
    say(f"root causes: {len(groups)} of {len(found)} cases")
    for group in groups:
        place = folder / re.sub(r"[^\w.-]+", "-", group.root.name)
        done = found[group.smallest]
        done.reducer.write(done.small, place)
        switch = f"; right with {group.root.switch}" if group.root.switch else ""
        say(wrapped(f"{len(group.members):>5} x {group.root.name}: {', '.join(group.members)}{switch}; {place}", 8))
