"""The attributes of a call: a backend_config in MLIR's text, decoded once by MLIR's own parser.

What XLA rejects is rejected in its words. A decoded attribute is plain data, so that programs keep it in files.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..hlo.errors import InputError
from .abi import AttrType

Attribute: TypeAlias = tuple[Any, ...]
"""(kind, dtype, bytes in hex) of a SCALAR, (kind, dtype, count, bytes in hex) of an ARRAY, (kind, bytes in hex) of a
STRING, (kind, attributes) of a DICTIONARY."""

Attributes: TypeAlias = tuple[tuple[str, Attribute], ...]
"""(name, attribute) rows, sorted by the bytes of the names."""

_INTEGERS = {(8, False): 2, (16, False): 3, (32, False): 4, (64, False): 5}
_INTEGERS |= {(8, True): 6, (16, True): 7, (32, True): 8, (64, True): 9}
"""(bits, unsigned) → XLA_FFI_DataType."""

_FLOATS = {32: (11, "<f"), 64: (12, "<d")}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT = re.compile(r"//[^\n]*")
_COMPLEX_ARRAY = re.compile(r"([\w.$-]+|\"\")\s*=\s*(?:dense|sparse|dense_resource)\s*<[^=]*complex\s*<")
_ARRAY = re.compile(r"([\w.$-]+|\"\")\s*=\s*array\s*<\s*(?!(?:i[0-9]+|f32|f64)\b)")
_DIMS = re.compile(r"<\s*((?:[0-9]+\s*x\s*)+)")

MOST_ELEMENTS = 1 << 24


def attributes_of(text: str) -> Attributes:
    """Decode a dictionary; of no text, no attributes. Raises InputError with XLA's reason."""
    if not text.strip():
        return ()
    _check(_STRING.sub('""', text))
    with _LOCK:
        return _parsed(text.strip())


def _parsed(text: str) -> Attributes:
    from mlir import ir

    with _context(), ir.Location.unknown():
        try:
            parsed = ir.Attribute.parse(text)
        except ir.MLIRError as error:
            first = next(iter(error.error_diagnostics), None)
            why = " ".join((first.message if first is not None else str(error)).split())
            what = f"INTERNAL: Couldn't parse backend config: {why}"
            raise InputError(what, remedy="write {name = 1 : i32}") from None
        if not isinstance(parsed, ir.DictAttr):
            raise InputError("INTERNAL: Couldn't parse backend config into a dictionary attribute")
        return _dictionary(parsed)


def _context() -> Any:
    """MLIR's context, which keeps what it has seen; a new one from time to time."""
    from mlir import ir

    if not _CONTEXTS or next(_USES) % TEXTS == 0:
        _CONTEXTS[:] = [ir.Context()]
    return _CONTEXTS[0]


_LOCK = threading.Lock()
_CONTEXTS: list[Any] = []
_USES = itertools.count(1)
TEXTS = 500
"""Texts that are parsed in one context."""


def _check(text: str) -> None:
    """Refuse arrays at which MLIR's Python ends the process, and those that do not fit into memory; and a text that is
    no dictionary, or goes on behind it: MLIR's Python ends the process at an odd character there.
    """
    rest = _behind(_COMMENT.sub("", text).strip())
    if rest is None:
        raise InputError("INTERNAL: Couldn't parse backend config into a dictionary attribute")
    if rest:
        what = f"INTERNAL: Couldn't parse backend config: found trailing characters: '{rest.split()[0]}'"
        raise InputError(what, remedy="write {name = 1 : i32}")
    for pattern in (_COMPLEX_ARRAY, _ARRAY):
        found = pattern.search(text)
        if found is not None:
            raise _unsupported("array element type", found[1])
    for dims in _DIMS.findall(text):
        if math.prod(map(int, re.findall(r"[0-9]+", dims))) > MOST_ELEMENTS:
            raise InputError(f"an attribute of more than {MOST_ELEMENTS:,} elements", remedy="pass it as an operand")


def _behind(text: str) -> str | None:
    """What stands behind the brace that closes a dictionary; None where none begins the text."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth <= 0:
            return text[place + 1 :].strip() if place else None
    return "" if text.startswith("{") else None


def _dictionary(given: Any) -> Attributes:
    rows = [(str(row.name), _decoded(str(row.name), row.attr)) for row in given]
    return tuple(sorted(rows, key=lambda row: row[0].encode()))


def _decoded(name: str, attribute: Any) -> Attribute:
    found = _KINDS.get(type(attribute).__name__)
    if found is None:
        raise _unsupported("attribute type", name)
    return found(name, attribute)


def _unsupported(what: str, name: str) -> InputError:
    return InputError(f"INVALID_ARGUMENT: Unsupported {what} for attribute: {name}")


def _boolean(name: str, attribute: Any) -> Attribute:
    return int(AttrType.SCALAR), 1, "01" if attribute.value else "00"


def _integer(name: str, attribute: Any) -> Attribute:
    kind = attribute.type
    width = getattr(kind, "width", 0)
    if width == 1:
        return _boolean(name, attribute)
    dtype = _INTEGERS.get((width, getattr(kind, "is_unsigned", False)))
    if dtype is None:
        raise _unsupported("integer attribute bit width", name)
    value = int(attribute.value) & ((1 << width) - 1)
    return int(AttrType.SCALAR), dtype, value.to_bytes(width // 8, "little").hex()


def _float(name: str, attribute: Any) -> Attribute:
    if str(attribute.type) not in ("f32", "f64"):
        raise _unsupported("float attribute bit width", name)
    dtype, code = _FLOATS[attribute.type.width]
    return int(AttrType.SCALAR), dtype, struct.pack(code, attribute.value).hex()


def _string(name: str, attribute: Any) -> Attribute:
    return int(AttrType.STRING), bytes(attribute.value_bytes).hex()


def _dense(name: str, attribute: Any) -> Attribute:
    element = attribute.type.element_type
    key = getattr(element, "width", 0), getattr(element, "is_unsigned", False)
    dtype = _FLOATS[key[0]][0] if str(element) in ("f32", "f64") else None
    if str(element).lstrip("su").startswith("i") and str(element) != "index":
        dtype = _INTEGERS.get(key)
    if dtype is None:
        raise _unsupported("array element type", name)
    values = np.ascontiguousarray(np.array(attribute))
    return int(AttrType.ARRAY), dtype, int(values.size), values.tobytes().hex()


def _array(dtype: int | None, code: str = "") -> Callable[[str, Any], Attribute]:
    def decoded(name: str, attribute: Any) -> Attribute:
        if dtype is None:
            raise _unsupported("array element type", name)
        values = np.array(list(attribute), code)
        return int(AttrType.ARRAY), dtype, int(values.size), values.tobytes().hex()

    return decoded


def _nested(name: str, attribute: Any) -> Attribute:
    return int(AttrType.DICTIONARY), _dictionary(attribute)


_KINDS: Mapping[str, Callable[[str, Any], Attribute]] = {
    "BoolAttr": _boolean,
    "IntegerAttr": _integer,
    "FloatAttr": _float,
    "StringAttr": _string,
    "DictAttr": _nested,
    "DenseElementsAttr": _dense,
    "DenseIntElementsAttr": _dense,
    "DenseFPElementsAttr": _dense,
    "DenseBoolArrayAttr": _array(None),
    "DenseI8ArrayAttr": _array(2, "<i1"),
    "DenseI16ArrayAttr": _array(3, "<i2"),
    "DenseI32ArrayAttr": _array(4, "<i4"),
    "DenseI64ArrayAttr": _array(5, "<i8"),
    "DenseF32ArrayAttr": _array(11, "<f4"),
    "DenseF64ArrayAttr": _array(12, "<f8"),
}
"""Class of MLIR's Python → how it is decoded."""
