"""`testbed history MODULE… --jaxlib V,V`: XLA's kernels of a module, version by version of jaxlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .json_output import json_option
from .output import say, table, wrapped
from .params import FILE, MODULE
from .pinning import pin, pin_option
from .programs import complain, each_program

if TYPE_CHECKING:
    from ..backends.xla.versions import XlaVersion
    from ..benchmarks.xla_history import Cell, History
    from ..formats.program import Program


@click.command()
@click.argument("modules", metavar="[MODULE]...", nargs=-1, type=MODULE)
@click.option(
    "--suite",
    type=click.Choice(["replay"]),
    help="Instead of MODULEs: programs that show faults of XLA:CPU, and a gate on each move (docs/replay.md).",
)
@click.option("--only", default="", metavar="TEXT", help="Programs of the suite whose names hold this.")
@click.option(
    "--emitters",
    type=click.Choice(["default", "old", "new"]),
    default="default",
    show_default=True,
    help="XLA's emitters for the suite; a version that lacks them says so.",
)
@click.option(
    "--jaxlib",
    "versions",
    default="0.4.30,0.5.3,0.7.2,0.10.2,0.12",
    show_default=True,
    help="Versions, oldest first. Each is installed by pip into a folder of the user's cache when first used.",
)
@click.option("--rounds", type=click.IntRange(3), default=5, show_default=True, help="Rounds of timing.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=0.002,
    show_default=True,
    help="Seconds per kernel and round.",
)
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Also write a page of Markdown: docs/xla-history.md.")
@pin_option
@json_option("the kernels")
def command(
    modules: tuple[str, ...],
    suite: str | None,
    only: str,
    emitters: str,
    versions: str,
    rounds: int,
    seconds: float,
    output: str | None,
    pinned: int | None,
    as_json: bool,
) -> int:
    """Compile MODULEs with several versions of XLA:CPU. Prints, for each kernel and version, the emitter that made it,
    its time here, and its distance from the evaluator in representable values.

    Exit 1 if a version could not be installed, or if a move from one to the next brings a fault of the suite.
    """
    if bool(modules) == (suite is not None):
        raise click.UsageError("give MODULEs, or --suite")
    if suite is None and (only or emitters != "default"):
        raise click.UsageError("--only and --emitters are those of --suite")
    pin(pinned)
    names = list(dict.fromkeys(word.strip() for word in versions.split(",") if word.strip()))
    if suite is not None:
        from .history_replay import replay

        return replay(names, _provided, emitters, only, output, as_json)
    from ..hlo.errors import InputError

    found: list[XlaVersion] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            found.append(_provided(name))
        except InputError as error:
            complain(error)
            missing[name] = str(error)
    if not found:
        raise InputError("no version of jaxlib is there", remedy="give versions as --jaxlib 0.7.2,0.10.2")

    histories: list[History] = []

    def one(_: str, program: Program) -> tuple[int, dict[str, Any]]:
        from ..benchmarks.xla_history import history
        from ..benchmarks.xla_history_report import document
        from ..formats.whole_files import write_text

        made = history(program, found, rounds, seconds)
        histories.append(made)
        if output is not None:  # before anything is printed: the reader of a pipe may go away
            write_text(Path(output), document(histories, [version.version for version in found]))
        if not as_json:
            _print(made, [version.version for version in found])
        return (1 if missing else 0), _body(made, missing)

    return each_program("history", modules, one, as_json)


def _provided(version: str) -> XlaVersion:
    import os

    import platformdirs

    from ..backends.xla.versions import provided
    from ..codegen.private import make_private, why_untrusted
    from ..hlo.errors import InputError

    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folder = Path(platformdirs.user_cache_dir("testbed", appauthor=False)) / "jaxlib"
    try:
        make_private(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot write: {error.strerror}", remedy="set XDG_CACHE_HOME") from None
    if why := why_untrusted(folder.stat()):
        remedy = "remove it, or set XDG_CACHE_HOME to a folder of your own"
        raise InputError(f"{folder}: holds programs that run, and {why}", remedy=remedy)
    return provided(version, folder, pyenv)


def _print(made: History, versions: list[str]) -> None:
    from ..benchmarks.tables import left

    columns = [left("kernel"), left("of"), *(left(version) for version in versions)]
    rows = [(row.name, row.opcode, *(_text(row.cells.get(v)) for v in versions)) for row in made.rows]
    if rows:
        say(table(columns, rows))
    for version, why in made.refused.items():
        say(wrapped(f"{version}: {why}"))
    for version, whole in made.whole.items():
        say(
            f"{version}: whole program {whole.seconds * 1e6:.4g} us in jaxlib, {whole.ulp:.3g} ulp, "
            f"compiled in {whole.compile_seconds:.2f} s"
        )
    say(f"{made.program}: {len(made.rows)} computations")


def _text(cell: Cell | None) -> str:
    """The emitter, the time and the distance, on a line each."""
    if cell is None:
        return "-"
    if cell.refused:
        return f"{cell.emitter or '?'} refused"
    time = "" if cell.seconds is None else f" {cell.seconds * 1e6:.3g} us"
    return f"{cell.emitter or '?'}{time} {cell.ulp:.3g} ulp"


def _body(made: History, missing: dict[str, str]) -> dict[str, Any]:
    return {
        "kernels": [
            {
                "name": row.name,
                "opcode": row.opcode,
                "versions": [
                    {
                        "version": version,
                        "emitter": cell.emitter,
                        "symbol": cell.symbol,
                        "seconds": cell.seconds,
                        "ulp": cell.ulp,
                        "refused": cell.refused or None,
                    }
                    for version, cell in row.cells.items()
                ],
            }
            for row in made.rows
        ],
        "whole": [
            {"version": v, "compile_seconds": w.compile_seconds, "seconds": w.seconds, "ulp": w.ulp}
            for v, w in made.whole.items()
        ],
        "refused": [{"version": v, "reason": why} for v, why in {**missing, **made.refused}.items()],
    }
