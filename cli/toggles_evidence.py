"""The evidence of a refresh for one row: exact for its own kernels, drawn cases by form, and the row's quick gate.

`measured` runs in a process of its own; cases are counted by the caller, for all rows of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..benchmarks.rounds import Settings
from ..differential.gate.digest_cache import seeds_of
from ..differential.gate.digests import code_hash, drawn_digests, form_digests
from ..differential.gate.exact_forms import exact_forms
from ..differential.gate.staleness import changed_forms, libraries_of
from ..migration.form_evidence import FormEvidence, weakest
from ..migration.ledger import Evidence, Row
from ..migration.parity import PARITY
from .toggles_checks import named_checks
from .toggles_gate import run_gate, suites, versions

CASES = 2000
"""Of a row."""

QUICK = Settings(seconds=0.5, compiles=2)
"""Of the race. What it refuses is raced again at length."""

EACH_ROW = "aliasing,accuracy,x86-64-v3,x86-64-v4"
ONCE_A_UNIT = "scaling,rank,length"
"""What grows does so by the shape of the loops, which is the same for all types."""


@dataclass
class Drawn:
    """What drawn programs gave a row. cases: of all programs of the run that hold it; forms: of those with a kernel of
    the row in this form; seeds: the first of the row's own programs that has the form.
    """

    cases: int = 0
    own: int = 0
    forms: dict[str, int] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def measured(row: Row, drawn: Drawn, stacks: tuple[str, str], patience: float, grows: bool, cases: int) -> Evidence:
    """The evidence for a row. grows: whether what is asked once a unit is asked for this row."""
    own = form_digests(row.unit, row.dtypes, (), stacks)
    given = {**drawn.seeds, **dict(seeds_of(row))}
    seeds = {form: seed for form, seed in given.items() if form not in own}
    digests = {**own, **drawn_digests(row.unit, row.dtypes, seeds.items(), stacks)}
    seeds = {form: seed for form, seed in seeds.items() if form in digests}
    before = row.evidence
    if before is not None and libraries_of(before.versions) != libraries_of(versions(stacks)):
        before = None
    only = None if before is None or not before.forms else changed_forms(before, digests)
    methods, wrong = exact_forms(row.unit, row.dtypes, seeds, stacks, only)
    checks = named_checks(f"{EACH_ROW},{ONCE_A_UNIT}" if grows else EACH_ROW)
    found, _ = run_gate(row, PARITY.cases, suites(), settings=QUICK, stacks=stacks, patience=patience, checks=checks)
    if found.refused:
        found, _ = run_gate(row, PARITY.cases, suites(), stacks=stacks, patience=patience, checks=checks)
    forms = _forms(found, before, digests, drawn, seeds, methods)
    return replace(
        found,
        kind=weakest(f.method for f in forms if f.cases),
        cases=found.cases + drawn.cases,
        checks=", ".join([f"drawn {drawn.cases}", "exact", found.checks]),
        refused="; ".join([*([found.refused] if found.refused else []), *_refusals(drawn, wrong, cases)]),
        code=code_hash(),
        forms=forms,
    )


def _refusals(drawn: Drawn, wrong: list[str], cases: int) -> list[str]:
    said = [f"drawn: {drawn.wrong[0]}"] if drawn.wrong else []
    said += [f"exact: {wrong[0]}"] if wrong else []
    return [*said, *([f"drawn: {drawn.cases} cases of {cases}"] if drawn.cases < cases and not drawn.wrong else [])]


def _forms(
    found: Evidence,
    before: Evidence | None,
    digests: Mapping[str, str],
    drawn: Drawn,
    seeds: Mapping[str, int],
    methods: Mapping[str, str],
) -> tuple[FormEvidence, ...]:
    """Evidence by form. What has the code of before keeps it."""
    kept = {f.form: f for f in before.forms} if before is not None else {}
    made = []
    for form, digest in sorted(digests.items()):
        old = kept.get(form)
        if old is not None and old.digest == digest and old.cases:
            made.append(old)
            continue
        method, seed = methods.get(form, "sampled"), seeds.get(form, -1)
        made.append(FormEvidence(form, digest, drawn.forms.get(form, 0), method, found.commit, found.date, seed))
    return tuple(made)
