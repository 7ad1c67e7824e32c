"""The text form of thunks: one line per thunk, blocks in braces. A slice is written allocation[begin:end].

It is printed from the table of kinds (rows.py); parse.py reads it back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ..hlo.shapes import shape_to_text
from ..planning.allocation import BufferSlice
from .kinds import BufferUse, Groups, Split, Thunk
from .rows import BLOCKS, BY_CLASS, BY_WORD, Field, Type

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
LABEL = re.compile(rf"{NAME.pattern}(?: \d+)?")


def to_text(thunk: Thunk) -> str:
    return "\n".join(_lines(thunk)) + "\n"


def _lines(thunk: Thunk) -> Iterator[str]:
    kind = BY_CLASS[type(thunk)]
    line, blocks = kind.word, [f for f in kind.fields if f.type in BLOCKS]
    for field in kind.fields:
        value = getattr(thunk, field.name)
        if field not in blocks and value != field.default:
            line += field.before + _WRITE[field.type](value, field)
    if not blocks:
        yield line
        return
    yield f"{line} {{"
    for field in blocks:
        value = getattr(thunk, field.name)
        for inner in (value,) if field.type is Type.SEQUENCE else value:
            yield from ("  " + text for text in _lines(inner))
    yield "}"


def _name(value: str, field: Field) -> str:
    return value if NAME.fullmatch(value) else _quoted(value)


def _label(value: str, field: Field) -> str:
    """Unquoted unless it could be another thunk."""
    plain = LABEL.fullmatch(value) and value.partition(" ")[0] not in BY_WORD
    return value if plain else _quoted(value)


def _quoted(value: str) -> str:
    import json  # here: to run a program from a file hardly ever needs it

    return json.dumps(value)


def _use(use: BufferUse, field: Field) -> str:
    return f"{use.access.value} {_slice(use.slice, field)}"


def _slice(slice: BufferSlice, field: Field) -> str:
    return f"{slice.allocation}[{slice.offset}:{slice.offset + slice.size}]"


def _groups(groups: Groups, field: Field) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def _split(split: Split, field: Field) -> str:
    private = f" private {split.private}" if split.private else ""
    return f"{split.extent} by {split.least}{private}"


_WRITE: dict[Type, Callable[[Any, Field], str]] = {
    Type.NAME: _name,
    Type.LABEL: _label,
    Type.NUMBER: lambda value, field: str(value),
    Type.FLAG: lambda value, field: field.words[not value],
    Type.SHAPE: lambda shape, field: _quoted(shape_to_text(shape)),
    Type.GROUPS: _groups,
    Type.SLICE: _slice,
    Type.SPLIT: _split,
    Type.USES: lambda uses, field: f"({', '.join(_use(u, field) for u in uses)})",
}
