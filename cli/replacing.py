"""The option --replace of commands that compile: kernels of a program taken from LHLO files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..formats.program import Program


def replace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --replace, which the command gets as `replacements: tuple[str, ...]`."""
    return click.option(
        "--replace",
        "replacements",
        multiple=True,
        metavar="KERNEL=FILE",
        help="Take a kernel from an LHLO file, compared with the original first; testbed lhlo lists them. Repeatable.",
    )(command)


def with_replacements(program: Program, replacements: tuple[str, ...]) -> Program:
    if not replacements:
        return program
    from ..differential.replacement import replaced

    return replaced(program, replacements)
