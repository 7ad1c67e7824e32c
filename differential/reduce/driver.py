"""Runs the edits: rounds of passes, several candidates at once in children, until nothing helps or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from ...hlo.errors import InputError
from ..child import Begin, Child
from ..finding import Finding, stages_of, write_finding
from ..outcome import Outcome, patience_with_smaller
from ..patience import Patience
from ..setting import is_compiled
from .case import Small, has_sizes, sizes_fit, values_of
from .edits import PASSES, Edit, Values

LIMIT = 20.0
"""Seconds that a stack has for the case itself."""

RUN = 1.0
"""Seconds that a run of the case itself has, besides what Patience adds: what takes so much longer than the evaluator
hangs.
"""


@dataclass
class Progress:
    """What has been done: candidates that ran, edits that were kept, the pass, the size of the best case."""

    tried: int = 0
    kept: int = 0
    step: str = ""
    size: int = 0


@dataclass(frozen=True)
class Reduced:
    """finding: the smallest case found, judged. complete: no edit is left that keeps the outcome."""

    finding: Finding
    outcome: Outcome
    progress: Progress
    complete: bool
    seconds: float


class Reducer:
    """Reduces one finding. `best` is the smallest case so far, at any time, also after an exception."""

    def __init__(
        self,
        finding: Finding,
        *,
        jobs: int = 1,
        seconds: float = 60.0,
        begin: Begin | None = None,
        on_step: Callable[[Progress], object] = lambda progress: None,
        limit_s: float = LIMIT,
    ):
        """begin: as of Child. on_step: called when a case was tried. limit_s: for a stack on the case itself."""
        self.finding, self.jobs, self.seconds, self.limit_s = finding, jobs, seconds, limit_s
        self.best = Small.of(finding.module, finding.inputs)
        self.progress = Progress(size=self.best.size)
        self.on_step = on_step
        self._begin = begin
        self._children: SimpleQueue[Child] = SimpleQueue()
        self._seen: set[bytes] = set()
        self._start = self._until = 0.0
        self.outcome: Outcome | None = None
        self.flaky = False
        self.before, self.text = self.best.size, self.best.text

    def run(self) -> Reduced:
        """The smallest case; the case itself, with its outcome, if that is no finding."""
        self._start = time.monotonic()
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(self.jobs))
            for _ in range(self.jobs):
                self._children.put(stack.enter_context(Child(self._begin)))
            self.outcome = self._confirmed(self.best)
            self.flaky = self.outcome.flaky
            # The last confirmation takes no longer than this first one, and is a part of the time.
            self._until = self._start + self.seconds - min(time.monotonic() - self._start, self.seconds / 2)
            self._patience = patience_with_smaller(self.outcome, self.limit_s)
            self._sizes_fit = self._has_fitting_sizes(self.best)
            complete = not self.outcome.is_finding or self._rounds(pool)
            if self.progress.kept and not self.flaky:
                last = self._confirmed(self.best)
                self.flaky = last.flaky or last.signature != self.outcome.signature
        return self.result(complete)

    def result(self, complete: bool = False) -> Reduced:
        """The best case so far."""
        if self.outcome is None:
            raise InputError("nothing was reduced yet", remedy="let it run longer")
        best, old = self.best, self.finding
        setting = old.setting if best.text == self.text else replace(old.setting, dump="")
        small = Finding(best.text, best.module, tuple(best.leaves), old.stacks, setting=setting, seed=old.seed)
        done = replace(small.concluded(self.outcome), flaky=self.flaky)
        return Reduced(done, self.outcome, self.progress, complete, time.monotonic() - self._start)

    def write(self, done: Reduced, folder: Path, more: Mapping[str, str] = {}) -> None:
        """Write the finding, its stages compiled where they may crash. more: other files by name."""
        compiled = [s for s in done.finding.stacks if is_compiled(s)]
        with Child(self._begin) as child:
            case = done.finding
            stages = {s: child.call(stages_of, case.module, s, case.setting, limit_s=self.limit_s) for s in compiled}
        texts = {s: (("error.txt", f"{x}\n"),) if isinstance(x, str) else x for s, x in stages.items()}
        evaluated = done.outcome.runs.get("evaluator")
        expected = evaluated.results if evaluated is not None else ()
        write_finding(folder, done.finding, stages=texts, expected=expected, more=more)

    def _rounds(self, pool: ThreadPoolExecutor) -> bool:
        """Whether the last round changed nothing."""
        while True:
            before = self.best.digest
            for name, offer in PASSES.items():
                self.progress.step = name
                values = self._values() if name == "cuts" else {}
                if not self._apply(pool, offer(self.best, values)):
                    return False
            if self.best.digest == before:
                return True

    def _values(self) -> Values:
        """The values of the entry's instructions, computed where it may take long or crash."""
        with self._child() as child, suppress(InputError):
            found = child.call(values_of, self.best.module, self.best.leaves, limit_s=self.limit_s)
            return {} if isinstance(found, str) else found
        return {}

    def _apply(self, pool: ThreadPoolExecutor, edits: Iterator[Edit]) -> bool:
        """Try edits in order, several at once on the best case; False if time is up."""
        waiting: list[Edit] = []
        while True:
            if time.monotonic() > self._until:
                return False
            waiting += islice(edits, max(0, self.jobs - len(waiting)))
            if not waiting:
                return True
            tried = [(edit, made) for edit in waiting if (made := self._made(edit)) is not None]
            futures: list[Future[Outcome | None]] = [pool.submit(self._judged, made) for _, made in tried]
            waiting = self._keep_first(tried, futures)

    def _made(self, edit: Edit) -> Small | None:
        """The candidate of an edit; None if it is none, no smaller, or was tried before."""
        made = edit(self.best)
        if made is None or made.cost >= self.best.cost or made.digest in self._seen:
            return None
        self._seen.add(made.digest)
        return made

    def _keep_first(self, tried: Sequence[tuple[Edit, Small]], futures: Sequence[Future[Outcome | None]]) -> list[Edit]:
        """Keep the first candidate that has the same outcome; returns the edits to try again on it."""
        assert self.outcome is not None
        again: list[Edit] = []
        kept = False
        for (edit, made), future in zip(tried, futures, strict=True):
            try:
                found = future.result()
            except InputError:
                continue
            self.progress.tried += 1
            if found is None or found.signature != self.outcome.signature:
                continue
            if kept:
                self._seen.discard(made.digest)
                again.append(edit)
                continue
            kept = True
            self.best, self.outcome = made, found
            self.progress.kept += 1
            self.progress.size = made.size
        self.on_step(self.progress)
        return again

    def _confirmed(self, case: Small) -> Outcome:
        """The outcome of two runs."""
        patience, setting = Patience(self.limit_s, RUN), self.finding.setting
        with self._child() as child:
            return child.outcome(case.module, case.leaves, self.finding.stacks, patience, setting, again=True)

    def _judged(self, case: Small) -> Outcome | None:
        """The outcome of a candidate; None where it is another one than that of the case, whichever."""
        assert self.outcome is not None
        stacks, setting = self.finding.stacks, self.finding.setting
        if self._sizes_fit and not self._has_fitting_sizes(case):
            return None
        with self._child() as child:
            return child.outcome_like(self.outcome, case.module, case.leaves, stacks, self._patience, setting)

    def _has_fitting_sizes(self, case: Small) -> bool:
        """Whether a case sizes no dimension beyond its bound. Stacks may differ there, so no edit may do it."""
        if not has_sizes(case.module):
            return True
        with self._child() as child:
            return child.call(sizes_fit, case.module, case.leaves, limit_s=self.limit_s) is True

    @contextmanager
    def _child(self) -> Iterator[Child]:
        """One of the children, for itself."""
        child = self._children.get()
        try:
            yield child
        finally:
            self._children.put(child)


def check_folder(folder: Path) -> None:
    """Raise InputError if a finding cannot be written there, before the work is done."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not an empty folder", remedy="give a new folder with -o")
