"""`testbed diff --exact`: a program's kernels, plan and passes over finite fields, in place of runs on inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .output import say, wrapped
from .status import UNDECIDED

if TYPE_CHECKING:
    from ..differential.exact.check import Row
    from ..formats.program import Program


def refuse_with_exact(given: dict[str, object]) -> None:
    """Raise UsageError for options that have no meaning with --exact, by their names."""
    for name, value in given.items():
        if value:
            raise click.UsageError(f"{name} and --exact exclude each other: it compares both stacks, without bounds")


def compare_exactly(program: Program, as_json: bool) -> tuple[int, dict[str, Any]]:
    """The exit status of a program, and what the JSON document says of it. Raises InputError for one that is a plan."""
    from ..differential.exact.check import Status
    from ..differential.exact.program import check_all
    from ..hlo.errors import InputError

    if program.plan is not None:
        raise InputError(f"{program.name}: --exact needs a module of HLO", remedy="testbed convert writes one")
    rows = check_all(program.module)
    worst = {r.status for r in rows}
    status = 1 if Status.DIFFER in worst else 0 if any(r.status is Status.EQUAL for r in rows) else UNDECIDED
    if not as_json:
        _print(rows)
    return status, {"exact": [body_of(r) for r in rows], "agrees": status == 0, "verdict": _sentence(rows)}


def _print(rows: Sequence[Row]) -> None:
    from ..differential.exact.check import Status

    for row in rows:
        if row.status is not Status.EQUAL or row.reason:
            say(wrapped(f"{row.status.value}  {row.kernel}: {row.reason}"))
    say(wrapped(f"verdict: {_sentence(rows)}"))


def _sentence(rows: Sequence[Row]) -> str:
    from ..differential.exact.check import Status

    wrong = [r for r in rows if r.status is Status.DIFFER]
    if wrong:
        return f"over a field, {wrong[0].kernel} differs: suspect {' and '.join(wrong[0].blamed)}"
    equal = [r for r in rows if r.status is Status.EQUAL]
    left = f"; {len(rows) - len(equal)} did not run" if len(equal) < len(rows) else ""
    draws = max((r.draws for r in equal), default=0)
    what = f"legacy, mlir and the HLO are equal over a field: {len(equal)} kernels and programs on {draws} draws{left}"
    return what if equal else "nothing ran over a field"


def body_of(row: Row) -> dict[str, Any]:
    """A row in JSON documents (docs/json.md)."""
    return {
        "kernel": row.kernel,
        "opcode": row.opcode,
        "status": row.status.value,
        "reason": row.reason,
        "blamed": list(row.blamed),
        "draws": row.draws,
        "prime": row.prime,
        "forms": [{"stack": stack, "form": form} for stack, form in row.forms],
    }
