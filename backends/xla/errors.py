"""What XLA says about a module that it refuses, in one line."""

from __future__ import annotations

import re

from ...hlo.errors import UnsupportedError


class XlaRefused(UnsupportedError):
    """XLA refuses a module. what: its reason."""

    def __init__(self, what: str):
        super().__init__("xla", what)
        self.message = f"XLA refuses this module: {what}"


class XlaCrashed(XlaRefused):
    """XLA's process ended, or gave no answer."""

    def __init__(self, what: str):
        super().__init__(what)
        self.message = f"XLA crashed on this module: {what}"


_FATAL = re.compile(r"^F\d{4} [\d:.]+ +\d+ ([^\]]+)\] *(.*)|^(LLVM ERROR: .*)|^(.*Assertion .* failed.*)", re.MULTILINE)
_NOISE = re.compile(r"see current operation|^\^|^\*\*\* |^ *@ +0x|^\s*$|^#\d+ 0x|^PC: @|^\s*\^+\s*$")
LONGEST = 300
"""Characters of a reason."""


def reason_of(message: str) -> str:
    """The useful lines of an error of jaxlib: the first, and those that say what and where; no C++ trace."""
    lines = [line.strip() for line in message.split("*** Begin stack trace")[0].splitlines()]
    useful = [line for line in lines if not _NOISE.search(line)]
    kept = useful[: 2 if useful and useful[0].endswith(":") else 1] or ["no reason given"]
    return " ".join(kept)[:LONGEST]


def reason_of_death(errors: str) -> str:
    """What a process wrote on stderr before it ended: the failed check, else the last line that is no trace, or ''."""
    if found := _FATAL.search(errors):
        text = f"{found[1]}: {found[2]}" if found[1] else found[3] or found[4]
        return " ".join(text.split())[:LONGEST]
    useful = [line.strip() for line in errors.splitlines() if not _NOISE.search(line)]
    return useful[-1][:LONGEST] if useful else ""
