"""Finds where a serialised proto is damaged: the offset and the field at which its wire format becomes invalid."""

from __future__ import annotations

from typing import Any

_MESSAGE, _STRING = 11, 9
_PACKED = frozenset({1, 2, 3, 4, 5, 8, 13, 14})


class _Damage(Exception):
    def __init__(self, offset: int, why: str):
        self.offset, self.why = offset, why


def find_damage(data: bytes, descriptor: Any) -> tuple[int, str]:
    """(offset in bytes, what is wrong there with the field's path), for bytes that protobuf refuses."""
    try:
        _walk(data, 0, len(data), descriptor, descriptor.name, 0)
    except _Damage as damage:
        return damage.offset, damage.why
    return 0, f"no {descriptor.name}"


def _varint(data: bytes, at: int, end: int, where: str) -> tuple[int, int]:
    value = shift = 0
    start = at
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _Damage(start, f"{where}: a number without an end")


def _walk(data: bytes, at: int, end: int, descriptor: Any, where: str, depth: int) -> None:
    if depth > 100:
        raise _Damage(at, f"{where}: nested deeper than 100")
    while at < end:
        start = at
        tag, at = _varint(data, at, end, where)
        number, wire = tag >> 3, tag & 7
        field = descriptor.fields_by_number.get(number)
        path = f"{where}.{field.name if field is not None else number}"
        if number == 0 or wire in (3, 4, 6, 7) or number >= 1 << 29:
            raise _Damage(start, f"{where}: no field can start with the byte {data[start]:#04x}")
        if wire == 0:
            _, at = _varint(data, at, end, path)
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
            if at > end:
                raise _Damage(start, f"{path}: cut short")
        else:
            size, at = _varint(data, at, end, path)
            if at + size > end:
                raise _Damage(start, f"{path}: says {size} bytes, but {end - at} are left")
            _inside(data, at, at + size, field, path, depth)
            at += size


def _inside(data: bytes, at: int, end: int, field: Any, path: str, depth: int) -> None:
    if field is None:
        return
    if field.type == _MESSAGE:
        _walk(data, at, end, field.message_type, path, depth + 1)
    elif field.type == _STRING:
        try:
            data[at:end].decode("utf-8")
        except UnicodeDecodeError as error:
            raise _Damage(at + error.start, f"{path}: not UTF-8") from None
    elif field.type in _PACKED and field.type in (3, 4, 5, 8, 13, 14):
        while at < end:
            _, at = _varint(data, at, end, path)
