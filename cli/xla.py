"""`testbed xla MODULE --emitters old|new -o DIR`: jaxlib compiles a module and writes XLA's kernels to a folder."""

from __future__ import annotations

from pathlib import Path

import click

from .json_output import json_option, print_document
from .output import say
from .params import FILE, MODULE


@click.command()
@click.argument("module", type=MODULE)
@click.option(
    "--emitters",
    type=click.Choice(("old", "new")),
    default="new",
    show_default=True,
    help="XLA:CPU's elemental emitters, or its MLIR fusion emitters.",
)
@click.option("-o", "--output", metavar="DIR", required=True, type=FILE, help="Folder to write to: a new or empty one.")
@click.option("--mlir", is_flag=True, help="Write the MLIR of the new emitters, too: before and after their passes.")
@json_option("the kernels")
def command(module: str, emitters: str, output: str, mlir: bool, as_json: bool) -> int:
    """Compile MODULE by XLA:CPU with one generation of its emitters, in a child process, and write what XLA dumps:
    scheduled HLO, buffer assignment, LLVM IR and objects. Prints XLA's kernels.

    The folder is a MODULE for other commands: testbed run DIR --emitters xla-new.
    """
    from ..backends.xla.dump import dump
    from ..formats.whole_files import write_folder
    from ..migration.programs import load_program
    from ..migration.xla_programs import read_program
    from ..xla_kernels.folder import one_module
    from .setup import provide
    from .xla_listing import document_of, print_listing

    provide("xla", "jaxlib")
    program = load_program(module)
    write_folder(Path(output), lambda work: dump(program.text_for_xla, emitters, work, mlir))
    made = read_program(one_module(Path(output)))
    if as_json:
        return print_document("xla", 0, {"modules": [document_of(made)]})
    print_listing(made)
    say(f"written to {output}", err=True)
    return 0
