"""`testbed bisect CASE`: finds the pass, emitter, buffer reuse or host program that is guilty of a mismatch."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .case import case_options, load_case
from .json_output import json_option, print_document
from .output import say, table, wrapped
from .progress import telling
from .status import UNDECIDED

if TYPE_CHECKING:
    from ..differential.bisect import Bisected


@click.command()
@case_options
@json_option("the culprit and the evidence")
def command(
    spec: str,
    stacks: str | None,
    seed: int | None,
    patience: float,
    exact: bool,
    without_form: tuple[str, ...],
    without_rewrite: tuple[str, ...],
    as_json: bool,
) -> int:
    """Find what is guilty of CASE by running it with one thing changed at a time, and name it with the evidence.

    CASE is the folder of a finding, or a MODULE as `testbed diff` takes; a small one (testbed reduce) is faster and
    clearer. Exit 0 if a culprit is named, 1 if the stacks agree, 3 if it is undecided whether they do.
    """
    from ..differential.child import Child
    from ..differential.exact_bisect import bisect
    from ..differential.outcome import OutcomeKind

    case = load_case(spec, stacks, seed, patience, exact, without_form, without_rewrite)
    with Child() as child, telling() as tell:
        found = bisect(case, child, on_step=tell)
    undecided = found.outcome.kind is OutcomeKind.UNDECIDED
    status = 0 if found.culprit else UNDECIDED if undecided else 1
    if as_json:
        body = {
            "case": case.module.name,
            "kind": found.outcome.kind.value,
            "blamed": list(found.outcome.blamed),
            "flaky": found.outcome.flaky,
            "culprit": found.culprit or None,
            "sentence": found.sentence or found.outcome.sentence,
            "toggles": found.toggles or None,
            "evidence": [asdict(e) for e in found.evidence],
        }
        return print_document("bisect", status, body)
    if not found.culprit:
        say(wrapped(f"nothing to bisect: {found.outcome.sentence}"))
        return status
    _print(found)
    return status


def _print(found: Bisected) -> None:
    from ..benchmarks.tables import left

    rows = [(e.changed or "as it is", "yes" if e.shows else "no", e.sentence) for e in found.evidence]
    say(table([left("run"), left("wrong"), left("verdict")], rows))
    if found.outcome.flaky:
        say(wrapped("the case is flaky: another run ended otherwise, so the evidence may mislead"))
    say(wrapped(f"culprit: {found.culprit}"))
    say(wrapped(found.sentence))
    if found.toggles:
        say(wrapped(f"to see it: {found.toggles}"))
