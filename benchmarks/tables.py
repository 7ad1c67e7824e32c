"""Tables as plain text, laid out by rich: no colours, no frames, no truncated cells, the same in a pipe."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
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

    width: wrap cells of left-aligned columns so that lines have at most as many characters; None: no limit.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if width is not None:
        for column in columns:
            column.no_wrap, column.overflow = column.justify != "left", "fold"
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(Text, row))  # no markup, because shapes contain brackets
    text = io.StringIO()
    console = Console(file=text, width=width or WIDEST, color_system=None, legacy_windows=False)
    console.print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
