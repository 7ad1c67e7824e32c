"""The flags that the package's own ledger stands for: the default, what a program gets where nobody names a stack.

Every process that compiles asks for them. So the file is scanned for sections and states, which takes a fiftieth of the
time of reading it whole. Whatever is not in the form that `testbed toggles` writes is left to the reader.
"""

from __future__ import annotations

import re

from .ledger_states import FILE, STATES, flags_of
from .units import row_names

_ROW = re.compile(r'\n\[([\w-]+\.\w+\.\w+)\]\nstate = "(\w+)"(?=\n)')
_OTHER = ("\nold", "\nnew", "\n<<<<<<<", "\n=======", "\n>>>>>>>", "\n|||||||")
"""Of a ledger of other stacks, and of a merge that was left unfinished."""


def default_flags() -> str:
    """The text of the flags. No history, evidence or date is judged. Raises InputError if there is no ledger, and
    LedgerError with line and column if it is damaged where the states are.
    """
    try:
        states = scan(FILE.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        states = None  # the reader has the words for it
    if states is not None:
        return flags_of(states)
    from .ledger import refuse_record
    from .ledger_file import read_ledger

    ledger = read_ledger(FILE)
    refuse_record(ledger)
    return flags_of({name: row.state for name, row in ledger.rows.items()}, ledger.stacks)


def scan(text: str) -> dict[str, str] | None:
    """The states of all rows by name; None for a text that only the reader can judge."""
    found = _ROW.findall(text)
    if sorted(name for name, _ in found) != row_names() or any(mark in text for mark in _OTHER):
        return None
    states = dict(found)
    return states if set(states.values()) <= set(STATES) else None
