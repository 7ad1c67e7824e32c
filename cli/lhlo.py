"""`testbed lhlo MODULE`: a module as LHLO, with the slices and layouts that its kernels get, as text or bytecode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .params import MODULE

if TYPE_CHECKING:
    from ..lhlo.module import LhloModule
    from ..planning.plan import Plan


@click.command()
@click.argument("module", type=MODULE)
@click.option("--kernels", is_flag=True, help="Write one function for each distinct kernel, instead of the program.")
@click.option("--kernel", "names", multiple=True, metavar="NAME", help="Write only this kernel. Repeatable.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE; bytecode if its name ends in .mlirbc.")
def command(module: str, kernels: bool, names: tuple[str, ...], output: str | None) -> int:
    """Plan MODULE and print it as LHLO, which every command takes as a MODULE."""
    from ..formats.whole_files import write_text, write_whole
    from ..migration.programs import load_program, plan_of
    from ..planning.planner import plan

    program = load_program(module)
    lhlo = _lhlo(plan_of(program) or plan(program.module), kernels, names)
    if output is None:
        click.echo(lhlo.to_text(), nl=False)
    elif output.endswith(".mlirbc"):
        data = lhlo.to_bytecode()
        write_whole(Path(output), lambda file: file.write(data))
    else:
        write_text(Path(output), lhlo.to_text())
    return 0


def _lhlo(plan: Plan, kernels: bool, names: tuple[str, ...]) -> LhloModule:
    from ..hlo.errors import InputError
    from ..lhlo import from_kernels, from_plan

    if not kernels and not names:
        return from_plan(plan)
    known = {k.name: k for k in plan.kernels}
    for name in names:
        if name not in known:
            raise InputError(f"no kernel '{name}'", remedy=f"choose from {', '.join(known) or 'none'}")
    return from_kernels([known[n] for n in names] if names else plan.kernels)
