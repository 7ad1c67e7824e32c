"""Profile: how often each step of a program ran, and how long. Times are nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from .facts import Known, StepFacts

HEAD = ("step", "kind", "calls", "total us", "share", "mean us", "min us", "source")
"""The columns of a profile; `source` only where something is known of it."""

WORDS = frozenset({"step", "kind", "source"})
"""Those that hold words, not numbers."""


@dataclass(frozen=True, slots=True)
class Row:
    """The times of one step. what: kernel, copy, while or conditional. depth: how many steps it is inside of.

    total, least: nanoseconds, without what the profile itself costs. A loop's times include its steps'. least: the
    shortest call. op_name, source: of the step's HLO instruction, or "".
    """

    id: int
    name: str
    what: str
    depth: int
    calls: int = 0
    total: float = 0.0
    least: float = 0.0
    op_name: str = ""
    source: str = ""

    @property
    def mean(self) -> float:
        return self.total / self.calls if self.calls else 0.0


@dataclass(frozen=True)
class Profile:
    """The rows of a program's steps, in the order of its text, over some runs.

    lost: events that did not fit into the buffer; the rows then tell of the beginning of each run only. event: what
    one event costs, in nanoseconds; it is subtracted.
    """

    rows: tuple[Row, ...]
    runs: int
    lost: int
    event: float

    @property
    def total(self) -> float:
        """Nanoseconds of the steps that are inside of no other."""
        return sum(row.total for row in self.rows if not row.depth)

    def with_facts(self, steps: Iterable[StepFacts]) -> Profile:
        """The profile with what is known of the steps of its plan."""
        known = Known(steps)

        def one(row: Row) -> Row:
            found = known.take(row.name, row.what)
            return row if found is None else replace(row, op_name=found.facts.op_name, source=found.facts.source)

        return replace(self, rows=tuple(map(one, self.rows)))

    @property
    def head(self) -> tuple[str, ...]:
        """The columns of `cells`, some of HEAD."""
        return HEAD if any(row.source or row.op_name for row in self.rows) else HEAD[:-1]

    def cells(self) -> list[tuple[str, ...]]:
        """A row of text for each step, as in `head`. A step without a place in the source has its op_name there."""
        whole, width = self.total or 1.0, len(self.head)
        return [
            (
                "  " * row.depth + row.name,
                row.what,
                str(row.calls),
                f"{row.total / 1e3:.2f}",
                f"{100 * row.total / whole:.1f}%",
                f"{row.mean / 1e3:.2f}",
                f"{row.least / 1e3:.2f}",
                row.source or row.op_name,
            )[:width]
            for row in self.rows
        ]

    def summary(self) -> str:
        """One line, and one more if events were lost."""
        runs = f"{self.runs} run{'s' * (self.runs != 1)}"
        text = f"{runs}, {self.total / 1e3:.2f} us in steps; the cost of an event, {self.event:.0f} ns, is subtracted"
        if self.lost:
            text += f"\n{self.lost} events did not fit: the times are those of the beginning of each run"
        return text

    def __str__(self) -> str:
        head = self.head
        table = [head, *self.cells()]
        widths = [max(len(row[n]) for row in table) for n in range(len(head))]
        lines = [
            "  ".join(c.ljust(w) if name in WORDS else c.rjust(w) for name, c, w in zip(head, row, widths))
            for row in table
        ]
        return "\n".join([*(line.rstrip() for line in lines), self.summary()])

    def to_json(self) -> dict[str, Any]:
        """The profile as values that JSON has (docs/json.md)."""
        rows = [
            {
                "name": row.name,
                "id": row.id,
                "kind": row.what,
                "op_name": row.op_name,
                "source": row.source,
                "depth": row.depth,
                "calls": row.calls,
                "total_ns": row.total,
                "mean_ns": row.mean,
                "min_ns": row.least,
            }
            for row in self.rows
        ]
        return {"runs": self.runs, "lost_events": self.lost, "event_ns": self.event, "steps": rows}
