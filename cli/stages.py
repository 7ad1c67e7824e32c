"""`testbed stages MODULE --dir D`: writes every IR stage of both stacks, one file each. The folder appears complete."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .params import MODULE, host_program_option
from .replacing import replace_option, with_replacements

if TYPE_CHECKING:
    from ..formats.program import Program


SHARED = {"thunks.txt": 3, "host.mlir": 4, "host.ll": 5, "host.optimized.ll": 6}
"""Stages below the plan that the stacks share: their places in the order of the flow."""


@click.command()
@click.argument("module", type=MODULE)
@click.option(
    "--dir", "folder", required=True, metavar="D", help="Folder to write to. It must not exist or must be empty."
)
@click.option(
    "--emitters", multiple=True, metavar="FLAGS", help="Emitters of a run. Repeatable. [default: legacy, mlir]"
)
@host_program_option
@replace_option
def command(
    module: str, folder: str, emitters: tuple[str, ...], host_program: str, replacements: tuple[str, ...]
) -> int:
    """Write MODULE's HLO, plan, thunks, compiled host program and, for each stack, every IR down to assembly. Prints
    the files' names.
    """
    from ..formats.whole_files import unfinished
    from ..hlo.errors import InputError
    from ..migration.programs import load_program

    program = with_replacements(load_program(module), replacements)
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: exists and is not an empty folder", remedy="give a new folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(f"{target}: cannot write: {error.strerror}", remedy="give a writable folder") from None
    runs = emitters or ("legacy", "mlir")
    with unfinished(work):
        names = [_write(work / name, text) for name, text in _stages(program, runs, host_program)]
        work.chmod(0o755)
        if target.exists():
            target.rmdir()
        work.rename(target)
    for name in names:
        click.echo(str(target / name))
    return 0


def _write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return path.name


def _stages(program: Program, runs: tuple[str, ...], host_program: str) -> Iterator[tuple[str, str]]:
    """(file name, text) in the order of the flow. Stages that the stacks share appear once, later ones once per run."""
    from ..backends.base import CompileOptions
    from ..formats.text.printer import print_module
    from ..lhlo import from_plan
    from ..migration import Flags
    from ..migration.compile import compile_program
    from ..migration.programs import plan_of
    from ..planning.plan_text import plan_to_text

    given, options = plan_of(program), CompileOptions(keep_stages=True, host_program=host_program)
    yield ("0.input.hlo", program.text) if given is None else ("0.input.lhlo.mlir", from_plan(given).to_text())
    for number, flags in enumerate(runs):
        executable = compile_program(program, Flags.parse(flags), options)
        if number == 0:
            yield "1.optimized.hlo" if given is None else "1.values.hlo", print_module(executable.plan.module)
            yield "2.plan.txt", plan_to_text(executable.plan)
        for name, text in executable.stages:
            if name not in SHARED:
                yield name, text
            elif number == 0:
                yield f"{SHARED[name]}.{name}", text
