"""Tables as plain text, laid out by rich: no colours, no frames, no truncated cells, the same in a pipe."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Column

WIDEST = 10_000
"""Width limit in characters, larger than any table."""


def left(heading: str) -> Column:
    """A left-aligned column for words."""
    from rich.table import Column

    return Column(heading, no_wrap=True)


def right(heading: str) -> Column:
    """A right-aligned column for numbers."""
    from rich.table import Column

    return Column(heading, justify="right", no_wrap=True)


def text_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int | None = None) -> str:
    """The table as text: a line of headings, then a line per row, without a newline at the end.

    width: wrap cells of left-aligned columns between words so that lines have at most as many characters; None: no
    limit. A name in the first column is never broken: one that leaves no room for the others has a line of its own.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names: Iterator[str] = iter(())
    if width is not None:
        for column in columns:
            column.no_wrap, column.overflow = column.justify != "left", "fold"
        rows, names = _with_names_apart(columns, [list(row) for row in rows], width)
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(Text, row))  # no markup, because shapes contain brackets
    text = io.StringIO()
    console = Console(file=text, width=width or WIDEST, color_system=None, legacy_windows=False)
    console.print(table)
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    return "\n".join(next(names) if line == APART else line for line in lines)


APART = "\ue000"
"""Stands in a table for a name that has a line of its own. No name holds this character."""


def _with_names_apart(
    columns: Sequence[Column], rows: Sequence[list[str]], width: int
) -> tuple[Iterable[Sequence[str]], Iterator[str]]:
    """(The rows, with a row of APART and an empty cell in place of each name that is too long, these names)."""
    if not columns or columns[0].justify != "left":
        return rows, iter(())
    cells = list(zip(*[[str(c.header) for c in columns], *rows], strict=True))
    others = sum(2 + max(map(_least if c.justify == "left" else len, own)) for c, own in zip(columns[1:], cells[1:]))
    room = width - others
    fit = [_least(name) for name in cells[0] if _least(name) <= room]
    columns[0].min_width = max(fit, default=1)
    made: list[Sequence[str]] = []
    for row in rows:
        apart = _least(row[0]) > room
        made += [[APART, *[""] * (len(row) - 1)], ["", *row[1:]]] if apart else [row]
    return made, iter([row[0] for row in rows if _least(row[0]) > room])


def _least(cell: str) -> int:
    """The length of the longest word."""
    return max(map(len, cell.split()), default=0)
