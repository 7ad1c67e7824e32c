"""Reads the part of the .proto language that XLA's messages need: proto3 files as descriptors, without protoc.

Messages and enums, nested ones too; fields that are plain, `repeated`, `optional`, a `map` or in a `oneof`. Names of
types are full (`HloModuleProto.ProfileInfo`) but for the package. Reserved numbers, one by one. No options, services or
extensions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2

_TOKEN = re.compile(r'\s*(?://[^\n]*\s*)*([\w.]+|"[^"\n]*"|[{}<>=;,]|$)')

_Field = descriptor_pb2.FieldDescriptorProto

SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "double": _Field.TYPE_DOUBLE,
    "float": _Field.TYPE_FLOAT,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}


def read_proto_file(name: str, text: str) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor of a file. Fields of messages and enums have a type_name, and no type until `resolve`."""
    return _Reader(name, text).file()


def resolve(file: descriptor_pb2.FileDescriptorProto, enums: frozenset[str]) -> None:
    """Say of every field with a type_name whether that is a message or an enum; enums: their full names."""
    waiting = list(file.message_type)
    while waiting:
        message = waiting.pop()
        waiting += message.nested_type
        for field in message.field:
            if field.type_name:
                field.type = _Field.TYPE_ENUM if field.type_name in enums else _Field.TYPE_MESSAGE


def enum_names(file: descriptor_pb2.FileDescriptorProto) -> Iterator[str]:
    """Full names of a file's enums."""
    waiting: list[tuple[str, Any]] = [(f".{file.package}", file)]
    while waiting:
        path, owner = waiting.pop()
        yield from (f"{path}.{e.name}" for e in owner.enum_type)
        waiting += [(f"{path}.{m.name}", m) for m in (owner.message_type if owner is file else owner.nested_type)]


class _Reader:
    def __init__(self, name: str, text: str):
        self.name, self.text, self.at = name, text, 0
        self.made = descriptor_pb2.FileDescriptorProto(name=name)

    def next(self) -> str:
        """The next word or sign; "" at the end."""
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            raise self.error(f"unexpected {self.text[self.at : self.at + 20].split()[0]!r}")
        self.at = found.end()
        return found[1].strip('"')

    def expect(self, *signs: str) -> None:
        for sign in signs:
            found = self.next()
            if found != sign:
                raise self.error(f"expected {sign!r}, found {found!r}")

    def error(self, what: str) -> ValueError:
        return ValueError(f"{self.name}:{self.text.count(chr(10), 0, self.at) + 1}: {what}")

    def number(self) -> int:
        self.expect("=")
        word = self.next()
        if not word.isdecimal():
            raise self.error(f"expected a number, found {word!r}")
        self.expect(";")
        return int(word)

    def file(self) -> descriptor_pb2.FileDescriptorProto:
        while word := self.next():
            match word:
                case "syntax":
                    self.expect("=", "proto3", ";")
                    self.made.syntax = "proto3"
                case "package":
                    self.made.package = self.next()
                    self.expect(";")
                case "import":
                    self.made.dependency.append(self.next())
                    self.expect(";")
                case "message":
                    self.message(self.made.message_type, f".{self.made.package}")
                case "enum":
                    self.enum(self.made.enum_type)
                case _:
                    raise self.error(f"expected a message or an enum, found {word!r}")
        return self.made

    def enum(self, into: Any) -> None:
        made = into.add(name=self.next())
        self.expect("{")
        while (label := self.next()) != "}":
            made.value.add(name=label, number=self.number())

    def message(self, into: Any, scope: str) -> None:
        made = into.add(name=self.next())
        path = f"{scope}.{made.name}"
        self.expect("{")
        while (word := self.next()) != "}":
            match word:
                case "message":
                    self.message(made.nested_type, path)
                case "enum":
                    self.enum(made.enum_type)
                case "oneof":
                    self.oneof(made)
                case "map":
                    self.map(made, path)
                case "reserved":
                    self.reserved(made)
                case "repeated":
                    self.field(made, self.next()).label = _Field.LABEL_REPEATED
                case "optional":
                    field = self.field(made, self.next())
                    field.proto3_optional, field.oneof_index = True, len(made.oneof_decl)
                    made.oneof_decl.add(name=f"_{field.name}")
                case _:
                    self.field(made, word)

    def field(self, message: Any, kind: str) -> Any:
        made = message.field.add(name=self.next(), label=_Field.LABEL_OPTIONAL)
        made.number = self.number()
        self.set_type(made, kind)
        return made

    def set_type(self, field: Any, kind: str) -> None:
        if kind in SCALARS:
            field.type = SCALARS[kind]
        else:
            field.type_name = f".{self.made.package}.{kind}"

    def reserved(self, message: Any) -> None:
        """Numbers of fields that are gone: `reserved 3, 5;`."""
        sign = ","
        while sign == ",":
            number = int(self.next())
            message.reserved_range.add(start=number, end=number + 1)
            sign = self.next()
        if sign != ";":
            raise self.error(f"expected ';', found {sign!r}")

    def oneof(self, message: Any) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self.next())
        self.expect("{")
        while (kind := self.next()) != "}":
            self.field(message, kind).oneof_index = index

    def map(self, message: Any, path: str) -> None:
        """A map is a repeated message of a key and a value."""
        self.expect("<")
        key = self.next()
        self.expect(",")
        value = self.next()
        self.expect(">")
        name = self.next()
        entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        for number, (part, kind) in enumerate((("key", key), ("value", value)), 1):
            self.set_type(entry.field.add(name=part, number=number, label=_Field.LABEL_OPTIONAL), kind)
        label, kind = _Field.LABEL_REPEATED, f"{path}.{entry.name}"
        message.field.add(name=name, number=self.number(), label=label, type_name=kind)
