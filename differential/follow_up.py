"""What follows when a finding was made: it is reduced and bisected, and both are kept beside it as a small finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..hlo.errors import InputError
from .bisect import Bisected
from .child import Begin, Child
from .exact_bisect import bisect
from .finding import read_finding
from .reduce.driver import Progress, Reducer

SMALL = "small"
"""The folder in that of a finding: the small finding."""

CULPRIT_FILE = "bisect.json"

REDUCE_SECONDS = 60.0


@dataclass(frozen=True)
class FollowUp:
    """kind: of the small case. blamed: the stacks that the culprit is a part of. before, after: instructions.
    seconds: of reducing. complete: as of Reduced.

    culprit, sentence, toggles: as of Bisected. flaky: another run of it ended otherwise.
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
    reducer = Reducer(finding, jobs=jobs, seconds=seconds, begin=begin, on_step=on_step)
    done = reducer.run()
    if not done.outcome.is_finding:
        return None
    with Child(begin) as child:
        try:
            found = bisect(done.finding, child)
        except InputError as error:  # the case ends the process that reads it
            found = Bisected(done.outcome, sentence=str(error), suspects=done.outcome.blamed)
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
    )
    evidence = {"evidence": [asdict(e) for e in found.evidence]}
    text = json.dumps(asdict(made) | evidence, indent=1) + "\n"
    reducer.write(done, folder / SMALL, more={CULPRIT_FILE: text})
    return made
