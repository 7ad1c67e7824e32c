"""`testbed reduce CASE`: makes the module and the inputs of a finding small, and writes them as a finding."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .case import case_options, load_case
from .json_output import json_option, print_document
from .output import say, wrapped
from .progress import telling
from .status import UNDECIDED

if TYPE_CHECKING:
    from ..differential.reduce.driver import Progress, Reduced, Reducer


@click.command()
@case_options
@click.option("-o", "folder", metavar="DIR", help="Folder for the small finding. [default: CASE's name and .reduced]")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="N",
    help="Stop after this time with the smallest case so far.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Candidates at once."
)
@json_option("the small module, its outcome and what was done")
def command(
    spec: str,
    stacks: str | None,
    seed: int | None,
    patience: float,
    exact: bool,
    without_form: tuple[str, ...],
    without_rewrite: tuple[str, ...],
    folder: str | None,
    seconds: float,
    jobs: int,
    as_json: bool,
) -> int:
    """Make CASE small while its stacks disagree in the same way: the same kind of outcome, the same blame.

    CASE is the folder of a finding, or a MODULE as `testbed diff` takes. XLA's kernels in a folder are of its module
    only: smaller modules run on those that jaxlib makes of them. Ctrl-C stops with the smallest case so far.
    Exit 0 if a small finding was written, 1 if there is nothing to reduce because the stacks agree, 3 if whether they
    do is undecided.
    """
    from ..differential.outcome import OutcomeKind
    from ..differential.reduce.driver import Reducer, check_folder
    from .interrupt import STATUS
    from .interrupt import patience as patient

    case = load_case(spec, stacks, seed, patience, exact, without_form, without_rewrite)
    if case.setting.dump:
        from .setup import provide

        provide("xla", "jaxlib")
    target = Path(folder or f"{Path(spec).name if spec != '-' else 'stdin'}.reduced")
    check_folder(target)
    with telling() as tell, patient(20):
        tell("the case itself runs, twice")
        reducer = Reducer(case, jobs=jobs, seconds=seconds, on_step=lambda progress: tell(_line(progress)))
        status = 0
        try:
            done = reducer.run()
        except KeyboardInterrupt:
            if reducer.outcome is None:
                raise
            done, status = reducer.result(), STATUS
        if done.outcome.is_finding:
            reducer.write(done, target)
    if not done.outcome.is_finding:
        kinds = {OutcomeKind.AGREE: "all stacks agree: ", OutcomeKind.UNDECIDED: ""}
        why = kinds.get(done.outcome.kind, "all stacks refuse: ")
        status = UNDECIDED if done.outcome.kind is OutcomeKind.UNDECIDED else 1
        say(wrapped(f"nothing to reduce, {why}{done.outcome.sentence}"), err=as_json)
        return print_document("reduce", status, _body(reducer, done, None)) if as_json else status
    if as_json:
        return print_document("reduce", status, _body(reducer, done, target))
    _print(reducer, done, target)
    return status


def _line(progress: Progress) -> str:
    return f"{progress.size} instructions are left, {progress.tried} tried, {progress.kept} kept: {progress.step}"


def _print(reducer: Reducer, done: Reduced, target: Path) -> None:
    progress = done.progress
    click.echo(done.finding.text)
    how = "no smaller one was found" if done.complete else "it may become smaller with more time"
    say(
        wrapped(
            f"{reducer.before} instructions became {progress.size} in {done.seconds:.1f} s "
            f"({progress.tried} candidates, {progress.kept} kept); {how}"
        )
    )
    if done.finding.setting.dump:
        say(
            wrapped(
                f"the module stays: it runs on XLA's kernels in {done.finding.setting.dump}, and with jaxlib's kernels "
                f"no smaller module has this outcome; testbed bisect {target} names the kernel"
            )
        )
    elif reducer.finding.setting.dump:
        say(wrapped("the small module runs on the kernels that jaxlib makes of it, with the same outcome"))
    flaky = " (flaky: another run ended otherwise)" if done.finding.flaky else ""
    say(wrapped(f"verdict: {done.outcome.sentence}{flaky}"))
    say(f"finding: {target}")


def _body(reducer: Reducer, done: Reduced, target: Path | None) -> dict[str, Any]:
    return {
        "case": reducer.finding.module.name,
        "kind": done.outcome.kind.value,
        "blamed": list(done.outcome.blamed),
        "verdict": done.outcome.sentence,
        "flaky": done.finding.flaky,
        "before": reducer.before,
        "after": done.progress.size,
        "tried": done.progress.tried,
        "kept": done.progress.kept,
        "complete": done.complete,
        "seconds": done.seconds,
        "folder": None if target is None else str(target),
        "hlo": done.finding.text,
    }
