"""`testbed buffers MODULE`: the buffer assignment of a module, as text and as a plot of the arena over time."""

from __future__ import annotations

from pathlib import Path

import click

from .output import say, wrapped
from .params import FILE, MODULE

FORMATS = (".svg", ".png")


@click.command()
@click.argument("module", type=MODULE)
@click.option(
    "--plot", metavar="OUT.SVG|PNG", type=FILE, help="Also plot the arena: time on the x axis, bytes on the y axis."
)
@click.option("--theme", type=click.Choice(("light", "dark")), default="light", show_default=True, help="Its colours.")
def command(module: str, plot: str | None, theme: str) -> int:
    """Print the allocations of MODULE, the arena's slices with their live ranges, and the totals."""
    from ..hlo.errors import InputError
    from ..migration.programs import load_program, plan_of
    from ..planning.buffer_report import report_buffers, report_to_text
    from ..planning.planner import plan
    from .setup import provide

    if plot is not None and Path(plot).suffix.lower() not in FORMATS:
        raise click.UsageError(f"--plot {plot}: give a name that ends in {' or '.join(FORMATS)}")
    if plot is not None:
        provide("plot", "matplotlib")
    program = load_program(module)
    if plan_of(program) is not None:
        raise InputError(f"{module}: LHLO fixes its buffers", remedy="testbed stages writes the plan with all slices")
    report = report_buffers(plan(program.module))
    if plot is not None:  # before anything is printed: the reader of a pipe may go away
        from ..display.buffers_plot import draw

        draw(report, Path(plot), theme)
        say(f"drawn to {plot}", err=True)
    for line in report_to_text(report).splitlines():
        say(wrapped(line, len(line) - len(line.lstrip()) + 4))
    return 0
