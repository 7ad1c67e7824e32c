"""`testbed toggles refresh`: new evidence for rows whose code has changed, several rows at once. Each is written when
it is done, so that a run that is cut short loses no finished row.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from ..differential.child import Child
from ..differential.gate.campaign import Batch, programs_for
from ..differential.gate.digest_cache import found as digests_of
from ..differential.gate.drawn import MOST_FINDINGS
from ..differential.gate.staleness import stale
from ..hlo.errors import InputError
from ..migration.ledger import Evidence, Ledger, LedgerError, Row, judge, refuse_record
from ..migration.ledger_file import change_ledger, read_ledger
from ..migration.ledger_states import USUAL
from ..migration.units import ELEMENTAL
from .output import say, wrapped
from .toggles_evidence import Drawn, measured
from .toggles_gate import versions

OWN_PART = 4
"""A row whose programs others also hold has at least one in this many cases drawn for it."""

ROW_SECONDS = 3600.0
"""For all of a row but its drawn cases, whatever else the machine does."""


def refuse_other_stacks(ledger: Ledger) -> None:
    """Raise LedgerError for a ledger whose stacks have no forms."""
    refuse_record(ledger)
    if ledger.stacks != USUAL:
        raise LedgerError(f"{ledger.file}: its stacks have no forms", remedy="testbed toggles promote judges its rows")


def refresh_rows(
    file: Path, names: Sequence[str], every: bool, jobs: int, cases: int, patience: float, dry_run: bool
) -> int:
    """The exit status: 1 if a row is refused. names: rows that get new evidence, stale or not; none: those that are
    stale, or all.
    """
    from .toggles_promote import refuse_changed_files

    ledger = read_ledger(file)
    refuse_other_stacks(ledger)
    if not dry_run:
        refuse_changed_files()
    rows = [ledger.row(name) for name in names] or list(ledger.rows.values())
    if not names and not every:
        digests = digests_of(rows, jobs)
        rows = [row for row in rows if stale(row, digests[row.name], versions())]
    if not rows:
        say("no row is stale")
        return 0
    return _Refresh(file, rows, jobs, cases, patience, dry_run).run()


class _Refresh:
    """One run. Rows of ops come before the elemental ones, which most of their programs hold, too."""

    def __init__(self, file: Path, rows: Sequence[Row], jobs: int, cases: int, patience: float, dry_run: bool) -> None:
        self.file, self.jobs, self.cases = file, jobs, cases
        self.patience, self.dry_run = patience, dry_run
        self.left = deque(sorted(rows, key=lambda row: (row.unit == ELEMENTAL, row.name)))
        self.drawn = {row.name: Drawn() for row in rows}
        self.units: set[str] = set()
        self.lock, self.start, self.total = Lock(), time.monotonic(), len(rows)
        self.refused: list[str] = []
        self.done = 0

    def run(self) -> int:
        say(f"{self.total} rows, {self.cases} cases each, in {self.jobs} processes")
        with ThreadPoolExecutor(self.jobs) as pool:
            for worker in [pool.submit(self._rows) for _ in range(self.jobs)]:
                worker.result()
        refused = ", ".join(self.refused) or "none"
        say(wrapped(f"{self.total - len(self.refused)} of {self.total} passed; refused: {refused}"))
        return int(bool(self.refused))

    def _rows(self) -> None:
        with Child() as child:
            while True:
                with self.lock:
                    if not self.left:
                        return
                    row = self.left.popleft()
                    grows = row.unit not in self.units
                    self.units.add(row.unit)
                self._row(child, row, grows)

    def _row(self, child: Child, row: Row, grows: bool) -> None:
        begun, drawn = time.monotonic(), self.drawn[row.name]
        least = self.cases // OWN_PART

        def missing() -> int:
            return max(self.cases - drawn.cases, least - drawn.own)

        programs_for(child, row.unit, row.dtypes, USUAL, self.patience, missing, lambda batch: self._count(row, batch))
        arguments = (row, drawn, USUAL, self.patience, grows, self.cases)
        made = child.call(measured, *arguments, limit_s=ROW_SECONDS)
        if isinstance(made, str):
            raise InputError(f"{row.name}: its gate ended its process: {made}", remedy="report it")
        with self.lock:
            self._finish(row, made, time.monotonic() - begun)

    def _count(self, row: Row, batch: Batch) -> bool:
        """Count a program's cases; whether to go on."""
        with self.lock:
            own = self.drawn[row.name]
            if batch.complaint:
                own.wrong.append(batch.complaint)
            for name in batch.rows & self.drawn.keys() if not batch.complaint else {row.name}:
                self.drawn[name].cases += batch.cases
            own.own += batch.cases
            for name, form in batch.forms:
                if name in self.drawn:
                    forms = self.drawn[name].forms
                    forms[form] = forms.get(form, 0) + batch.cases
                if name == row.name:
                    own.seeds.setdefault(form, batch.seed)
            return len(own.wrong) < MOST_FINDINGS

    def _finish(self, row: Row, made: Evidence, seconds: float) -> None:
        self.done += 1
        if not self.dry_run:
            change_ledger(self.file, lambda ledger: judge(ledger, row.name, made))
        if made.refused:
            self.refused.append(row.name)
        what = f"refused: {made.refused}" if made.refused else f"passed, {made.cases} cases, {made.kind}"
        whole = time.monotonic() - self.start
        say(wrapped(f"{self.done} of {self.total} ({whole:.0f} s)  {row.name}: {what}, {seconds:.0f} s"))
