"""`testbed opt` on LHLO: its own passes, which keep the program's form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..formats.program import Program
    from ..lhlo.module import LhloModule

TAKEN = frozenset({"module", "passes", "output"})
"""Parameters of `opt` that apply to LHLO."""


def optimize_lhlo(module: str, program: Program, names: list[str] | None, output: str | None) -> int:
    """Print an LHLO program after passes, all of them or those that are named."""
    from ..formats.whole_files import write_text, write_whole
    from ..lhlo.passes.pipeline import run_passes

    context = click.get_current_context()
    for name in context.params.keys() - TAKEN:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = next(p.opts[0] for p in context.command.params if p.name == name)
            raise click.UsageError(f"{option} is for passes on HLO; {module} is LHLO")
    lhlo = run_passes(_read(module, program), names, module)
    if output is None or output == "-":
        click.echo(lhlo.to_text(), nl=False)
    elif output.endswith(".mlirbc"):
        data = lhlo.to_bytecode()
        write_whole(Path(output), lambda file: file.write(data))
    else:
        write_text(Path(output), lhlo.to_text())
    return 0


def _read(module: str, program: Program) -> LhloModule:
    """The LHLO of the file, so that errors have its lines; of standard input, which is read once, that of its plan."""
    from ..formats.program import read_bytes, source_file
    from ..lhlo import from_plan
    from ..migration.programs import lhlo_of, plan_of

    if module == "-":
        plan = plan_of(program)
        assert plan is not None
        return from_plan(plan)
    source = source_file(Path(module))
    return lhlo_of(read_bytes(source), str(source))
