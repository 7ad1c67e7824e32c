"""Evidence for one form of one stack in a row of the ledger, as a line of its file."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass

METHODS = ("sampled", "exact", "exhaustive", "proved")
"""How a form was compared, the weakest first."""

_LINE = re.compile(
    r"(\w+ \S+): code ([0-9a-f]{12}|-), (\d+) cases, (\w+), commit (\S+), (\d{4}-\d\d-\d\d)(?:, seed (\d+))?"
)


@dataclass(frozen=True, slots=True)
class FormEvidence:
    """form: of a stack, as in 'mlir reduce/run'. digest: of the code that it gives the row's programs (gate/digests.py
    in differential/). cases: compared runs of programs with a kernel of the row in this form. method: of METHODS: what
    holds for each of the row's own kernels in this form; sampled is of the cases alone. seed: of a drawn program that
    has the form, where no program of the row's own has it; -1: one has it.
    """

    form: str
    digest: str
    cases: int
    method: str
    commit: str
    date: datetime.date
    seed: int = -1

    def __str__(self) -> str:
        seed = f", seed {self.seed}" if self.seed >= 0 else ""
        code = self.digest or "-"
        return f"{self.form}: code {code}, {self.cases} cases, {self.method}, commit {self.commit}, {self.date}{seed}"


def form_evidence_of(line: str) -> FormEvidence:
    """The evidence that a line says. Raises ValueError for another line."""
    found = _LINE.fullmatch(line)
    if not found or found[4] not in METHODS:
        raise ValueError(f"no evidence of a form: {line!r}")
    form, digest, cases, method, commit, date, seed = found.groups()
    day = datetime.date.fromisoformat(date)
    return FormEvidence(form, digest.strip("-"), int(cases), method, commit, day, int(seed) if seed else -1)


def weakest(methods: Iterable[str]) -> str:
    """The weakest of some methods; sampled for none."""
    return min(methods, key=METHODS.index, default=METHODS[0])
