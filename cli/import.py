"""`testbed import DIR`: lists the modules and kernels in a folder that XLA wrote with --xla_dump_to."""

from __future__ import annotations

from pathlib import Path

import click

from .json_output import json_option, print_document
from .output import say
from .params import FILE


@click.command()
@click.argument("folder", metavar="DIR", type=FILE)
@json_option("the kernels")
def command(folder: str, as_json: bool) -> int:
    """Read what XLA:CPU wrote to DIR (--xla_dump_to): scheduled HLO, buffer assignment, kernels. Prints which kernel
    computes which instruction, and which instructions have none and why. DIR may end with the name of one module.

    DIR is a MODULE for other commands: testbed run DIR --emitters xla-new.
    """
    from ..migration.xla_programs import read_program
    from ..xla_kernels.folder import modules_in, one_module
    from .xla_listing import document_of, print_listing

    path = Path(folder)
    modules = modules_in(path) if path.is_dir() or not path.parent.is_dir() else [one_module(path)]
    programs = [read_program(module) for module in modules]
    if as_json:
        return print_document("import", 0, {"modules": [document_of(program) for program in programs]})
    for number, program in enumerate(programs):
        if number:
            say()
        print_listing(program)
    return 0
