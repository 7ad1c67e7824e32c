"""`testbed buffers MODULE`: the buffer assignment of a module, as text and as a plot of the arena over time."""

from __future__ import annotations

from pathlib import Path

import click

FORMATS = (".svg", ".png")


@click.command()
@click.argument("module")
@click.option("--plot", metavar="OUT.SVG|PNG", help="Also plot the arena: time on the x axis, bytes on the y axis.")
def command(module: str, plot: str | None) -> int:
    """Print the allocations of MODULE, the arena's slices with their live ranges, and the totals."""
    from ..formats.program import load_program
    from ..planning.buffer_report import report_buffers, report_to_text
    from ..planning.planner import plan

    if plot is not None and Path(plot).suffix.lower() not in FORMATS:
        raise click.UsageError(f"--plot {plot}: give a name that ends in {' or '.join(FORMATS)}")
    program = load_program(module)
    report = report_buffers(plan(program.module))
    click.echo(report_to_text(report), nl=False)
    if plot is not None:
        from .buffers_plot import draw

        draw(report, Path(plot))
        click.echo(f"drawn to {plot}", err=True)
    return 0
