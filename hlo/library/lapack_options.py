"""Reads and checks the options of a LAPACK call: its backend_config, e.g. `{uplo = 76 : ui8, low = 1 : i32}`."""

from __future__ import annotations

import re
import textwrap

from ..ir import Instruction
from .lapack import Character, Integer, Routine

Option = str | int | bool

CHARACTERS = {"uplo": "LU", "side": "LR", "diag": "NU", "trans_x": "NTC", "sort": "N"}
CHARACTERS |= dict.fromkeys(("compute_left", "compute_right"), "NV")
"""The characters that each option allows. `mode` allows NV, or ASN for a singular value decomposition."""

REFLECTING = {"side": "left", "trans": "transpose"}
"""Options of ormqr and unmqr: argument of the routine → the boolean option that determines its character."""

_ENTRY = re.compile(r'\s*(\w+)\s*=\s*((?:"(?:[^"\\]|\\.)*"|[^,{}"=])+?)\s*(?:,(?=\s*\w)|$)')
_NUMBER = re.compile(r"(-?\d+)\s*:\s*(u?i\d+)")


def options_of(i: Instruction) -> dict[str, Option]:
    """The options as Python values: `{uplo = 76 : ui8, low = 1 : i32}` → uplo 'L' (a ui8 is a character), low 1.

    Text that cannot be read ends the list; `wrong_options` reports it.
    """
    return _read(text_of(i))[0]


def text_of(i: Instruction) -> str:
    config = i.attributes.get("backend_config", "")
    return str(getattr(config, "text", config)).strip()


def _read(text: str) -> tuple[dict[str, Option], int | None]:
    """The options, and the offset of the first character that does not fit `{key = value, …}`, or None."""
    found: dict[str, Option] = {}
    if not text:
        return found, None
    if text[0] != "{":
        return found, 0
    end = len(text) - 1
    if text[end] != "}":
        return found, end
    pos = 1
    while text[pos:end].strip():
        entry = _ENTRY.match(text, pos, end)
        if entry is None:
            return found, pos + len(text[pos:end]) - len(text[pos:end].lstrip())
        value = _value(entry[2])
        if value is not None:
            found[entry[1]] = value
        pos = entry.end()
    return found, None


def _value(text: str) -> Option | None:
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text == "true" if text in ("true", "false") else None
    if number[2] != "ui8":
        return int(number[1])
    return chr(int(number[1])) if 0 <= int(number[1]) < 256 else None


def wrong_options(i: Instruction, routine: Routine) -> str | None:
    """Why the routine cannot take the call's options; None if it can.

    The message says where the text cannot be read, or lists every option that is missing or wrong and what was found.
    """
    text, wanted = text_of(i), _wanted(routine)
    options, unread = _read(text)
    if unread is not None:
        example = ", ".join(f"{key} = {legal[0].split(' (')[0]}" for key, legal in wanted.items())
        what = repr(text[unread : unread + 20]) if unread < len(text) - 1 else "the end"
        return (
            f"backend_config cannot be read at character {unread + 1}, {what}; write {{{example}}}, found {_line(text)}"
        )
    wrong = [_demand(key, legal) for key, legal in wanted.items() if not _fits(options.get(key), legal)]
    return f"{'; '.join(wrong)}; backend_config is {_line(text) or 'missing'}" if wrong else None


def _line(text: str) -> str:
    return textwrap.shorten(text, 200, placeholder=" …")


INTEGER, TRUTH = ("1 : i32",), ("true", "false")


def _wanted(routine: Routine) -> dict[str, tuple[str, ...]]:
    """Option → the values that it allows, as text; INTEGER means any integer."""
    wanted: dict[str, tuple[str, ...]] = {}
    for argument in routine.call:
        if isinstance(argument, Integer):
            wanted[argument.option] = INTEGER
        elif isinstance(argument, Character) and routine.name in ("ormqr", "unmqr"):
            wanted[REFLECTING[argument.option]] = TRUTH
        elif isinstance(argument, Character):
            letters = _letters(routine, argument.option)
            wanted[argument.option] = tuple(f"{ord(c)} : ui8 ({c})" for c in letters)
    return wanted


def _letters(routine: Routine, option: str) -> str:
    if option == "mode":
        return "ASN" if routine.name in ("gesdd", "gesvd") else "NV"
    return CHARACTERS[option]


def _fits(value: Option | None, legal: tuple[str, ...]) -> bool:
    if legal is INTEGER:
        return isinstance(value, int) and not isinstance(value, bool)
    if legal is TRUTH:
        return isinstance(value, bool)
    return isinstance(value, str) and any(words.endswith(f"({value})") for words in legal)


def _demand(key: str, legal: tuple[str, ...]) -> str:
    if legal is INTEGER:
        return f"{key} must be an i32"
    return f"{key} must be {'one of ' if len(legal) > 1 else ''}{', '.join(legal)}"
