"""Thunks ↔ messages, by the table of kinds (../rows.py)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...hlo.errors import InputError
from ...planning.allocation import BufferSlice
from ..kinds import Access, BufferUse, SequentialThunk, Split, Thunk
from ..rows import BY_CLASS, KINDS, MOST_NESTED, Kind, Type
from .shapes import shape_of, shape_values

Values = dict[str, Any]


def thunk_values(thunk: Thunk) -> Values:
    """The values of the kind's own message."""
    kind = BY_CLASS[type(thunk)]
    made = {}
    for field in kind.fields:
        value = getattr(thunk, field.name)
        made[field.name] = value if value is None else _TO.get(field.type, _same)(value)
    return made


def sequence_of(values: Values, depth: int = 0) -> SequentialThunk:
    """Raises InputError for values that no thunk has."""
    thunk = _thunk_of(_SEQUENTIAL, values, depth)
    assert isinstance(thunk, SequentialThunk)
    return thunk


def slice_values(part: BufferSlice) -> Values:
    return {"allocation": part.allocation, "offset": part.offset, "size": part.size}


def slice_of(values: Values | None) -> BufferSlice:
    if values is None:
        raise InputError("a slice is missing")
    return BufferSlice(values["allocation"], values["offset"], values["size"])


def _any(values: Values, depth: int) -> Thunk:
    """The thunk in a Thunk message."""
    found = [(kind, value) for kind in KINDS if (value := values[_NAMES[kind.thunk]]) is not None]
    if len(found) != 1:
        raise InputError("a thunk is of no kind that this reader knows, or of two")
    return _thunk_of(*found[0], depth)


def _thunk_of(kind: Kind, values: Values, depth: int) -> Thunk:
    if depth > MOST_NESTED:
        raise InputError(f"thunks nest deeper than {MOST_NESTED}")
    try:
        given = {}
        for field in kind.fields:
            value, read = values[field.name], _FROM.get(field.type)
            absent = value is None and field.default is None
            given[field.name] = value if read is None or absent else read(value, depth)
        made: Thunk = kind.thunk(**given)
    except ValueError as error:
        raise InputError(str(error)) from None
    return made


def field_name(kind: Kind) -> str:
    """CollectiveStart → collective_start."""
    return re.sub("(?<!^)(?=[A-Z])", "_", kind.name).lower()


_NAMES = {kind.thunk: field_name(kind) for kind in KINDS}
"""Class of thunks → its field in the message Thunk."""


def _same(value: Any) -> Any:
    return value


def _use_values(uses: tuple[BufferUse, ...]) -> list[Values]:
    return [{"slice": slice_values(u.slice), "written": u.access is Access.WRITE} for u in uses]


def _uses(values: list[Values], depth: int) -> tuple[BufferUse, ...]:
    return tuple(BufferUse(slice_of(v["slice"]), Access.WRITE if v["written"] else Access.READ) for v in values)


def split_values(split: Split | None) -> Values | None:
    return None if split is None else {"extent": split.extent, "least": split.least, "private": split.private}


def split_of(values: Values) -> Split:
    """Raises ValueError for a split that no kernel has."""
    return Split(values["extent"], values["least"], values["private"])


def _nested(values: Values | None, depth: int) -> SequentialThunk:
    if values is None:
        raise InputError("a sequence is missing")
    return sequence_of(values, depth + 1)


_SEQUENTIAL = BY_CLASS[SequentialThunk]

_TO: dict[Type, Callable[[Any], Any]] = {
    Type.SHAPE: shape_values,
    Type.GROUPS: lambda groups: [{"devices": list(group)} for group in groups],
    Type.SLICE: slice_values,
    Type.SPLIT: split_values,
    Type.USES: _use_values,
    Type.SEQUENCE: thunk_values,
    Type.SEQUENCES: lambda thunks: [thunk_values(t) for t in thunks],
    Type.THUNKS: lambda thunks: [{_NAMES[type(t)]: thunk_values(t)} for t in thunks],
}

_FROM: dict[Type, Callable[[Any, int], Any]] = {
    Type.SHAPE: lambda values, depth: shape_of(values),
    Type.GROUPS: lambda groups, depth: tuple(tuple(group["devices"]) for group in groups),
    Type.SLICE: lambda values, depth: slice_of(values),
    Type.SPLIT: lambda values, depth: split_of(values),
    Type.USES: _uses,
    Type.SEQUENCE: _nested,
    Type.SEQUENCES: lambda many, depth: tuple(sequence_of(values, depth + 1) for values in many),
    Type.THUNKS: lambda many, depth: tuple(_any(values, depth + 1) for values in many),
}
