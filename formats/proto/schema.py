"""The classes of XLA's proto messages, made from xla_data.proto and hlo.proto at import.

Through protobuf's descriptor pool: no protoc, nothing generated to keep in step. A test compares every field and enum
with the descriptors that jaxlib carries.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from .proto_source import enum_names, read_proto_file, resolve

SOURCES = ("xla_data.proto", "hlo.proto")
"""The files in the order of their imports: a file comes after those that it imports."""


def file_descriptors() -> list[descriptor_pb2.FileDescriptorProto]:
    """A descriptor of each source."""
    folder = Path(__file__).parent
    files = [read_proto_file(name, (folder / name).read_text(encoding="utf-8")) for name in SOURCES]
    enums = frozenset(name for file in files for name in enum_names(file))
    for file in files:
        resolve(file, enums)
    return files


_pool = descriptor_pool.DescriptorPool()  # our own: a process may hold XLA's generated classes, too
for _file in file_descriptors():
    _pool.AddSerializedFile(_file.SerializeToString())


def message(name: str) -> Any:
    """The class of a message, `message("HloModuleProto")`."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"xla.{name}"))


@functools.cache
def enum_values(enum: str) -> Mapping[str, int]:
    """Label → number of an enum, `enum_values("OpSharding.Type")`."""
    values = _pool.FindEnumTypeByName(f"xla.{enum}").values
    return MappingProxyType({value.name: value.number for value in values})


@functools.cache
def _labels(enum: str) -> Mapping[int, str]:
    return MappingProxyType({number: label for label, number in enum_values(enum).items()})


def enum_name(enum: str, number: int) -> str | None:
    """The label of an enum's value; None for a number that it does not have."""
    return _labels(enum).get(number)


def enum_number(enum: str, label: str) -> int | None:
    return enum_values(enum).get(label)
