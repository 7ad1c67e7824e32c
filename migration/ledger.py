"""The ledger as a value: for each row (units.py) how far it has moved, from off through shadow to on and removed, and
the evidence for it. Changes are functions from ledger to ledger; ledger_file.py reads and writes it.
"""

from __future__ import annotations

import datetime
import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from ..hlo.errors import Location, TestbedError
from .form_evidence import METHODS, FormEvidence
from .ledger_states import STATES, USUAL, flags_of
from .names import HOST, RETIRED, XLA_STACKS
from .units import UNITS, row_names

Date = datetime.date

OPTIONS = {1: "keep", 2: "LLVM dialect", 3: "memref and loops", 4: "Linalg"}
"""How a unit may migrate: the plan's options."""

KINDS = METHODS
"""Classes of evidence, the weakest first."""

SOAK_DAYS = 21
"""Days that a row is on before its old emitters may go."""


class LedgerError(TestbedError):
    """A ledger that cannot be read, or a change that it does not permit."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a gate measured. Ratios are new stack to old; low and high bound the 95% interval of `ratio`.

    kind: of KINDS; exhaustive where every_input is pairs. pairs: of an opcode and an element type that the row has;
    every_input: those of which every input ran and agreed (`testbed exhaustive`); both 0 if that was not asked.
    worst_ulp: the largest difference between the stacks' floats. workloads: how many were timed.
    compile_ms: of a workload on the new stack, geometric mean. commit: whose files were measured, if they were of one.
    refused: why the gate refused; '' if it passed. checks: names of those that ran besides cases and race. code: hash
    of the files that make code, for which the digests of forms were found. forms: evidence by form, sorted.
    """

    kind: str
    cases: int
    seeds: str
    worst_ulp: float
    workloads: int
    ratio: float
    low: float
    high: float
    compile_ms: float
    compile_ratio: float
    memory_ratio: float
    date: Date
    versions: str
    commit: str
    refused: str = ""
    every_input: int = 0
    pairs: int = 0
    checks: str = ""
    code: str = ""
    forms: tuple[FormEvidence, ...] = ()

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the fields that the file has: the last five only where they say something."""
        silent = {name for name in ("checks", "code", "forms") if not getattr(self, name)}
        silent |= set() if self.pairs else {"every_input", "pairs"}
        return tuple(f.name for f in fields(self) if f.name not in silent)

    @property
    def seal(self) -> str:
        """A hash of all fields, which shows that they were changed by hand."""
        values = (getattr(self, name) for name in self.written)
        text = "\n".join("\n".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Hold:
    """An escape hatch: the row is held back until a date, for a reason."""

    until: Date
    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    """A change of state."""

    date: Date
    old: str
    new: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.date} {self.old} -> {self.new}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class Row:
    """name: unit.class.backend, as in units.py. option: of OPTIONS, what the unit's new emitters are."""

    name: str
    option: int
    history: tuple[Move, ...] = ()
    hold: Hold | None = None
    evidence: Evidence | None = None

    @property
    def state(self) -> str:
        return self.history[-1].new if self.history else "off"

    @property
    def unit(self) -> str:
        return self.name.split(".")[0]

    @property
    def dtypes(self) -> str:
        """The class of element types."""
        return self.name.split(".")[1]

    @property
    def is_on(self) -> bool:
        """Whether only the new emitters run."""
        return self.state in ("on", "removed")

    def expired(self, today: Date) -> bool:
        return self.hold is not None and self.hold.until < today


@dataclass(frozen=True)
class Ledger:
    """All rows by name. file: where it was read, for messages. stacks: the old one and the new one."""

    rows: Mapping[str, Row]
    file: str = "<ledger>"
    stacks: tuple[str, str] = USUAL

    def row(self, name: str) -> Row:
        """A row by its name; `.host` may be left out. Raises LedgerError with the nearest name."""
        for full in (name, f"{name}.{HOST}"):
            if full in self.rows:
                return self.rows[full]
        near = difflib.get_close_matches(name, [*self.rows, *(n.rpartition(".")[0] for n in self.rows)], 1)
        remedy = f"did you mean {near[0]!r}?" if near else "a row is UNIT.CLASS.BACKEND; testbed toggles lists them"
        raise LedgerError(f"the ledger has no row {name!r}", remedy=remedy)

    def with_row(self, row: Row) -> Ledger:
        return replace(self, rows={**self.rows, row.name: row})


def new_ledger(option: int = 1, stacks: tuple[str, str] = USUAL) -> Ledger:
    """A ledger in which every row is off. stacks: the old one and the new one."""
    return Ledger({name: Row(name, option) for name in row_names()}, stacks=stacks)


def refuse_record(ledger: Ledger) -> None:
    """Raise LedgerError for the ledger of a migration that is over: one of its stacks has another name now, or none."""
    if set(ledger.stacks) & set(RETIRED):
        old, new = ledger.stacks
        raise LedgerError(f"{ledger.file}: the migration from {old} to {new} is over", remedy="this ledger records it")


def move(ledger: Ledger, name: str, state: str, today: Date, reason: str = "", hold: Hold | None = None) -> Ledger:
    """The ledger with a row in another state. Raises LedgerError if the rules of the ledger forbid it.

    on needs evidence of a gate that passed, or a reason; removed needs SOAK_DAYS of on. hold: for rows held back.
    """
    refuse_record(ledger)
    row = ledger.row(name)
    _permit(row, state, today, reason)
    if state == "shadow" and ledger.stacks != USUAL:
        raise LedgerError(f"{row.name}: {ledger.stacks[1]} has no shadow", remedy="promote it: the gate compares")
    if hold is not None and STATES.index(state) > STATES.index("shadow"):
        raise LedgerError(f"{row.name}: only a row that is off or in shadow is held back", remedy="leave out the date")
    history = row.history if state == row.state else (*row.history, Move(today, row.state, state, reason))
    return ledger.with_row(replace(row, history=history, hold=hold))


def _permit(row: Row, state: str, today: Date, reason: str) -> None:
    if row.state == "removed" and state != "removed":
        raise LedgerError(f"{row.name}: its old emitters are removed", remedy="restore them with git first")
    passed = row.evidence is not None and not row.evidence.refused
    if state == "on" and row.state != "on" and not passed and not reason:
        why = row.evidence.refused if row.evidence else "no gate has run"
        raise LedgerError(
            f"{row.name}: not without evidence: {why}", remedy=f"testbed toggles promote {row.name}, or give a reason"
        )
    if state == "removed" and row.state != "removed":
        if row.state != "on" or not passed:
            raise LedgerError(
                f"{row.name} is {row.state}: only a row that its gate put on is removed", remedy="promote it"
            )
        days = (today - row.history[-1].date).days
        if days < SOAK_DAYS:
            raise LedgerError(
                f"{row.name} has been on for {days} days", remedy=f"remove its old emitters after {SOAK_DAYS}"
            )


def judge(ledger: Ledger, name: str, evidence: Evidence) -> Ledger:
    """The ledger after a gate ran: the row has its evidence, and is on if the gate passed; that lifts a hold.

    A refusal never moves a row.
    """
    row = replace(ledger.row(name), evidence=evidence)
    if evidence.refused or row.is_on:
        return ledger.with_row(row)
    history = (*row.history, Move(evidence.date, row.state, "on", "promoted by its gate"))
    return ledger.with_row(replace(row, history=history, hold=None))


def roll_back(ledger: Ledger, name: str, today: Date, reason: str = "", hold: Hold | None = None) -> Ledger:
    """The ledger with a row in the state before its last step forward. Raises LedgerError if there was none."""
    row = ledger.row(name)
    steps = [m for m in row.history if m.new == row.state and STATES.index(m.old) < STATES.index(m.new)]
    if not steps:
        raise LedgerError(f"{row.name} is {row.state} and has never been moved forward", remedy="nothing to roll back")
    said = "rolled back" + (f": {reason}" if reason else "")
    return move(ledger, row.name, steps[-1].old, today, said, hold)


def flags_text(ledger: Ledger, today: Date | None = None) -> str:
    """The flags that the ledger stands for. Raises LedgerError if a row's escape hatch has expired, for a record, and
    for rows on both of two stacks of XLA's, which no program can have.
    """
    refuse_record(ledger)
    for row in ledger.rows.values():
        if row.hold is not None and row.expired(today or Date.today()):
            raise LedgerError(
                f"{ledger.file}: {row.name} was held back until {row.hold.until} ({row.hold.reason})",
                remedy=f"testbed toggles promote {row.name}, or set it again with a later --until",
            )
    text = flags_of({name: row.state for name, row in ledger.rows.items()}, ledger.stacks)
    if "," in text and set(ledger.stacks) <= set(XLA_STACKS):
        raise LedgerError(
            f"{ledger.file}: a program is on one of {' and '.join(ledger.stacks)}, and rows of this ledger are on both",
            remedy=f"run it on each: testbed diff MODULE --stacks {','.join(ledger.stacks)}",
        )
    return text


def check_row(row: Row, place: Location) -> None:
    """Raise LedgerError for a name that is no row's, and for a history that does not follow from itself."""
    if row.name not in row_names():
        near = difflib.get_close_matches(row.name, row_names(), 1)
        remedy = (
            f"did you mean {near[0]!r}?" if near else f"a row is UNIT.CLASS.BACKEND, UNIT one of {', '.join(UNITS)}"
        )
        raise LedgerError(f"no such row: {row.name!r}", location=place, remedy=remedy)
    state = "off"
    for step in row.history:
        if step.old != state:
            raise LedgerError(
                f"{row.name}: history goes on from {step.old}, but was at {state}",
                location=place,
                remedy="let testbed toggles change the ledger",
            )
        state = step.new
