"""A process of a campaign: draws tasks round after round, and tells the campaign what it runs and what it finds."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from ...codegen.options import Target, assume_host
from ...hlo.errors import InputError
from ..child import Begin, Child
from ..conformance import begin_worker
from ..exact_outcome import outcome
from ..finding import finding_of, write_finding
from ..outcome import Outcome, OutcomeKind, confirmed, patience_with_smaller
from ..patience import Patience
from .cause import Cause, cause_in, is_ending, units_in
from .coverage import FormKey, Key
from .search import SHRINK_SECONDS, Catch, Judge, Round
from .task import Orders, Task, known_stacks, pairs_of

EXAMPLES = 2000
"""Tasks of a round without a finding. Of the first 50 or so of each, Hypothesis draws half as small as it can."""

RUN = 10.0
"""Seconds that a run has, besides what Patience adds for slow ones: then a loop without end is a finding, and does not
end the process.
"""

TELL_SECONDS = 0.5
"""How often a hunter tells its counts."""

BLOB_FILE = "blob"


@dataclass(frozen=True)
class Hunt:
    """What one process is told. number: of the process; first_round: where it goes on.

    until: the time, by time.time, at which it stops. limit: seconds that a stack has for a task whose crash or hang is
    being shrunk. suspects: blobs of tasks that ended the process before this one. begin: runs first in each process.
    """

    orders: Orders
    folder: str
    seed: int
    number: int
    first_round: int
    until: float
    limit: float
    known: tuple[Cause, ...]
    suspects: tuple[str, ...] = ()
    target: Target | None = None
    begin: Begin | None = None
    shrink_seconds: float = SHRINK_SECONDS


def hunt(told: Hunt, connection: Connection, parent: int) -> None:
    """The process: messages are (kind, value…) tuples, of the kinds that campaign.py reads."""
    begin_worker(parent, 0)
    assume_host(told.target)
    if told.begin is not None:
        told.begin()
    gc.collect()
    gc.freeze()  # modules and tables stay; what a case leaves is collected when there is more of it than usual
    gc.set_threshold(20_000, 20, 20)
    _Hunter(told, connection).run()


class _Hunter:
    def __init__(self, told: Hunt, connection: Connection) -> None:
        self.told, self.connection = told, connection
        self.known = list(told.known)
        self.cases, self.refused, self.again = 0, 0, Counter[str]()
        self.coverage: Counter[Key] = Counter()
        self.forms: Counter[FormKey] = Counter()
        self.told_at = time.monotonic()
        self._patience, self._shrinks = Patience(told.limit, RUN), False

    def run(self) -> None:
        from hypothesis.database import DirectoryBasedExampleDatabase

        for blob in self.told.suspects:
            self._suspect(blob)
        kept = DirectoryBasedExampleDatabase(Path(self.told.folder) / "examples" / str(self.told.number))
        number = self.told.first_round
        while not self.over():
            found = self._round(self.judge, self.over)
            caught = found.run(EXAMPLES, hash((self.told.seed, self.told.number, number)), kept)
            self.again.update(cause.name for cause in found.explained)
            if caught is not None:
                self._keep(caught)
            number += 1
            self._tell()
            self._say("round", number)
        self._say("done")

    def _round(self, judge: Judge, stop: Callable[[], bool]) -> Round:
        self._patience, self._shrinks = Patience(self.told.limit, RUN), False
        return Round(self.told.orders, judge, self.known, stop, self._smaller, self.told.shrink_seconds)

    def over(self) -> bool:
        return time.time() >= self.told.until

    def judge(self, task: Task) -> Outcome:
        self._say("begin", task.blob)
        with np.errstate(all="ignore"):
            found = outcome(task.case.module, task.case.inputs, task.stacks, task.setting, patience=self._patience)
        self._count(task, found)
        return found

    def _count(self, task: Task, found: Outcome) -> None:
        self.cases += 1
        self.refused += found.kind is OutcomeKind.ALL_REFUSE
        if found.kind is OutcomeKind.UNDECIDED and not self._shrinks:
            self._say("undecided", task.blob)
        pairs = pairs_of(task.case.module)
        for stack in known_stacks(task.stacks):
            self.coverage.update((op, dtype, stack) for op, dtype in pairs)
        self.forms.update(frozenset[FormKey]().union(*(run.forms for run in found.runs.values())))
        if time.monotonic() - self.told_at > TELL_SECONDS:
            self._tell()

    def _tell(self) -> None:
        self._say("counts", self.cases, self.refused, dict(self.coverage), dict(self.again), dict(self.forms))
        self.cases, self.refused, self.told_at = 0, 0, time.monotonic()
        self.coverage.clear()
        self.forms.clear()
        self.again.clear()

    def _say(self, *message: Any) -> None:
        self.connection.send(message)

    def _smaller(self, caught: Catch) -> None:
        if not self._shrinks:
            self._patience, self._shrinks = patience_with_smaller(caught.outcome, self.told.limit), True
        self._tell()
        self._say("smaller", caught.task.blob)

    # findings

    def _suspect(self, blob: str) -> None:
        """A task that ended a process, in processes of its own from now on."""
        with Child(self.told.begin) as child:

            def judge(task: Task) -> Outcome:
                module, inputs = task.case.module, task.case.inputs
                return child.outcome(module, inputs, task.stacks, self._patience, task.setting)

            caught = self._round(judge, lambda: False).shrink(blob)
            if caught is not None:
                self._keep(caught, child)
            else:
                self._say("unrepeated", blob)

    def _keep(self, caught: Catch, child: Child | None = None) -> None:
        """Write a new finding, unless it turns out to be a known one now that it is small."""
        module, found = caught.task.case.module, caught.outcome
        units = units_in(module)
        same = next((c for c in self.known if c.explains(found, units)), None)
        if same is not None:
            self.again[same.name] += 1
            return
        found = self._once_more(caught.task, found, child)
        cause = cause_in(module, found)
        self.known.append(cause)
        folder = cause.folder(Path(self.told.folder))
        if not folder.exists():
            self._write(folder, caught.task, found)
        self._say("finding", cause, caught.task.blob, found.flaky, found.sentence)

    def _once_more(self, task: Task, found: Outcome, child: Child | None) -> Outcome:
        """The outcome of another run, marked as flaky if it ends otherwise."""
        module, inputs = task.case.module, task.case.inputs
        if child is None:
            once = partial(outcome, module, inputs, task.stacks, task.setting, patience=self._patience)
        else:
            once = partial(child.outcome, module, inputs, task.stacks, self._patience, task.setting)
        return confirmed(found, once)

    def _write(self, folder: Path, task: Task, found: Outcome) -> None:
        setting = replace(task.setting, cache=True)
        finding = finding_of(task.case.module, task.case.inputs, found, setting=setting)
        stages = {} if is_ending(found.kind.value) else None
        try:
            write_finding(folder, finding, stages=stages)
        except InputError:
            if not folder.exists():  # another process of the campaign may have written it meanwhile
                raise
        (folder / BLOB_FILE).write_text(task.blob + "\n", encoding="utf-8")
