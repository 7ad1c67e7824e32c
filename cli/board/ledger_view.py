"""The ledger as the board shows it: a matrix of states, each row's evidence, the plan's options with their costs."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from ...migration.costs import Costs, costs_of
from ...migration.ledger import OPTIONS, Evidence, Ledger, Row
from ...migration.ledger_states import STATES
from ...migration.names import WITH_ROWS
from ...migration.parity import PARITY
from ...migration.units import CLASSES, UNITS
from ...migration.weights import Weights, migrated, share_of

GLYPHS = {"off": "○", "shadow": "◐", "on": "●", "removed": "■"}
"""State → a sign that reads without colour."""

MEANINGS = {
    "off": "the old emitters run",
    "shadow": "both run, and the old ones' results count",
    "on": "the new emitters run",
    "removed": "the new emitters run, the old ones are gone",
}


@dataclass(frozen=True)
class RowView:
    """A row of the ledger. share: of kernel time, that needs it. note: why it is refused or held back."""

    name: str
    id: str
    unit: str
    dtypes: str
    state: str
    option: str
    evidence: Evidence | None
    share: float
    note: str
    history: tuple[str, ...]

    @property
    def glyph(self) -> str:
        return GLYPHS[self.state]

    @property
    def is_at_parity(self) -> bool:
        return self.evidence is not None and not self.evidence.refused


@dataclass(frozen=True)
class OptionView:
    """One of the plan's options."""

    number: int
    name: str
    costs: Costs


@dataclass(frozen=True)
class Matrix:
    """A table of units by classes for one back end. lines: (unit, its rows in the order of classes)."""

    back_end: str
    classes: tuple[tuple[str, str], ...]
    lines: tuple[tuple[str, tuple[RowView, ...]], ...]


@dataclass(frozen=True)
class LedgerView:
    """migrated: the share of kernel time whose rows are all on. library: that of kernels that need no row. stacks: the
    old one and the new one.
    """

    stacks: tuple[str, str]
    rows: tuple[RowView, ...]
    matrices: tuple[Matrix, ...]
    options: tuple[OptionView, ...]
    states: tuple[tuple[str, str, str, int], ...]
    migrated: float
    library: float
    programs: int
    kernels: int

    @property
    def on(self) -> int:
        return sum(row.state in ("on", "removed") for row in self.rows)

    @property
    def waiting(self) -> list[RowView]:
        """Rows that are not on, those that hold back the most kernel time first."""
        return sorted((r for r in self.rows if r.state in ("off", "shadow")), key=lambda r: (-r.share, r.name))


def ledger_view(ledger: Ledger, weights: Weights, today: datetime.date) -> LedgerView:
    """today: decides which escape hatches have expired."""
    rows = {name: _row(row, weights, today) for name, row in sorted(ledger.rows.items())}
    classes = tuple((name, ", ".join(sorted(d.value for d in types))) for name, types in CLASSES.items())
    matrices = tuple(
        Matrix(
            end,
            classes,
            tuple((unit, tuple(rows[f"{unit}.{name}.{end}"] for name, _ in classes)) for unit in UNITS),
        )
        for end in WITH_ROWS
    )
    found = tuple(rows.values())
    states = tuple((s, GLYPHS[s], MEANINGS[s], sum(r.state == s for r in found)) for s in STATES)
    of = {number: [row for row in ledger.rows.values() if row.option == number] for number in OPTIONS}
    options = tuple(OptionView(number, OPTIONS[number], costs_of(rows_of)) for number, rows_of in of.items())
    library = sum(share for names, share in weights.shares.items() if not names)
    done = migrated(weights, ledger)
    return LedgerView(ledger.stacks, found, matrices, options, states, done, library, weights.programs, weights.kernels)


def _row(row: Row, weights: Weights, today: datetime.date) -> RowView:
    return RowView(
        row.name,
        "row-" + row.name.replace(".", "-"),
        row.unit,
        row.dtypes,
        row.state,
        f"{row.option} {OPTIONS[row.option]}",
        row.evidence,
        share_of(weights, row.name),
        "; ".join(_notes(row, today)),
        tuple(map(str, row.history)),
    )


def _notes(row: Row, today: datetime.date) -> list[str]:
    notes = []
    if row.evidence is None:
        notes.append("no gate has run")
    elif row.evidence.refused:
        notes.append(f"refused: {row.evidence.refused}")
    if row.hold is not None:
        word = "EXPIRED on" if row.expired(today) else "held back until"
        notes.append(f"{word} {row.hold.until}: {row.hold.reason}")
    return notes


LIMITS = PARITY
"""What parity is, in numbers: the lines of the plots."""
