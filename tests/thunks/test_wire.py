"""Protos of the wire format: our codec is protobuf's, one form for each value; files are checked to the last byte."""

import random
from pathlib import Path

import pytest
from google.protobuf import descriptor_pool, message_factory

from ...formats.proto.proto_source import enum_names, read_proto_file, resolve
from ...hlo.errors import InputError
from ...thunks import wire
from ...thunks.rows import KINDS, Type
from ...thunks.wire.container import FORMAT, MAGIC, Section, SectionKind, pack, unpack
from ...thunks.wire.protobuf import Damaged, decode, encode
from ...thunks.wire.schema import SCALARS, schema
from ...thunks.wire.thunks import field_name

SOURCE = Path(wire.__file__).parent / "wire.proto"


@pytest.fixture(scope="module")
def protobuf():
    """message name → protobuf's own class."""
    file = read_proto_file("wire.proto", SOURCE.read_text())
    resolve(file, frozenset(enum_names(file)))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"testbed.wire.{name}"))


def test_the_schema_is_what_protobuf_reads(protobuf):
    assert len(schema()) == SOURCE.read_text().count("\nmessage ")
    for name, fields in schema().items():
        theirs = protobuf(name).DESCRIPTOR.fields
        assert {(f.number, f.name) for f in fields.values()} == {(f.number, f.name) for f in theirs}
        for f in theirs:
            ours = fields[f.number]
            assert (ours.label == "repeated", ours.label == "optional") == (
                f.is_repeated,
                f.has_presence and f.containing_oneof is not None and f.containing_oneof.name.startswith("_"),
            )
            assert ours.type == (f.message_type.name if f.message_type else TYPES[f.type])


TYPES = {4: "uint64", 8: "bool", 9: "string", 12: "bytes"}


def test_the_table_of_kinds_is_that_of_the_proto():
    thunk = {f.name: f for f in schema()["Thunk"].values()}
    assert {(field_name(kind), kind.name, kind.number) for kind in KINDS} == {
        (name, f.type, f.number) for name, f in thunk.items()
    }
    wanted = {
        **dict.fromkeys((Type.NAME, Type.LABEL), "string"),
        **dict.fromkeys((Type.SEQUENCE, Type.SEQUENCES), "Sequential"),
        Type.NUMBER: "uint64",
        Type.FLAG: "bool",
        Type.SLICE: "Slice",
        Type.SPLIT: "Split",
        Type.USES: "Use",
        Type.SHAPE: "Shape",
        Type.GROUPS: "Group",
        Type.THUNKS: "Thunk",
    }
    for kind in KINDS:
        fields = {f.name: (f.number, wanted[f.type]) for f in kind.fields}
        assert {f.name: (f.number, f.type) for f in schema()[kind.name].values()} == fields


def drawn(name, rng, depth=0):
    """Random values of a message, in the form of `decode`."""
    values = {}
    for f in schema()[name].values():
        count = rng.randrange(3) if depth < 4 else 0
        if f.label == "repeated":
            values[f.name] = [one(f, rng, depth) for _ in range(count)]
        elif f.label == "optional" or f.type not in SCALARS:
            values[f.name] = one(f, rng, depth) if count else None
        else:
            values[f.name] = one(f, rng, depth)
    return values


def one(f, rng, depth):
    number = rng.choice([0, 1, 127, 128, 300, 2**32, 2**64 - 1])
    plain = {"uint64": number, "bool": bool(number % 2), "string": "é" * (number % 5), "bytes": b"\xff" * (number % 5)}
    return plain[f.type] if f.type in SCALARS else drawn(f.type, rng, depth + 1)


@pytest.mark.parametrize("name", sorted(schema()))
def test_messages_go_both_ways_and_protobuf_agrees(name, protobuf):
    rng = random.Random(name)
    for _ in range(20):
        values = drawn(name, rng)
        if name == "Thunk":  # its fields exclude each other
            values = {f: v if n == 0 else None for n, (f, v) in enumerate(values.items())}
        data = encode(name, values)
        assert decode(name, data) == values
        if "Thunk" in (name, *(f.type for f in schema()[name].values())) or name in ("While", "Conditional", "Program"):
            continue  # protobuf keeps one of several kinds of a thunk
        theirs = protobuf(name).FromString(data)
        assert theirs.SerializeToString(deterministic=True) == data


def test_a_field_of_a_newer_writer_is_skipped():
    more = b"\x78\x01" + b"\x7a\x03abc" + b"\x7d1234" + b"\x7912345678"
    assert decode("Slice", encode("Slice", {"size": 5}) + more) == {"allocation": 0, "offset": 0, "size": 5}


@pytest.mark.parametrize(
    "name, data, message",
    [
        ("Slice", b"\x08", "a number without an end"),
        ("Slice", b"\x08" + b"\xff" * 10 + b"\x01", "a number without an end"),
        ("Slice", b"\x08" + b"\xff" * 9 + b"\x7f", "a number without an end"),
        ("Slice", b"\x0b", "no field can have the wire type 3"),
        ("Slice", b"\x08\x01\x08\x02", "Slice.allocation: there twice"),
        ("Slice", b"\x0a\x00", "Slice.allocation: not a uint64"),
        ("Copy", b"\x0a\x7fabc", "Copy: says 127 bytes, but 3 are left"),
        ("Copy", b"\x0a\x01\xff", "Copy.name: not UTF-8 at byte 0"),
        ("Copy", b"\x0a\x05\x1b[31m", r"Copy.name: '\x1b[31m' has characters that cannot be shown"),
        ("Copy", b"\x0a\x03a\nb", r"Copy.name: 'a\nb' has characters that cannot be shown"),
        ("Copy", b"\x10\x01", "Copy.source: not a Slice"),
        ("Use", b"\x10\x02", "Use.written: not a bool"),
    ],
)
def test_damaged_messages_are_refused(name, data, message):
    with pytest.raises(Damaged) as caught:
        decode(name, data)
    assert message in str(caught.value)


def test_what_cannot_be_read_is_not_written():
    with pytest.raises(Damaged, match="has characters that cannot be shown"):
        encode("Copy", {"name": "a\0b"})
    with pytest.raises(KeyError, match="Copy has no field size"):
        encode("Copy", {"size": 4})
    with pytest.raises(ValueError, match="-1 is no uint64"):
        encode("Slice", {"size": -1})


def test_messages_that_nest_too_deep_are_refused():
    data = b""
    for tag in b"\x1a\x12" * 200:  # a sequence in a thunk in a sequence
        data = bytes([tag]) + varint(len(data)) + data
    with pytest.raises(Damaged, match="nest deeper than"):
        decode("Sequential", data)


def varint(value):
    return encode("Slice", {"allocation": value})[1:] or b"\0"


# -- the container -----------------------------------------------------------------------------------------------------
SECTIONS = [
    Section(SectionKind.TARGET, b"target"),
    Section(SectionKind.CODE, b"x" * 100),
    Section(SectionKind.CODE, b""),
]


def packed(*more, key=None):
    return b"".join(pack([*SECTIONS, *more], key))


def test_sections_come_back_aligned():
    container = unpack(packed())
    assert [(s.kind, bytes(s.data), s.offset % 64) for s in container.sections] == [
        (s.kind, s.data, 0) for s in SECTIONS
    ]
    assert (container.format, container.reader, container.signed) == (FORMAT, 1, False)


def test_an_unknown_section_is_skipped_unless_it_is_required():
    assert unpack(packed(Section(77, b"new", required=False))).sections[-1].name == "kind 77"
    with pytest.raises(InputError, match="section kind 77 is not known"):
        unpack(packed(Section(77, b"new")))


def refusal(data, key=None):
    with pytest.raises(InputError) as caught:
        unpack(data, key)
    return str(caught.value)


def test_a_signature_is_checked_with_its_key():
    signed = packed(key=b"secret")
    assert unpack(signed, b"secret").signed and unpack(signed).signed
    assert "the signature is not of this key" in refusal(signed, b"other")
    assert "the file is not signed" in refusal(packed(), b"secret")


def test_other_files_and_newer_ones_are_refused():
    assert "not a .tbx file" in refusal(b"") and "not a .tbx file" in refusal(b"\x7fELF" + bytes(100))
    newer = bytearray(packed())
    newer[4:8] = (9).to_bytes(2, "little") * 2
    assert f"it needs a reader of format 9, and this one knows {FORMAT}" in refusal(bytes(newer))
    assert "cut short" in refusal(MAGIC) and "cut short" in refusal(packed()[:-1])
    assert "bytes, its header says" in refusal(packed() + b"\0")


@pytest.mark.parametrize("key", [None, b"secret"])
def test_every_byte_and_every_length_is_checked(key):
    data = packed(key=key)
    for n in range(len(data)):
        assert refusal(data[:n], key)
        for bit in (1, 128):
            assert refusal(data[:n] + bytes([data[n] ^ bit]) + data[n + 1 :], key)
