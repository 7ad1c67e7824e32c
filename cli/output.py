"""Output that fits the reader: as wide as the terminal, and plain ASCII where there is none or where it is not UTF-8.

`say` prints messages and tables; text that others read back (HLO, JSON) goes through click.echo unchanged.
"""

from __future__ import annotations

import codecs
import io
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Column

PLAIN = {"–": "-", "…": "...", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=", "×": "x", "·": "*", "µ": "u"}
"""Characters of our messages → ASCII that says the same. Where a stream cannot show any other one, it becomes `?`."""

LEAST_WIDTH = 40
"""Columns that are used even where COLUMNS says less."""


def width() -> int:
    """Columns of the output: COLUMNS, else the terminal's, else 80."""
    return max(shutil.get_terminal_size((80, 24)).columns, LEAST_WIDTH)


def say(text: str = "", *, err: bool = False) -> None:
    """Print a message, in plain ASCII unless the stream is a terminal with UTF-8."""
    stream = sys.stderr if err else sys.stdout
    click.echo(text if _is_rich(stream) else plain(text), err=err)


def plain(text: str) -> str:
    """The text with ASCII for the characters in PLAIN. Names of the user's in other alphabets stay."""
    return text if text.isascii() else text.translate(_TABLE)


_TABLE = str.maketrans(PLAIN)


def _is_rich(stream: Any) -> bool:
    encoding = getattr(stream, "encoding", None) or "ascii"
    return bool(stream.isatty()) and encoding.lower().replace("-", "").startswith("utf")


def milliseconds(seconds: float) -> str:
    """With three decimals, or two digits where these would show nothing."""
    ms = seconds * 1e3
    return f"{ms:.3f}" if ms >= 0.01 or not ms else f"{ms:.2g}"


def wrapped(text: str, indent: int = 2) -> str:
    """A message in lines of `width()`; lines after the first are indented."""
    text = text if _is_rich(sys.stdout) else plain(text)  # first, because it may become longer
    return textwrap.fill(text, width(), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """A table in lines of `width()`."""
    from ..benchmarks.tables import text_table

    keep = _is_rich(sys.stdout)
    return text_table(columns, [[cell if keep else plain(cell) for cell in row] for row in rows], width())


HANDLER = "testbed-plain"
"""Name of the error handler that `make_safe` gives to streams."""

ASCII = "testbed-ascii"
"""Name of our codec: ASCII with that handler. Click would write UTF-8 to a stream whose codec is named ascii."""


def make_safe(*streams: Any) -> None:
    """Let text streams replace characters that their encoding lacks. Streams in UTF-8 keep all but bytes of file names
    that are no text, which appear as escapes.
    """
    for stream in streams:
        if not isinstance(stream, io.TextIOWrapper):
            continue
        codec = codecs.lookup(stream.encoding).name
        if not codec.startswith("utf"):
            stream.reconfigure(encoding=ASCII if codec == "ascii" else codec, errors=HANDLER)
        elif stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end


class _Encoder(codecs.IncrementalEncoder):
    def encode(self, input: str, final: bool = False) -> bytes:
        return input.encode("ascii", HANDLER)


def _find(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != ASCII:
        return None
    ascii = codecs.lookup("ascii")
    return codecs.CodecInfo(
        name=ASCII,
        encode=lambda text, errors="strict": (text.encode("ascii", HANDLER), len(text)),
        decode=ascii.decode,
        incrementalencoder=_Encoder,
        incrementaldecoder=ascii.incrementaldecoder,
    )


codecs.register_error(HANDLER, _replace)
codecs.register(_find)
