"""Ledgers and evidence for tests."""

import datetime
from dataclasses import replace

from ...migration.ledger import Evidence, Ledger, new_ledger
from ...migration.ledger_file import ledger_text

DAY = datetime.date(2026, 3, 1)
GOOD = Evidence("sampled", 40, "0-39", 2.0, 3, 1.01, 0.99, 1.03, 12.5, 1.3, 1.0, DAY, "testbed 0.1.0", "0123abc")
BAD = replace(GOOD, refused="20% slower than the old emitters")


def ledger_file(folder, ledger: Ledger | None = None):
    """The path of a ledger in a folder; every row is off if none is given."""
    path = folder / "ledger.toml"
    path.write_text(ledger_text(ledger or new_ledger(2)))
    return path
