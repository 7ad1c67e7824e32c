"""JSON and TOML in files that users give: whatever is wrong with a text is an error of its format, so that its reader
can name the file. By themselves the libraries end in RecursionError on a text that nests too deep.
"""

from __future__ import annotations

import json
from typing import Any

TOO_DEEP = "nests too deep"


def json_of(text: str | bytes) -> Any:
    """The document. Raises ValueError: json.JSONDecodeError, or UnicodeDecodeError for bytes."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError(TOO_DEEP, text if isinstance(text, str) else "", 0) from None


def toml_of(text: str) -> dict[str, Any]:
    """The document. Raises tomllib.TOMLDecodeError."""
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(TOO_DEEP) from None
