"""Where an instruction comes from: op_name and line of source, from its metadata and the module's stack frames."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .attributes import Raw
from .ir import Instruction

_FIELD = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\d+))')
_ROW = re.compile(r"^(\d+) (.*)$", re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")


def metadata_of(i: Instruction) -> dict[str, str]:
    """The fields of an instruction's metadata, numbers as text: op_name, source_file, source_line, stack_frame_id, …"""
    return _fields(_text(i.attributes.get("metadata")))


class Sources:
    """The places in the source of a module's instructions. attributes: the module's, whose tables stack frames name."""

    def __init__(self, attributes: Mapping[str, Any]):
        files = {n: _plain(text.strip('"')) for n, text in _rows(attributes.get("FileNames"))}
        places = {n: _fields(text) for n, text in _rows(attributes.get("FileLocations"))}
        lines = {n: (files.get(p.get("file_name_id", ""), ""), p.get("line", "?")) for n, p in places.items()}
        frames = {n: _fields(text).get("file_location_id", "") for n, text in _rows(attributes.get("StackFrames"))}
        self._frames = {n: "{}:{}".format(*lines[at]) for n, at in frames.items() if lines.get(at, ("", ""))[0]}

    def place_of(self, i: Instruction) -> str:
        """`file:line`, or "" if nothing says it."""
        found = metadata_of(i)
        if "source_file" in found:
            return f"{found['source_file']}:{found.get('source_line', '?')}"
        return self._frames.get(found.get("stack_frame_id", ""), "")


def _rows(table: Any) -> list[tuple[str, str]]:
    """(number, text) of the lines of a table in a module's header."""
    return _ROW.findall(_text(table))


def _text(value: Any) -> str:
    return value.text if isinstance(value, Raw) else ""


def _fields(text: str) -> dict[str, str]:
    return {key: _plain(quoted) or number for key, quoted, number in _FIELD.findall(text)}


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
