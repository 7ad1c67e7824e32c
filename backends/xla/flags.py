"""XLA's flags, as `--xla_NAME=VALUE` in a text → what one compilation takes."""

from __future__ import annotations

import re
import shlex

from ...hlo.errors import InputError

XlaFlags = tuple[tuple[str, str | bool], ...]
"""Names and values. XLA converts a number from its text, but takes only a bool for a bool."""
NO_FLAGS: XlaFlags = ()

_FLAG = re.compile(r"(?:--)?(xla_\w+)(?:=(.*))?", re.DOTALL)
_BOOLEANS = {"true": True, "false": False}


def parse_xla_flags(text: str | None) -> XlaFlags:
    """Parse flags in the form of XLA_FLAGS, separated by blanks; a flag without a value is true.

    Whether a name exists is XLA's to check. Raises InputError for what is no flag.
    """
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise InputError(f"XLA flags {text!r}: {error}", remedy="close the quotation") from None
    flags: list[tuple[str, str | bool]] = []
    for word in words:
        found = _FLAG.fullmatch(word)
        if found is None:
            raise InputError(f"{word!r} is no flag of XLA", remedy="write --xla_NAME=VALUE, as in XLA_FLAGS")
        value = found[2] if found[2] is not None else "true"
        flags.append((found[1], _BOOLEANS.get(value.lower(), value)))
    return tuple(flags)
