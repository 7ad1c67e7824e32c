"""Profile: how often each step of a program ran, and how long. Times are nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

HEAD = ("step", "kind", "calls", "total us", "share", "mean us", "min us")
"""The columns of `Profile.cells`."""


@dataclass(frozen=True, slots=True)
class Row:
    """The times of one step. what: kernel, copy, while or conditional. depth: how many steps it is inside of.

    total, least: nanoseconds, without what the profile itself costs. A loop's times include its steps'. least: the
    shortest call.
    """

    id: int
    name: str
    what: str
    depth: int
    calls: int = 0
    total: float = 0.0
    least: float = 0.0

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

    def cells(self) -> list[tuple[str, ...]]:
        """A row of text for each step, as in HEAD."""
        whole = self.total or 1.0
        return [
            (
                "  " * row.depth + row.name,
                row.what,
                str(row.calls),
                f"{row.total / 1e3:.2f}",
                f"{100 * row.total / whole:.1f}%",
                f"{row.mean / 1e3:.2f}",
                f"{row.least / 1e3:.2f}",
            )
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
        table = [HEAD, *self.cells()]
        widths = [max(len(row[n]) for row in table) for n in range(len(HEAD))]
        lines = [
            "  ".join(cell.ljust(w) if n < 2 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths)))
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
                "depth": row.depth,
                "calls": row.calls,
                "total_ns": row.total,
                "mean_ns": row.mean,
                "min_ns": row.least,
            }
            for row in self.rows
        ]
        return {"runs": self.runs, "lost_events": self.lost, "event_ns": self.event, "steps": rows}
