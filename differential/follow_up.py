"""What follows when a finding was made: it is reduced and bisected, its root cause is named, and all is kept beside it
as a small finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..hlo.errors import InputError
from ..migration.flags import STACK_NAMES
from .bisect import Bisected
from .child import LIMIT, Begin, Child
from .exact_bisect import bisect
from .finding import Finding, read_finding
from .outcome import OutcomeKind
from .reduce.driver import Progress, Reduced, Reducer
from .root_cause import Root, apart, root_cause

SMALL = "small"
"""The folder in that of a finding: the small finding."""

CULPRIT_FILE = "bisect.json"

REDUCE_SECONDS = 60.0


@dataclass(frozen=True)
class FollowUp:
    """kind: of the small case. blamed: the stacks that the culprit is a part of. before, after: instructions.
    seconds: of reducing. complete: as of Reduced.

    culprit, sentence, toggles: as of Bisected. flaky: another run of it ended otherwise. root: None if there is no
    culprit.
    """

    kind: str
    blamed: tuple[str, ...]
    before: int
    after: int
    seconds: float
    complete: bool
    flaky: bool
    culprit: str
    sentence: str
    toggles: str
    root: Root | None = None


@dataclass(frozen=True)
class Followed:
    """A finding that was made small, what is guilty of it, and its root cause. reducer: writes the small finding."""

    reducer: Reducer
    small: Reduced
    guilty: Bisected
    root: Root | None


def followed(
    finding: Finding,
    *,
    begin: Begin | None = None,
    child: Child | None = None,
    jobs: int = 1,
    seconds: float = REDUCE_SECONDS,
    on_step: Callable[[Progress], object] = lambda progress: None,
) -> Followed | None:
    """Reduce and bisect a finding, and look for its root cause; None if it is none now. child: as of Reducer.

    Where both stacks are wrong, each in its own way, it is that of one of them. Where the case goes wrong without its
    root cause, too, it has another one besides: then it is made small once more, with nothing of the guilty stack but
    the rules that are the root cause.
    """

    def small(case: Finding) -> tuple[Reducer, Reduced]:
        reducer = Reducer(case, jobs=jobs, seconds=seconds, begin=begin, child=given, on_step=on_step)
        return reducer, reducer.run()

    given = child
    with nullcontext(given) if given is not None else Child(begin) as child:
        reducer, done = small(_on_one_stack(finding, child))
        if not done.outcome.is_finding:
            return None
        try:
            found = bisect(done.finding, child)
            root = root_cause(done.finding, found, child)
        except InputError as error:  # the case ends the process that reads it
            found, root = Bisected(done.outcome, sentence=str(error), suspects=done.outcome.blamed), None
        if root is not None and root.only and not root.switch and root.setting is not None:
            again, smaller = small(replace(done.finding, stacks=root.only, setting=root.setting))
            if smaller.outcome.is_finding:
                reducer, done, root = again, smaller, apart(root, smaller.finding, child)
    return Followed(reducer, done, found, root)


def _on_one_stack(case: Finding, child: Child) -> Finding:
    """The case on one of our stacks only, if these differ from each other and from the evaluator: two faults."""
    found = child.outcome(case.module, case.inputs, case.stacks, LIMIT, case.setting)
    ours = set(STACK_NAMES)
    if found.kind is not OutcomeKind.DIFFER or found.verdict is None or not ours <= set(found.blamed):
        return case
    if "evaluator" not in case.stacks or any(ours <= group for group in found.verdict.groups):
        return case
    return replace(case, stacks=("evaluator", STACK_NAMES[0]))


def follow_up(
    folder: Path,
    *,
    begin: Begin | None = None,
    jobs: int = 1,
    seconds: float = REDUCE_SECONDS,
    cache: bool = True,
    on_step: Callable[[Progress], object] = lambda progress: None,
) -> FollowUp | None:
    """Reduce and bisect the finding in a folder, and write the small one into SMALL in it; None if it is none now.

    begin: as of Child. jobs, seconds: of the reduction. cache: whether compiled code is kept. Raises InputError where
    the folder holds no finding, or a small one already.
    """
    finding = read_finding(folder)
    finding = replace(finding, setting=replace(finding.setting, cache=cache))
    all_ = followed(finding, begin=begin, jobs=jobs, seconds=seconds, on_step=on_step)
    if all_ is None:
        return None
    reducer, done, found = all_.reducer, all_.small, all_.guilty
    made = FollowUp(
        done.outcome.kind.value,
        found.suspects or done.outcome.blamed,
        reducer.before,
        done.progress.size,
        round(done.seconds, 3),
        done.complete,
        done.finding.flaky,
        found.culprit,
        found.sentence,
        found.toggles,
        all_.root,
    )
    evidence = {"evidence": [asdict(e) for e in found.evidence]}
    text = json.dumps(asdict(made) | evidence, indent=1) + "\n"
    reducer.write(done, folder / SMALL, more={CULPRIT_FILE: text})
    return made
