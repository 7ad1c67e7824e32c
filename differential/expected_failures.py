"""A list of cases that are known to fail: `CASE reason` or `CASE@STACK reason` a line; `#` begins a comment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..formats.program import read_text
from ..hlo.errors import InputError
from .report import CaseResult

FAILURES = ("failed", "crashed")


@dataclass(frozen=True)
class Entry:
    """One line. stack: '' for all stacks. place: file:line, for messages."""

    case: str
    stack: str
    reason: str
    place: str

    def covers(self, row: CaseResult) -> bool:
        return row.id == self.case and self.stack in ("", row.stack)


def read_expected_failures(path: Path, cases: Iterable[str], stacks: Sequence[str]) -> tuple[Entry, ...]:
    """The entries of a file. cases: ids of the whole suite. stacks: all names that a stack can have.

    Raises InputError with file and line for a line without a reason, an unknown case or stack, and a second entry.
    """
    known, found = set(cases), dict[tuple[str, str], Entry]()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, _, reason = text.partition(" ")
        case, at, stack = name.rpartition("@") if "@" in name and name not in known else (name, "", "")
        place = f"{path}:{number}:1"
        if not reason.strip():
            raise InputError(f"{place}: {name} has no reason", remedy="write CASE reason, or CASE@STACK reason")
        if case not in known:
            raise InputError(f"{place}: the suite has no case {case!r}", remedy="remove the line, or correct the id")
        if at and stack not in stacks:
            raise InputError(f"{place}: unknown stack {stack!r}", remedy=f"choose from {', '.join(stacks)}")
        if (case, stack) in found:
            raise InputError(f"{place}: a second entry for {name}", remedy="remove one")
        found[case, stack] = Entry(case, stack, reason.strip(), place)
    return tuple(found.values())


def split(
    rows: Sequence[CaseResult], entries: Sequence[Entry]
) -> tuple[dict[int, str], list[tuple[Entry, CaseResult]]]:
    """Rows that fail as an entry says (number of the row → reason), and (entry, row) where what was to fail passed.

    An entry of which a case ran on no stack says nothing, and an unsupported case neither fails nor passes.
    """
    by_case: dict[str, list[Entry]] = {}
    for entry in entries:
        by_case.setdefault(entry.case, []).append(entry)
    expected: dict[int, str] = {}
    passing: list[tuple[Entry, CaseResult]] = []
    for number, row in enumerate(rows):
        for entry in by_case.get(row.id, ()):
            if not entry.covers(row):
                continue
            if row.status in FAILURES:
                expected.setdefault(number, entry.reason)
            elif row.status == "passed":
                passing.append((entry, row))
    return expected, passing
