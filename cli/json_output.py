"""One JSON document on standard output, for results and for errors (docs/json.md)."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..hlo.errors import TestbedError

if TYPE_CHECKING:
    import numpy as np

SCHEMA = 1
"""Version of the documents. It grows when a key goes or changes its meaning, not when one is added."""

MOST_VALUES = 4096
"""Elements of an array that a document holds; larger arrays have their shape only."""


NAME = "as_json"
"""Of the option --json as a parameter of a subcommand."""


def json_option(what: str) -> Any:
    """The option --json. what: what is printed as JSON."""
    return click.option("--json", NAME, is_flag=True, help=f"Print {what} as one JSON document (docs/json.md).")


def print_document(command: str, status: int, body: dict[str, Any]) -> int:
    """Print a document and return the status."""
    head = {"schema": SCHEMA, "version": __version__, "command": command, "status": status}
    click.echo(json.dumps(_clean(head | body), indent=1, allow_nan=False))
    return status


def error_body(message: str, error: BaseException | None = None) -> dict[str, Any]:
    """What a document says of an error: `error`, with the place in a text and the remedy where they are known."""
    place = remedy = None
    if isinstance(error, TestbedError):
        message, remedy = error.message, error.remedy
        if (at := error.location) is not None:
            place = {"file": at.file, "line": at.line, "column": at.column}
    return {"error": {"message": message, "place": place, "remedy": remedy}}


def array_body(value: np.ndarray, shape: str) -> dict[str, Any]:
    """An array: its shape, and its elements in nested lists if they are MOST_VALUES or fewer, else null."""
    return {"shape": shape, "values": _values(value) if value.size <= MOST_VALUES else None}


def _values(value: np.ndarray) -> Any:
    if value.dtype.kind == "c":
        return [_values(v) for v in value] if value.ndim else [float(value.real), float(value.imag)]
    if value.dtype.kind in "biuf":
        return value.tolist()
    return value.astype("f8" if _is_float(value) else "i8").tolist()


def _is_float(value: np.ndarray) -> bool:
    from ..hlo.dtypes import FROM_NUMPY

    return FROM_NUMPY[value.dtype].is_float


def _clean(value: Any) -> Any:
    """The value with "nan", "inf" and "-inf" for the numbers that JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _clean(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(v) for v in value]
    return value
