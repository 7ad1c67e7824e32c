"""`testbed profile MODULE…`: where the time goes, by step, opcode, family, stack or source; and pictures of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..hlo.errors import InputError, TestbedError
from .inputs import Inputs, input_options
from .output import say
from .params import FILE, MODULE, handlers_option, host_program_option
from .profile_subjects import HOST, Options, Subject, is_saved, saved_or_measured, subjects_of
from .profile_tables import print_changes, print_report
from .programs import complain

if TYPE_CHECKING:
    from ..profiling.report import Report
    from .profile_subjects import Profiled

WAYS = ("instruction", "opcode", "family", "stack", "source")
"""profiling/groups.py has them; its own list is not imported, so that --help stays fast."""

PICTURES = {"--trace": (".json",), "--roofline": (".svg", ".png"), "--flame": (".svg", ".folded", ".txt")}
"""Option → the ends of names that it takes."""


@click.command()
@click.argument("modules", metavar="MODULE...", nargs=-1, required=True, type=MODULE)
@click.option(
    "--emitters", metavar="FLAGS", help="Stacks (legacy,mlir), or flags such as mlir,reduce=legacy.  [default: ledger]"
)
@click.option("--against", type=MODULE, metavar="MODULE", help="Compare with another MODULE, program or saved profile.")
@click.option("--against-emitters", metavar="FLAGS", help="Compare with the same MODULE on other flags.")
@input_options()
@click.option(
    "--iterations", type=click.IntRange(1), metavar="N", help="Runs of each form; without it, about half a second."
)
@click.option("--by", type=click.Choice(WAYS), default="instruction", show_default=True, help="What the rows are.")
@host_program_option
@handlers_option
@click.option("--platform", default=HOST, show_default=True, metavar="NAME",
              help="Where it runs. On a device, times are those of its queue's events.")  # fmt: skip
@click.option("--counters", is_flag=True, help="Also count cycles, instructions and misses, where the system lets us.")
@click.option("--json", "json_file", type=FILE, metavar="FILE", help="Write the profiles; - for standard output.")
@click.option("--trace", type=FILE, metavar="FILE.json", help="Write runs as a trace for Perfetto or chrome://tracing.")
@click.option("--roofline", type=FILE, metavar="FILE.svg|png", help="Draw kernels under the limits of this machine.")
@click.option("--flame", type=FILE, metavar="FILE.svg|folded", help="Draw the steps within steps, or their stacks.")
@click.option("--theme", type=click.Choice(("auto", "light", "dark")), default="auto", show_default=True,
              help="Colours of pictures. auto: a flame view follows its reader.")  # fmt: skip
def command(
    modules: tuple[str, ...],
    emitters: str | None,
    against: str | None,
    against_emitters: str | None,
    inputs: Inputs,
    iterations: int | None,
    by: str,
    host_program: str,
    handlers: tuple[str, ...],
    platform: str,
    counters: bool,
    json_file: str | None,
    trace: str | None,
    roofline: str | None,
    flame: str | None,
    theme: str,
) -> int:
    """Time MODULEs, or programs that `testbed compile` wrote, end to end and step by step.

    What the profile itself costs is measured and subtracted. A MODULE may also be a profile that --json wrote.
    """
    if platform != HOST and counters:
        raise click.UsageError("--counters counts what the host's processor does: leave out --platform")
    options = Options(inputs, iterations, host_program, counters, platform)
    pictures = {"--trace": trace, "--roofline": roofline, "--flame": flame}
    _check_names(pictures)
    subjects = subjects_of(modules, emitters)
    if against is not None or against_emitters is not None:
        if len(subjects) > 1 or any(pictures.values()):
            raise click.UsageError("a comparison takes one MODULE on one stack, and draws no pictures")
        other = Subject(against or subjects[0].spec, against_emitters or (None if against else emitters))
        return _compare(subjects[0], other, options, json_file)
    if any(pictures.values()) and (len(subjects) > 1 or is_saved(subjects[0].spec)):
        given = next(name for name, file in pictures.items() if file)
        raise click.UsageError(f"{given} takes one MODULE on one stack that is measured now")
    if roofline is not None:
        from .setup import provide

        provide("plot", "matplotlib")
    made: list[Report] = []
    failed = False
    for subject in subjects:
        try:
            found = saved_or_measured(subject, options)
        except TestbedError as error:
            if len(subjects) == 1:
                raise
            complain(error)
            failed = True
            continue
        shown = len(made)
        made += [one.report for one in found]
        if any(pictures.values()):  # before anything is printed: the reader of a pipe may go away
            _draw(found[0], pictures, theme)
        if json_file != "-":
            _write(made, json_file)
            for number, report in enumerate(made[shown:], shown):
                if number:
                    say()
                print_report(report, by)
    if json_file == "-":
        _write(made, json_file)
    elif json_file is not None:
        say(f"written to {json_file}", err=True)
    return 2 if failed else 0


def _check_names(pictures: dict[str, str | None]) -> None:
    for name, file in pictures.items():
        if file is not None and Path(file).suffix.lower() not in PICTURES[name]:
            raise click.UsageError(f"{name} {file}: give a name that ends in {' or '.join(PICTURES[name])}")


def _compare(old: Subject, new: Subject, options: Options, json_file: str | None) -> int:
    from ..profiling.compare import compare

    a, b = (_only(saved_or_measured(subject, options), subject) for subject in (old, new))
    _write([a, b], json_file)
    if json_file != "-":
        print_changes(a, b, compare(a, b))
    return 0


def _only(found: list[Profiled], subject: Subject) -> Report:
    if len(found) != 1:
        held = ", ".join(f"{one.report.program} on {one.report.emitters}" for one in found) or "nothing"
        raise InputError(f"{subject.spec}: holds {held}", remedy="compare files with one profile each")
    return found[0].report


def _write(reports: list[Report], json_file: str | None) -> None:
    if json_file is None:
        return
    from .. import __version__
    from ..formats.whole_files import write_text
    from ..profiling.report import to_json

    text = to_json(reports, __version__)
    if json_file == "-":
        click.echo(text, nl=False)
    else:
        write_text(Path(json_file), text)


def _draw(one: Profiled, pictures: dict[str, str | None], theme: str) -> None:
    for name, file in pictures.items():
        if file is not None:
            _DRAW[name](one, Path(file), theme)
            say(f"{'written' if name == '--trace' else 'drawn'} to {file}", err=True)


def _trace(one: Profiled, file: Path, theme: str) -> None:
    from ..formats.whole_files import write_text
    from ..profiling.trace import trace_text

    write_text(file, trace_text(one.report, one.recordings))


def _roofline(one: Profiled, file: Path, theme: str) -> None:
    from ..benchmarks.suite.limits import measure
    from ..display.roofline_plot import draw

    draw(one.report, measure(one.report.threads, launches=False), file, theme)


def _flame(one: Profiled, file: Path, theme: str) -> None:
    from ..formats.whole_files import write_text
    from ..profiling.flame import folded, svg

    write_text(file, svg(one.report, theme) if file.suffix.lower() == ".svg" else folded(one.report))


_DRAW: dict[str, Callable[[Profiled, Path, str], None]] = {
    "--trace": _trace,
    "--roofline": _roofline,
    "--flame": _flame,
}
