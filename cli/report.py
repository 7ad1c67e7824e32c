"""`testbed report`: the board, a folder of static pages that show the migration, its evidence and what is open."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..hlo.errors import InputError
from .output import say
from .params import FILE

if TYPE_CHECKING:
    from ..benchmarks.ab_history import Record
    from ..benchmarks.suite.results import Report
    from ..hlo.dtypes import DType
    from ..hlo.opcodes import Op


@click.command()
@click.option("-o", "--output", default="board", show_default=True, type=FILE, metavar="DIR", help="Folder to write.")
@click.option("--ledger", type=FILE, metavar="FILE", help="Another ledger than the package's.")
@click.option("--weights", type=FILE, metavar="FILE", help="Other shares of kernel time, as harvest writes them.")
@click.option(
    "--findings",
    multiple=True,
    type=FILE,
    metavar="DIR",
    help="Findings of fuzz or reduce, or folders with some below. Repeatable.",
)
@click.option(
    "--profile", "profiles", multiple=True, type=FILE, metavar="FILE", help="What profile --json wrote. Repeatable."
)
@click.option(
    "--kernels",
    multiple=True,
    type=FILE,
    metavar="DIR",
    help="A kernel on several stacks, as stages --kernel writes it. Repeatable.",
)
@click.option(
    "--exhaustive", type=FILE, metavar="FILE", help="What exhaustive -o wrote: which pairs ran on every input."
)
@click.option(
    "--history",
    "histories",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="What --history of ab or of the benchmark suite wrote. Repeatable.",
)
def command(
    output: str,
    ledger: str | None,
    weights: str | None,
    findings: tuple[str, ...],
    profiles: tuple[str, ...],
    kernels: tuple[str, ...],
    exhaustive: str | None,
    histories: tuple[str, ...],
) -> int:
    """Write the board: static pages of ledger, coverage, speed, findings, kernels and profiles. Open DIR/index.html.

    An earlier board in DIR is replaced as a whole; another folder never is.
    """
    from .setup import provide

    provide("plot", "jinja2")
    from ..formats.whole_files import write_folder
    from ..migration.ledger_file import read_ledger
    from ..migration.ledger_states import FILE as LEDGER
    from ..migration.weights import FILE as WEIGHTS
    from ..migration.weights import read_weights
    from .board.coverage import coverage
    from .board.findings_view import findings_in
    from .board.kernels_view import kernels_in
    from .board.ledger_view import ledger_view
    from .board.pages import Board, files_of, is_board
    from .board.profiles_view import profiles_in

    rows = read_ledger(Path(ledger) if ledger else LEDGER)
    shares = read_weights(Path(weights) if weights else WEIGHTS)
    compared, suites = _histories(histories)
    board = Board(
        ledger_view(rows, shares, datetime.date.today()),
        coverage(_complete(Path(exhaustive)) if exhaustive else None),
        findings_in(map(Path, findings)) if findings else None,
        profiles_in(map(Path, profiles)) if profiles else None,
        compared,
        suites,
        kernels_in(map(Path, kernels)),
    )
    files = files_of(board)

    def fill(folder: Path) -> None:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")

    write_folder(Path(output), fill, replaces=is_board)
    say(f"written to {output}: {sum(len(text.encode()) for text in files.values()):,} bytes; open {output}/index.html")
    return 0


def _complete(file: Path) -> dict[tuple[Op, DType], bool]:
    from ..differential.exhaustive import complete
    from .exhaustive import read_results

    stacks, results = read_results(file)
    if not {"evaluator", "legacy", "mlir"} <= set(stacks):
        raise InputError(
            f"{file}: results of {', '.join(stacks)}", remedy="run exhaustive on evaluator,legacy,mlir for the board"
        )
    return complete(results)


def _histories(files: tuple[str, ...]) -> tuple[list[Record], list[Report]]:
    """The comparisons of `ab` and the runs of the suite in files, which may be of either kind."""
    from ..benchmarks.ab_history import read_history
    from ..benchmarks.suite.results import read_reports

    compared: list[Record] = []
    suites: list[Report] = []
    for path in map(Path, files):
        try:
            compared += read_history(path)
        except InputError as first:
            if not path.is_file():
                raise
            try:
                suites += read_reports(path)
            except InputError:
                raise InputError(
                    f"{path}: neither comparisons of testbed ab nor runs of the suite ({first.message})",
                    remedy="give a file that --history wrote",
                ) from None
    return compared, suites
