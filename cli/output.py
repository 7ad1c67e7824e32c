"""Output to terminals and pipes that are not UTF-8: characters that they cannot show are replaced; no command fails."""

from __future__ import annotations

import codecs
import io
from typing import Any

PLAIN = {"–": "-", "…": "...", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=", "×": "x", "·": "*", "µ": "u"}
"""Characters of our messages → ASCII that says the same. Any other character becomes `?`."""

HANDLER = "testbed-plain"
"""Name of the error handler that `make_safe` gives to streams."""

ASCII = "testbed-ascii"
"""Name of our codec: ASCII with that handler. Click would write UTF-8 to a stream whose codec is named ascii."""


def make_safe(*streams: Any) -> None:
    """Let text streams replace characters that their encoding lacks. Streams in UTF-8 keep theirs."""
    for stream in streams:
        if not isinstance(stream, io.TextIOWrapper):
            continue
        codec = codecs.lookup(stream.encoding).name
        if not codec.startswith("utf"):
            stream.reconfigure(encoding=ASCII if codec == "ascii" else codec, errors=HANDLER)


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
