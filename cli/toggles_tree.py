"""`testbed toggles check`: the gate's cases on the stacks of another checkout or revision: which rows it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..differential.gate.other_tree import OtherTree, refusals, tree_of
from ..migration.ledger_file import read_ledger
from .output import say, wrapped
from .toggles_refresh import refuse_other_stacks


def check_tree(file: Path, given: str, names: Sequence[str], cases: int) -> int:
    """Judge another checkout's stacks on rows, all if none is named. The exit status: 1 if a row is refused."""
    ledger = read_ledger(file)
    refuse_other_stacks(ledger)
    rows = [ledger.row(name) for name in names] or [row for _, row in sorted(ledger.rows.items())]
    refused = []
    with tree_of(given) as root:
        tree = OtherTree(root)
        try:
            for row in rows:
                count, wrong = refusals(tree, row.unit, row.dtypes, ledger.stacks, cases)
                said = f"refused after {count} cases: {wrong[0]}" if wrong else f"passed, {count} cases"
                refused += [row.name] if wrong else []
                say(wrapped(f"{row.name}: {said}"))
        finally:
            tree.close()
    told = ", ".join(refused) or "none"
    say(wrapped(f"{len(rows) - len(refused)} of {len(rows)} rows pass on {given}; refused: {told}"))
    return int(bool(refused))
