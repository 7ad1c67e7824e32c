"""`testbed toggles stale`: rows whose code has changed since it was compared, and the rule that CI has for them."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ..benchmarks.suite.machine import ROOT
from ..differential.gate.digest_cache import found, known
from ..differential.gate.digests import code_hash
from ..differential.gate.staleness import Stale, libraries_of, stale
from ..migration.ledger import Evidence, Ledger, Row
from ..migration.ledger_file import read_ledger
from ..migration.ledger_states import USUAL
from .output import say, wrapped
from .toggles_gate import versions
from .toggles_refresh import refuse_other_stacks

REMEDY = "testbed toggles refresh"
SHOWN = 6
"""Forms that a line names."""


def print_stale(file: Path, limit: int | None, jobs: int) -> int:
    """Print the rows on with stale evidence. The exit status: 1 if there is one. limit: days of commits that a row may
    be so; rows with newer evidence are not asked.
    """
    ledger = read_ledger(file)
    refuse_other_stacks(ledger)
    rows = [row for row in ledger.rows.values() if row.is_on]
    asked = rows if limit is None else [row for row in rows if _age(row.evidence) > datetime.timedelta(limit)]
    code = code_hash()
    digests = found([row for row in asked if not _is_of(row, code)], jobs)
    seen = {row.name: s for row in asked if row.name in digests and (s := stale(row, digests[row.name], versions()))}
    late = seen if limit is None else {n: s for n, s in seen.items() if _late(ledger.row(n), s, limit)}
    for name, one in sorted(late.items()):
        say(wrapped(f"{name}: {described(one)}"))
    than = f" for more than {limit} days of commits" if limit is not None else ""
    say(wrapped(f"{len(late)} of {len(rows)} rows that are on have stale evidence{than}"))
    if late:
        say(f"run: {REMEDY}")
    return int(bool(late))


def described(found: Stale) -> str:
    """In a line."""
    more = f" and {len(found.forms) - SHOWN} more" if len(found.forms) > SHOWN else ""
    return found.why if not found.why.startswith("changed") else f"changed: {', '.join(found.forms[:SHOWN])}{more}"


def notes(ledger: Ledger) -> Iterator[str]:
    """Lines below the table of rows: which evidence is stale, as far as that is known without emitting anything."""
    seen, open_ = at_once(ledger)
    for name, one in seen.items():
        yield f"{name.removesuffix('.host')}: stale: {described(one)}"
    if open_:
        yield f"whether the code of {len(open_)} rows has changed is not known: testbed toggles stale finds out"


def at_once(ledger: Ledger) -> tuple[dict[str, Stale], list[str]]:
    """(Rows with stale evidence; rows of which that is not known), without emitting anything: by the hash of the files
    that make code, and by digests that are in the cache.
    """
    if ledger.stacks != USUAL:
        return {}, []
    rows = [row for _, row in sorted(ledger.rows.items()) if row.evidence is not None and row.evidence.forms]
    if not rows:
        return {}, []
    code = code_hash()
    asked = [row for row in rows if not _is_of(row, code)]
    digests = known(asked)
    seen = {row.name: s for row in asked if row.name in digests and (s := stale(row, digests[row.name], versions()))}
    return seen, [row.name for row in asked if row.name not in digests]


def _is_of(row: Row, code: str) -> bool:
    """Whether a row's evidence is of the files and versions of now."""
    evidence = row.evidence
    if evidence is None or evidence.code != code:
        return False
    return libraries_of(evidence.versions) == libraries_of(versions())


def _late(row: Row, seen: Stale, limit: int) -> bool:
    """Whether what has changed was measured more than `limit` days of commits ago."""
    assert row.evidence is not None or not seen.forms
    measured = [f.commit for f in row.evidence.forms if f.form in seen.forms] if row.evidence else []
    if not measured:  # new forms, or none at all
        return _age(row.evidence) > datetime.timedelta(limit)
    assert row.evidence is not None
    return max(_since(c, row.evidence.date) for c in measured) > datetime.timedelta(limit)


def _age(evidence: Evidence | None) -> datetime.timedelta:
    """How much older the oldest commit that evidence names is than HEAD; without evidence, any age."""
    if evidence is None:
        return datetime.timedelta.max
    named = {(evidence.commit, evidence.date), *((f.commit, f.date) for f in evidence.forms)}
    return max(_since(commit, date) for commit, date in named)


def _since(commit: str, date: datetime.date) -> datetime.timedelta:
    """From a commit to HEAD; where git does not know the commit, from its date."""
    then = _committed(commit) or datetime.datetime.combine(date, datetime.time(), datetime.UTC)
    return (_committed("HEAD") or datetime.datetime.now(datetime.UTC)) - then


@cache
def _committed(commit: str) -> datetime.datetime | None:
    command: Sequence[str] = ["git", "-C", str(ROOT), "show", "-s", "--format=%ct", commit, "--"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode or not done.stdout.strip().isdigit():
        return None
    return datetime.datetime.fromtimestamp(int(done.stdout), datetime.UTC)
