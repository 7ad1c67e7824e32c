"""The outer form of a .tbx file: magic, versions, a table of sections, checksums, an optional signature.

    offset  bytes  what
    0       4      "TBX" and a zero byte
    4       2      format version of the writer
    6       2      least format version of a reader
    8       4      flags; 1: signed
    12      4      number of sections, n
    16      8      bytes of the file
    24      64 n   sections: kind (4), flags (4; 1: a reader must know it), offset (8), bytes (8), BLAKE2b (32), 0 (8)
    …       32     BLAKE2b-256 of all before
    …       32     HMAC-SHA256 of all before with the signer's key, or zeros

Numbers are little-endian. Sections follow in the order of the table, each at the next multiple of 64 bytes, with zeros
between them: every byte of a file is checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum

from ...hlo.errors import InputError
from ...hlo.records import dataclass

try:
    from _blake2 import blake2b  # hashlib's own; hashlib itself loads OpenSSL, which takes longer than a small file
except ImportError:
    from hashlib import blake2b

MAGIC = b"TBX\0"
FORMAT = 5
"""The format version of this writer, and the newest that this reader knows."""

LEAST_READER, OF_SPLIT, OF_DEVICES, OF_CHECKS, OF_DEVICE_CODE = 1, 2, 3, 4, 5
"""The least format version of a reader of what this writer writes, of programs with split kernels, of programs for
several devices or with feeds, of programs that check memory, and of those whose kernels are code of another device.
"""

ALIGNMENT = 64
MOST_SECTIONS = 1 << 16

_HEAD = struct.Struct("<4sHHIIQ")
_ENTRY = struct.Struct("<IIQQ32s8s")
_DIGEST = 32
_SIGNED, _REQUIRED = 1, 1


class SectionKind(IntEnum):
    """Numbers are never given away again."""

    TARGET = 1
    ENTRY = 2
    BUFFERS = 3
    PROGRAM = 4
    CODE = 5  # an object file; there may be several
    CONSTANTS = 6
    HOST = 7  # MLIR bytecode of the compiled host program; a reader need not know it
    DEVICE = 8  # the kernels of another device than the host


@dataclass(frozen=True, slots=True)
class Section:
    """kind: a SectionKind, or the number of a kind that a newer writer knows. required: a reader must know the kind."""

    kind: int
    data: bytes | memoryview
    offset: int = 0
    required: bool = True

    @property
    def name(self) -> str:
        return SectionKind(self.kind).name.lower() if self.kind in set(SectionKind) else f"kind {self.kind}"


@dataclass(frozen=True, slots=True)
class Container:
    """A file that was checked. reader: the least format version of its readers."""

    format: int
    reader: int
    signed: bool
    sections: tuple[Section, ...]


def pack(
    sections: Sequence[Section], key: bytes | None = None, reader: int = LEAST_READER
) -> Iterator[bytes | memoryview]:
    """The bytes of a file, in pieces. key: signs it."""
    offset = _header_size(len(sections))
    table, pieces = b"", list[bytes | memoryview]()
    for section in sections:
        padding = -offset % ALIGNMENT
        offset += padding
        size = len(section.data)
        table += _ENTRY.pack(section.kind, section.required, offset, size, _digest(section.data), bytes(8))
        pieces += [bytes(padding), section.data]
        offset += size
    head = _HEAD.pack(MAGIC, FORMAT, reader, key is not None, len(sections), offset) + table
    head += _digest(head)
    yield head
    yield bytes(_DIGEST) if key is None else _signature(head, key)
    yield from pieces


def unpack(data: bytes | memoryview, key: bytes | None = None) -> Container:
    """Check a file and find its sections; what a reader need not know may be among them.

    key: refuse a file that is not signed with it. Raises InputError with the reason.
    """
    view = memoryview(data)
    format, reader, flags, count = _head(view)
    end = _header_size(count) - 2 * _DIGEST
    if _digest(view[:end]) != bytes(view[end : end + _DIGEST]):
        raise InputError("the header is damaged: its checksum differs", remedy="copy the file again")
    signature = bytes(view[end + _DIGEST : end + 2 * _DIGEST])
    if key is not None:
        if not flags & _SIGNED:
            raise InputError("the file is not signed", remedy="sign it: testbed compile --sign KEY")
        import hmac

        if not hmac.compare_digest(signature, _signature(view[: end + _DIGEST], key)):
            raise InputError("the signature is not of this key: the file was changed, or signed with another key")
    elif not flags & _SIGNED and any(signature):
        raise InputError("the header is damaged: a signature in a file that is not signed", remedy="copy it again")
    if flags & ~_SIGNED:
        raise InputError(f"flags {flags:#x} are not known", remedy="read it with a newer testbed")
    return Container(format, reader, bool(flags & _SIGNED), tuple(_sections(view, count)))


def _head(view: memoryview) -> tuple[int, int, int, int]:
    """(format, least reader, flags, number of sections), of a file that is whole."""
    if bytes(view[:4]) != MAGIC[: len(view)] or not len(view):
        raise InputError("not a .tbx file: it does not begin with TBX", remedy="make one with testbed compile")
    if len(view) < _HEAD.size:
        raise InputError(f"cut short: {len(view)} bytes are no header", remedy="copy the file again")
    _, format, reader, flags, count, size = _HEAD.unpack_from(view)
    if reader > FORMAT:
        raise InputError(
            f"it needs a reader of format {reader}, and this one knows {FORMAT}",
            remedy="use a newer testbed, or compile the module again with this one",
        )
    if size != len(view) or count > MOST_SECTIONS or _header_size(count) > size:
        what = "cut short" if size > len(view) else "damaged"
        raise InputError(f"{what}: {len(view)} bytes, its header says {size}", remedy="copy the file again")
    return format, reader, flags, count


def _sections(view: memoryview, count: int) -> Iterator[Section]:
    end = _header_size(count)
    for number in range(count):
        kind, flags, offset, size, digest, rest = _ENTRY.unpack_from(view, _HEAD.size + number * _ENTRY.size)
        begin = end + -end % ALIGNMENT
        if offset != begin or size > len(view) - begin or flags & ~_REQUIRED or any(rest):
            raise InputError(f"section {number} is not where it must be, or has unknown flags")
        if any(view[end:begin]):
            raise InputError(f"bytes before section {number} are not zero", remedy="copy the file again")
        section = Section(kind, view[begin : begin + size], begin, bool(flags & _REQUIRED))
        if _digest(section.data) != digest:
            raise InputError(f"section {section.name} is damaged: its checksum differs", remedy="copy the file again")
        if section.required and kind not in set(SectionKind):
            raise InputError(f"section {section.name} is not known", remedy="read it with a newer testbed")
        yield section
        end = begin + size
    if end != len(view):
        raise InputError(f"{len(view) - end} bytes follow the last section")


def _header_size(count: int) -> int:
    return _HEAD.size + count * _ENTRY.size + 2 * _DIGEST


def _digest(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


def _signature(head: bytes | memoryview, key: bytes) -> bytes:
    import hmac

    return hmac.digest(key, head, "sha256")
