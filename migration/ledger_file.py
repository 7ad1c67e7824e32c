"""Reads and writes the ledger: TOML with a section a row, sorted, one fact a line, so that branches merge.

tomllib reads it. What is written is a function of the ledger only. A change reads, changes and replaces the file under
a lock on its folder, so that two writers at once lose nothing.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..formats.documents import toml_of
from ..formats.program import read_text
from ..formats.whole_files import write_text
from ..hlo.errors import InputError, Location
from .form_evidence import form_evidence_of
from .ledger import KINDS, OPTIONS, Evidence, Hold, Ledger, LedgerError, Move, Row, check_row, new_ledger
from .ledger_states import FILE, STATES, USUAL
from .names import RETIRED, STACK_NAMES, XLA_STACKS
from .units import row_names

RECORDS = ("structured.toml", "xla.toml")
"""Ledgers of other migrations, next to it."""

_WITH_LEDGER = (*STACK_NAMES, *XLA_STACKS)
"""Stacks that a migration may leave, or go to."""

HEAD = (
    "# How far each unit has moved from the old emitters to the new: docs/migrating.md. `testbed toggles` writes it.\n"
)
CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.M)
_MOVE = re.compile(r"(\d{4}-\d\d-\d\d) (\w+) -> (\w+)(?:: (.*))?", re.S)


def read_ledger(path: Path = FILE) -> Ledger:
    """The ledger in a file. Raises InputError, or LedgerError with line and column."""
    return parse_ledger(read_text(path), str(path))


def parse_ledger(text: str, file: str) -> Ledger:
    """The ledger in a text. Raises LedgerError with line and column."""
    found = CONFLICT.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise LedgerError(
            "a merge was left unfinished here",
            location=Location(line, 1, file),
            remedy="keep one of the two sides of each conflict, row by row",
        )
    try:
        tables = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(error, text, file) from None
    reader = _Reader(text, file)
    stacks = reader.stacks(tables)
    rows = {}
    for unit, classes in reader.tables(tables, ""):
        for name, ends in reader.tables(classes, unit):
            for end, row in reader.tables(ends, f"{unit}.{name}"):
                full = f"{unit}.{name}.{end}"
                rows[full] = reader.row(full, row)
    for name in row_names():
        if name not in rows:
            last = Location(text.count("\n") + 1, 1, file)
            raise LedgerError(f"the row {name} is missing", location=last, remedy="restore it with git")
    return Ledger(rows, file, stacks)


def _not_toml(error: tomllib.TOMLDecodeError, text: str, file: str) -> LedgerError:
    message, _, place = str(error).partition(" (at ")
    numbers = [int(n) for n in re.findall(r"\d+", place)]
    line, column = numbers if len(numbers) == 2 else (text.count("\n") + 1, 1)
    return LedgerError(
        f"not TOML: {message.lower()}", location=Location(line, column, file), remedy="restore the line with git"
    )


class _Reader:
    """Turns tables into rows; its errors have the place of the key."""

    def __init__(self, text: str, file: str):
        self.file = file
        self.places: dict[tuple[str, str], Location] = {}
        section = ""
        for number, line in enumerate(text.splitlines(), 1):
            if head := re.match(r"\s*\[([^\]]+)\]", line):
                section = head[1].replace(" ", "")
                self.places.setdefault((section, ""), Location(number, 1, file))
            elif key := re.match(r"\s*([\w-]+)\s*=\s*", line):
                self.places.setdefault((section, key[1]), Location(number, key.end() + 1, file))

    def place(self, section: str, key: str = "") -> Location:
        return self.places.get((section, key), self.places.get((section, ""), Location(1, 1, self.file)))

    def fail(
        self, message: str, section: str, key: str = "", remedy: str = "let testbed toggles write it"
    ) -> LedgerError:
        return LedgerError(message, location=self.place(section, key), remedy=remedy)

    def stacks(self, tables: dict[str, Any]) -> tuple[str, str]:
        """The old and the new stack, taken out of the tables."""
        found = [tables.pop(key, usual) for key, usual in zip(("old", "new"), USUAL, strict=True)]
        for key, name in zip(("old", "new"), found, strict=True):
            if name not in (*_WITH_LEDGER, *RETIRED):
                raise self.fail(f"no stack {name!r}", "", key, f"one of {', '.join((*_WITH_LEDGER, *RETIRED))}")
        return found[0], found[1]

    def tables(self, table: dict[str, Any], section: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The tables in a table. A value where a table belongs is an error."""
        for name, value in table.items():
            if not isinstance(value, dict):
                raise self.fail(f"{name!r} stands in no row", section, name, "a row is a section [UNIT.CLASS.BACKEND]")
            yield name, value

    def row(self, name: str, table: dict[str, Any]) -> Row:
        values = self.values(name, table, _ROW)
        if values["option"] not in OPTIONS:
            raise self.fail(f"no option {values['option']}", name, "option", f"one of {', '.join(map(str, OPTIONS))}")
        history = tuple(self.step(name, line) for line in values["history"])
        row = Row(name, values["option"], history, self.hold(name, values), self.evidence(name, values))
        check_row(row, self.place(name, "history") if history else self.place(name))
        if values["state"] != row.state:
            raise self.fail(f"state is {values['state']!r}, but the history ends in {row.state!r}", name, "state")
        return row

    def values(self, section: str, table: dict[str, Any], form: dict[str, tuple[type, ...]]) -> dict[str, Any]:
        """The values of a section, each of its type, None where an optional one is missing."""
        for key, value in table.items():
            if key not in form:
                raise self.fail(f"unknown key {key!r}", section, key, f"known are {', '.join(form)}")
            if type(value) not in form[key]:
                kinds = " or ".join(kind.__name__ for kind in form[key] if kind is not type(None))
                raise self.fail(f"{key} is {value!r}, not a {kinds}", section, key)
        for key, types in form.items():
            if key not in table and type(None) not in types:
                raise self.fail(f"{key} is missing", section)
        return {key: table.get(key) for key in form}

    def step(self, name: str, line: Any) -> Move:
        found = _MOVE.fullmatch(line) if isinstance(line, str) else None
        if not found or found[2] not in STATES or found[3] not in STATES:
            raise self.fail(f"no step of a history: {line!r}", name, "history", "DATE STATE -> STATE: REASON")
        try:
            return Move(datetime.date.fromisoformat(found[1]), found[2], found[3], found[4] or "")
        except ValueError:
            raise self.fail(f"no date: {found[1]}", name, "history") from None

    def hold(self, name: str, values: dict[str, Any]) -> Hold | None:
        if values["hold"] is None:
            return None
        return Hold(**self.values(f"{name}.hold", values["hold"], {"until": (datetime.date,), "reason": (str,)}))

    def evidence(self, name: str, values: dict[str, Any]) -> Evidence | None:
        if values["evidence"] is None:
            return None
        section = f"{name}.evidence"
        found = self.values(section, values["evidence"], {**_EVIDENCE, "seal": (str,)})
        seal = found.pop("seal")
        try:
            found["forms"] = tuple(form_evidence_of(str(line)) for line in found["forms"] or ())
        except ValueError as error:
            raise self.fail(str(error), section, "forms") from None
        evidence = Evidence(**{key: value for key, value in found.items() if value is not None})
        if evidence.kind not in KINDS:
            raise self.fail(f"no class of evidence: {evidence.kind!r}", section, "kind", f"one of {', '.join(KINDS)}")
        if seal != evidence.seal:
            remedy = f"restore it with git, or run testbed toggles promote {name}"
            raise self.fail("the evidence is not what the gate wrote", section, "seal", remedy)
        return evidence


_ROW: dict[str, tuple[type, ...]] = {
    "state": (str,),
    "option": (int,),
    "history": (list,),
    "hold": (dict, type(None)),
    "evidence": (dict, type(None)),
}
_TYPES = {"str": str, "int": int, "float": float, "Date": datetime.date, "tuple[FormEvidence, ...]": list}
_LATER = ("every_input", "pairs", "checks", "code", "forms")
"""Fields of evidence that older evidence lacks."""
_EVIDENCE: dict[str, tuple[type, ...]] = {
    f.name: (_TYPES[str(f.type)], *([type(None)] if f.name in _LATER else [])) for f in fields(Evidence)
}


def ledger_text(ledger: Ledger) -> str:
    """The ledger as TOML."""
    stacks = "" if ledger.stacks == USUAL else "\nold = {}\nnew = {}\n".format(*map(_value, ledger.stacks))
    return HEAD + stacks + "".join(f"\n{_section(row)}" for _, row in sorted(ledger.rows.items()))


def _section(row: Row) -> str:
    lines = [f"[{row.name}]", f"state = {_value(row.state)}", f"option = {row.option}"]
    if row.history:
        lines += ["history = [", *(f"  {_value(str(step))}," for step in row.history), "]"]
    else:
        lines.append("history = []")
    if row.hold is not None:
        lines += [f"[{row.name}.hold]", *_lines(row.hold, [f.name for f in fields(row.hold)])]
    if row.evidence is not None:
        lines += [f"[{row.name}.evidence]", *_lines(row.evidence, row.evidence.written)]
        lines.append(f"seal = {_value(row.evidence.seal)}")
    return "\n".join(lines) + "\n"


def _lines(part: Hold | Evidence, names: Sequence[str]) -> Iterator[str]:
    return (f"{name} = {_value(getattr(part, name))}" for name in names)


def _value(value: Any) -> str:
    """A value in TOML. JSON's strings are TOML's, but for a control character that JSON leaves as it is."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "\n".join(["[", *(f"  {_value(str(line))}," for line in value), "]"])
    return value.isoformat() if isinstance(value, datetime.date) else repr(value)


def change_ledger(path: Path, change: Callable[[Ledger], Ledger]) -> Ledger:
    """Replace the ledger in a file by what `change` makes of it, and return that. Writers wait for each other."""
    with _alone(path.parent):
        ledger = change(read_ledger(path))
        write_text(path, ledger_text(ledger))
    return ledger


def begin_ledger(path: Path, old: str, new: str, option: int) -> None:
    """Write the ledger of a migration between two stacks, all rows off. Raises LedgerError for stacks that have none,
    InputError if there is a file.
    """
    stacks = (old, new)
    if set(stacks) - set(_WITH_LEDGER) or old == new:
        what = f"no migration from {old} to {new}"
        raise LedgerError(what, remedy=f"give two of {', '.join(_WITH_LEDGER)}")
    with _alone(path.parent):
        if path.exists():
            raise InputError(f"{path} exists", remedy="give a new file")
        write_text(path, ledger_text(new_ledger(option, stacks)))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: cannot open: {error.strerror}", remedy="give a ledger in a folder") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
