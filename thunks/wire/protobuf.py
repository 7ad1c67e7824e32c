"""Protobuf's wire format, both ways, for the messages of wire.proto: dicts by field name ↔ bytes.

Equal values give equal bytes: fields in ascending order, defaults left out, numbers as short as they can be. What is
damaged is refused with the place.
"""

from __future__ import annotations

from typing import Any

from ...hlo.errors import InputError
from .schema import SCALARS, WireField, schema

MOST_NESTED = 250
"""Messages within messages; a thunk in a sequence takes two."""


class Damaged(InputError):
    """Bytes that are no message, or a text that no message holds."""


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def encode(name: str, values: dict[str, Any]) -> bytes:
    """The bytes of a message. Raises KeyError for a field that it does not have, Damaged for text with control
    characters.
    """
    made, left = bytearray(), dict(values)
    for field in schema()[name].values():
        value = left.pop(field.name, None)
        if value is None or (field.label != "optional" and not value and not isinstance(value, dict)):
            continue
        if field.is_packed:
            _put(made, field, b"".join(_varint(int(v)) for v in value))
        else:
            for one in value if field.label == "repeated" else (value,):
                _put(made, field, _payload(field, one))
    if left:
        raise KeyError(f"{name} has no field {', '.join(left)}")
    return bytes(made)


def _payload(field: WireField, value: Any) -> int | bytes:
    if field.type not in SCALARS:
        return encode(field.type, value)
    if field.type == "string":
        return _plain(value, field.name).encode()
    return bytes(value) if field.type == "bytes" else int(value)


def _plain(text: str, where: str) -> str:
    """The text, if it can be shown: names of a file stand in messages and tables, and must not steer a terminal."""
    if not text.isprintable():
        raise Damaged(f"{where}: {text!r} has characters that cannot be shown")
    return text


def _put(made: bytearray, field: WireField, payload: int | bytes) -> None:
    if isinstance(payload, int):
        made += _varint(field.number << 3 | _VARINT) + _varint(payload)
    else:
        made += _varint(field.number << 3 | _BYTES) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{value} is no uint64")
    made = bytearray()
    while value >= 128:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def decode(name: str, data: bytes) -> dict[str, Any]:
    """The values of a message; every field is there, with its default if it was left out. Raises Damaged."""
    return _Decoder().message(name, data, 0)


class _Decoder:
    def __init__(self) -> None:
        self._seen: dict[tuple[str, bytes], dict[str, Any]] = {}  # equal slices are frequent: read them once

    def message(self, name: str, data: bytes, depth: int) -> dict[str, Any]:
        key = name, data
        if (found := self._seen.get(key)) is not None:
            return found
        if depth > MOST_NESTED:
            raise Damaged(f"{name}: messages nest deeper than {MOST_NESTED}")
        fields = schema()[name]
        values = {field.name: field.default for field in fields.values()}
        at, end = 0, len(data)
        while at < end:
            tag, at = _number(data, at, name)
            payload, at = self._payload_at(data, at, tag & 7, name)
            field = fields.get(tag >> 3)
            if field is not None:  # else a newer writer's, which may be skipped (wire.proto)
                self._take(values, field, payload, name, depth)
        if len(data) < 64:
            self._seen[key] = values
        return values

    def _payload_at(self, data: bytes, at: int, wire: int, name: str) -> tuple[int | bytes, int]:
        if wire == _VARINT:
            return _number(data, at, name)
        if wire == _BYTES:
            size, at = _number(data, at, name)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise Damaged(f"{name}: no field can have the wire type {wire}")
        if at + size > len(data):
            raise Damaged(f"{name}: says {size} bytes, but {len(data) - at} are left")
        return data[at : at + size], at + size

    def _take(self, values: dict[str, Any], field: WireField, payload: int | bytes, name: str, depth: int) -> None:
        where = f"{name}.{field.name}"
        if field.is_packed and isinstance(payload, bytes):
            at = 0
            while at < len(payload):
                number, at = _number(payload, at, where)
                values[field.name].append(_value(field, number, where))
            return
        if isinstance(payload, bytes) and field.type not in SCALARS:
            value: Any = self.message(field.type, payload, depth + 1)
        else:
            value = _value(field, payload, where)
        if field.label == "repeated":
            values[field.name].append(value)
        elif values[field.name] != field.default:
            raise Damaged(f"{where}: there twice")
        else:
            values[field.name] = value


def _value(field: WireField, payload: int | bytes, where: str) -> Any:
    if isinstance(payload, int):
        if field.type == "uint64":
            return payload
        if field.type == "bool" and payload < 2:
            return bool(payload)
    elif field.type == "bytes":
        return payload
    elif field.type == "string":
        try:
            return _plain(payload.decode(), where)
        except UnicodeDecodeError as error:
            raise Damaged(f"{where}: not UTF-8 at byte {error.start}") from None
    raise Damaged(f"{where}: not a {field.type}")


def _number(data: bytes, at: int, where: str) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >= 1 << 64:
                break
            return value, at
        shift += 7
    raise Damaged(f"{where}: a number without an end")
