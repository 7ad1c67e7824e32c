"""Commands on several modules: each is read and handled by itself, and one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..hlo.errors import ParseError, TestbedError
from .json_output import error_body, print_document
from .output import say
from .status import heaviest

if TYPE_CHECKING:
    from ..formats.program import Program

Handler = Callable[[str, "Program"], tuple[int, dict[str, Any]]]
"""Handles a MODULE and its program; returns its exit status and what the JSON document says of it."""


def each_program(command: str, modules: Sequence[str], handle: Handler, as_json: bool) -> int:
    """Load and handle every MODULE; returns the status that weighs most. Prints the document if `as_json`.

    An error of the only module goes to the caller; with several modules it is printed and the next one follows.
    """
    from ..migration.programs import load_program

    rows: list[dict[str, Any]] = []
    worst = 0
    for number, spec in enumerate(modules):
        if len(modules) > 1 and not as_json:
            say(f"{'' if number == 0 else chr(10)}{spec}")
        try:
            program = load_program(spec)
            status, body = handle(spec, program)
            rows.append({"module": spec, "name": program.module.name, "status": status, **body})
        except TestbedError as error:
            if len(modules) == 1:
                raise
            complain(error)
            status = 2
            rows.append({"module": spec, "status": status, **error_body(str(error), error)})
        worst = heaviest((worst, status))
    return print_document(command, worst, {"programs": rows}) if as_json else worst


def complain(error: TestbedError) -> None:
    """Print an error as one line, and the line of source that it points into."""
    say(f"testbed: error: {error}", err=True)
    if isinstance(error, ParseError) and error.snippet():
        say(error.snippet(), err=True)
