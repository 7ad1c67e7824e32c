"""The .proto sources: read by us, and the same fields and enums as in jaxlib."""

import pytest

from ...formats.proto import schema
from ...formats.proto.proto_source import read_proto_file
from ..support.protos import xla_hlo


@pytest.fixture(scope="module")
def xla():
    return xla_hlo()


NEWER = {"ALG_DOT_BF16_BF16_FP8X3", "ALG_DOT_BF16_BF16_FP8X4", "HloInstructionProto.comparison_order"}
"""Labels of enums and fields that jaxlib 0.12 has, and 0.10 has not."""


def test_fields_and_enums_are_those_that_jaxlib_carries(xla):
    """Every row of the sources, compared with the descriptors in jaxlib's own binary."""
    found = descriptors_in_jaxlib()
    assert found, "no descriptor in jaxlib's library"

    def rows(owner, path, messages):
        for enum in owner.enum_type:
            yield f"{path}{enum.name}", [(value.name, value.number) for value in enum.value]
        for message in messages:
            for field in message.field:
                row = (field.number, field.type, field.label, field.type_name)
                yield f"{path}{message.name}.{field.name}", row
            yield from rows(message, f"{path}{message.name}.", message.nested_type)

    theirs = {name: row for file in found for name, row in rows(file, "", file.message_type)}
    for file in schema.file_descriptors():
        for name, row in rows(file, "", file.message_type):
            if name in NEWER and name not in theirs:
                continue
            assert name in theirs, f"{name} is unknown to jaxlib"
            if isinstance(row, list):
                assert not {label for label, _ in set(theirs[name]) ^ set(row)} - NEWER, name
            else:
                assert theirs[name] == row, name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("message A {\n  int32 a = x;\n}", "f.proto:2: expected a number, found 'x'"),
        ("message A {\n  int32 a 1;\n}", "f.proto:2: expected '=', found '1'"),
        ("message A {\n  // none\n  oneof o {\n", "f.proto:4: expected '=', found ''"),
        ('syntax = "proto2";', "f.proto:1: expected 'proto3', found 'proto2'"),
        ("option x = 1;", "f.proto:1: expected a message or an enum, found 'option'"),
        ("message A [", "f.proto:1: unexpected '\\['"),
    ],
)
def test_a_source_that_cannot_be_read_is_an_error_with_its_line(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_proto_file("f.proto", text)


def descriptors_in_jaxlib():
    """FileDescriptorProtos of hlo.proto and xla_data.proto, as the protobuf compiler embeds them in a library."""
    import mmap
    from pathlib import Path

    import jaxlib
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    out = []
    for library in sorted(Path(jaxlib.__file__).parent.glob("*.so")):
        if library.stat().st_size < 1 << 20:
            continue
        with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for name in (b"xla/service/hlo.proto", b"xla/xla_data.proto"):
                at = data.find(b"\n" + bytes([len(name)]) + name)
                if at >= 0:
                    out.append(FileDescriptorProto.FromString(data[at : top_level_end(data, at)]))
    return out


def top_level_end(data, at):
    """The end of the fields of a FileDescriptorProto; its last field is `syntax`."""
    while True:
        tag, size, shift = data[at], 0, 0
        while True:
            at += 1
            size |= (data[at] & 127) << shift
            shift += 7
            if data[at] < 128:
                break
        at += 1 + size
        if tag == 12 << 3 | 2:
            return at
