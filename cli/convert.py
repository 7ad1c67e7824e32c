"""`testbed convert IN OUT`: a module from one format into another: HLO text, proto, StableHLO text or bytecode."""

from __future__ import annotations

from pathlib import Path

import click

from .output import say, wrapped
from .params import FILE, MODULE

FORMATS = ("hlo", "pb", "pbtxt", "mlir", "mlirbc")


@click.command()
@click.argument("source", metavar="IN", type=MODULE)
@click.argument("target", metavar="OUT", type=FILE)
@click.option("--to", "form", type=click.Choice(FORMATS), help="Format of OUT. [default: by its name's ending]")
def command(source: str, target: str, form: str | None) -> int:
    """Convert IN, any MODULE, to OUT: .hlo, .pb, .pbtxt, .mlir or .mlirbc (docs/formats.md); - prints it.

    What OUT cannot express is refused, with its place.
    """
    from ..formats.whole_files import write_whole
    from ..formats.writing import module_to_bytes, output_format
    from ..migration.programs import load_program

    if target == "-" and form is None:
        raise click.UsageError("- as OUT needs --to")
    kind = output_format(f".{form}" if form is not None else target)
    program = load_program(source)
    data = module_to_bytes(program.module, kind, "<stdin>" if source == "-" else source)
    if target == "-":
        click.echo(data, nl=False)
    else:
        write_whole(Path(target), lambda file: file.write(data))
    if program.inputs is not None:
        say(wrapped(f"{target}: holds the module; the inputs and results of {source} are not converted"), err=True)
    return 0
