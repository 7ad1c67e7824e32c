"""`testbed stages MODULE --dir D`: writes every IR stage of both stacks, one file each. The folder appears complete."""

from __future__ import annotations

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
@click.option(
    "--kernel",
    metavar="NAME",
    help="Only one instruction of XLA's program, alone on every stack, so that their kernels stand side by side; "
    "testbed xla lists the names. [default emitters: xla-new, legacy, mlir]",
)
@host_program_option
@replace_option
def command(
    module: str,
    folder: str,
    emitters: tuple[str, ...],
    kernel: str | None,
    host_program: str,
    replacements: tuple[str, ...],
) -> int:
    """Write MODULE's HLO, plan, thunks, compiled host program and, for each stack, every IR down to assembly. Prints
    the files' names.
    """
    from ..formats.whole_files import write_folder
    from ..migration.programs import load_program

    program = with_replacements(load_program(module), replacements)
    target, runs = Path(folder), emitters or (("legacy", "mlir") if kernel is None else ("xla-new", "legacy", "mlir"))
    if kernel is not None:
        program = _alone(program, kernel, runs)
    names = write_folder(
        target, lambda work: [_write(work / n, text) for n, text in _stages(program, runs, host_program)]
    )
    for name in names:
        click.echo(str(target / name))
    return 0


def _alone(program: Program, name: str, runs: tuple[str, ...]) -> Program:
    """One kernel of XLA's program, by its instruction or its symbol. Raises InputError."""
    import difflib

    from ..hlo.errors import InputError
    from ..migration import Flags
    from ..migration.xla_programs import xla_program

    xla = xla_program(program, next((s for s in (Flags.parse(run).xla for run in runs) if s), "xla-new"), mlir=True)
    found = {i.name: i for i in xla.matches.found} | {
        symbol: match.instruction for symbol, match in xla.matches.by_symbol.items()
    }
    if name not in found:
        near = difflib.get_close_matches(name, found, 3) or list(found)[:6]
        raise InputError(f"XLA has no kernel {name!r} in {program.name}", remedy=f"choose from {', '.join(near)}, …")
    return xla.alone(found[name])


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
