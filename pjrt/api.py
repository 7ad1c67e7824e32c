"""The structures of PJRT's C API as ctypes classes, made from the rows of api_rows.py for a minor version."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from ..hlo.dtypes import DType
from ..hlo.records import dataclass
from . import api_rows as rows


def _enumeration(name: str, words: str) -> Any:
    return IntEnum(name, {word: number for number, word in enumerate(words.split())})


ErrorCode: Any = _enumeration("ErrorCode", rows.ERROR_CODES)
BufferType: Any = _enumeration("BufferType", rows.BUFFER_TYPES)
NamedValueType: Any = _enumeration("NamedValueType", rows.NAMED_VALUES)
HostBufferSemantics: Any = _enumeration("HostBufferSemantics", rows.HOST_BUFFER_SEMANTICS)
LayoutType: Any = _enumeration("LayoutType", rows.LAYOUT_TYPES)

TYPE_OF = {d: int(BufferType[d.name]) for d in DType if d.name in BufferType.__members__}
"""HLO's primitive type → the number of PJRT_Buffer_Type."""
DTYPE_OF = {number: dtype for dtype, number in TYPE_OF.items()}

HEAD = "struct_size:z extension_start"
TABLE_HEAD = 40
"""Bytes before the first function of the table: its size, the first extension, the version."""

_SCALARS: dict[str, Any] = {
    "": ctypes.c_void_p,
    "z": ctypes.c_size_t,
    "i": ctypes.c_int,
    "q": ctypes.c_int64,
    "b": ctypes.c_bool,
    "U": ctypes.c_uint64,
}


@dataclass(frozen=True, slots=True)
class Field:
    """kind: a key of _SCALARS, or a structure. since: the minor version that added it; 0: 81 or earlier."""

    name: str
    kind: str
    since: int


@dataclass(frozen=True, slots=True)
class Row:
    """A structure by its full name. since: as of a field."""

    name: str
    since: int
    fields: tuple[Field, ...]


def _parsed(text: str, prefix: str, suffix: str, head: str) -> Iterator[Row]:
    for line in _lines(text):
        title, _, fields = line.partition(":")
        name, _, since = title.partition("@")
        yield Row(prefix + name + suffix, int(since or 0), tuple(_field(f) for f in f"{head} {fields}".split()))


def _lines(text: str) -> list[str]:
    """The rows, each in one piece."""
    return text.replace("\n    ", " ").splitlines()


def _field(text: str) -> Field:
    text, _, since = text.partition("@")
    name, _, kind = text.partition(":")
    return Field(name, kind, int(since or 0))


@functools.cache
def structures() -> dict[str, Row]:
    """All structures by name, such as PJRT_Error_Destroy_Args."""
    found = [
        *_parsed(rows.STRUCTURES, "PJRT_", "", ""),
        *_parsed(rows.ARGUMENTS, "PJRT_", "_Args", HEAD),
        *_parsed(rows.LAYOUTS, "PJRT_", "_Args", HEAD),
    ]
    return {row.name: row for row in found}


@functools.cache
def structure(name: str, minor: int = rows.MINOR) -> Any:
    """The ctypes class of a structure, with the fields that a minor version has."""
    fields = [(f.name, _type(f.kind, minor)) for f in structures()[name].fields if f.since <= minor]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _type(kind: str, minor: int) -> Any:
    return _SCALARS[kind] if kind in _SCALARS else structure(f"PJRT_{kind}", minor)


def arguments(function: str) -> Any:
    """The class of the arguments of a function, such as Client_Create."""
    return structure(f"PJRT_{function}_Args")


def size_of(name: str, minor: int = rows.MINOR) -> int:
    """The value of `struct_size`: up to the end of the last field, without the padding behind it."""
    made = structure(name, minor)
    last = made._fields_[-1][0]
    field = getattr(made, last)
    return field.offset + field.size


def offset(function: str, field: str) -> int:
    """The offset in bytes of an argument of a function."""
    return int(getattr(arguments(function), field).offset)


@functools.cache
def functions(minor: int = rows.MINOR) -> tuple[str, ...]:
    """The functions of the table that a minor version has, in order."""
    known = structures()
    return tuple(name for name in rows.FUNCTIONS.split() if known[f"PJRT_{name}_Args"].since <= minor)


def layout_functions() -> tuple[str, ...]:
    """The functions of the Layouts extension, in order."""
    return tuple(line.partition(":")[0] for line in _lines(rows.LAYOUTS))


def table_size(minor: int = rows.MINOR) -> int:
    """Bytes of the function table, PJRT_Api."""
    return TABLE_HEAD + 8 * len(functions(minor))
