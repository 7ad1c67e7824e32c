"""The messages of wire.proto, read from it at import. Of the language it takes only what that file uses.

protobuf's own classes would take longer to load than a small program, and they read what this format refuses.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping

from ...hlo.records import dataclass

SCALARS = {"uint64": 0, "bool": False, "string": "", "bytes": b""}
"""Type of a plain field → its default."""

_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ +(repeated |optional |)([\w]+) (\w+) = (\d+);", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WireField:
    """type: a key of SCALARS or the name of a message. label: 'repeated', 'optional' or ''."""

    number: int
    name: str
    type: str
    label: str

    @property
    def is_packed(self) -> bool:
        return self.label == "repeated" and self.type in ("uint64", "bool")

    @property
    def default(self) -> object:
        """A new value for a field that is not there."""
        return [] if self.label == "repeated" else None if self.label else SCALARS.get(self.type)


Message = Mapping[int, WireField]
"""The fields of a message by number, in ascending order."""


@functools.cache
def schema() -> Mapping[str, Message]:
    """Message → its fields."""
    with open(os.path.join(os.path.dirname(__file__), "wire.proto"), encoding="utf-8") as file:
        text = file.read()
    return {name: _fields(body) for name, body in _MESSAGE.findall(text)}


def _fields(body: str) -> Message:
    found = [WireField(int(number), name, kind, label.strip()) for label, kind, name, number in _FIELD.findall(body)]
    return {field.number: field for field in sorted(found, key=lambda field: field.number)}
