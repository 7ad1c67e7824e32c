"""What stands in a call frame, as values: every byte that decoding looks at is read here, and noted.

The notes (an address and the bytes found there) tell later whether a frame is the one that was decoded: trampoline.py.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field

from ..abi import BUFFER, AttrType, CallFrame

MAX_RANK = 64
"""The largest rank of a numpy array."""

MAX_COUNT = 1 << 20
"""Arguments, results or attributes beyond which a frame is taken for damaged."""

Notes = list[tuple[int, bytes]]


class FrameError(Exception):
    """A frame that no runtime makes."""


@dataclass(frozen=True, slots=True)
class RawBuffer:
    """XLA_FFI_Buffer at `address`. kind: of the argument or result; other fields are zero unless it is a buffer."""

    kind: int
    address: int
    dtype: int = 0
    data: int = 0
    rank: int = 0
    dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RawAttr:
    """One attribute. data: the bytes of its elements or of its string; entries: of a dictionary."""

    kind: int
    dtype: int = 0
    size: int = 0
    data: bytes = b""
    entries: RawAttrs | None = None


@dataclass(frozen=True, slots=True)
class RawAttrs:
    """A dictionary of attributes, in the order of the frame (sorted by name)."""

    names: tuple[bytes, ...] = ()
    attrs: tuple[RawAttr, ...] = ()


@dataclass(slots=True)
class Snapshot:
    """The contents of a frame: data pointers are those of one call, everything else is of a call site."""

    args: tuple[RawBuffer, ...]
    rets: tuple[RawBuffer, ...]
    attrs: RawAttrs
    notes: Notes = field(default_factory=list)


ELEMENT_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 8, 16: 2, 18: 16}
"""XLA_FFI_DataType → bytes of one element of an attribute; others have one."""


def snapshot(frame: CallFrame) -> Snapshot:
    """Read a frame. Raises FrameError."""
    reader = _Reader()
    args = reader.buffers(frame.args)
    rets = reader.buffers(frame.rets)
    attrs = reader.dictionary(frame.attrs.size, _address(frame.attrs.types), *_attr_arrays(frame.attrs), 0)
    return Snapshot(args, rets, attrs, reader.notes)


def _attr_arrays(attrs: ctypes.Structure) -> tuple[int, int]:
    return _address(attrs.names), _address(attrs.attrs)


def _address(pointer: object) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


class _Reader:
    def __init__(self) -> None:
        self.notes: Notes = []

    def read(self, address: int, size: int) -> bytes:
        if not size:
            return b""
        if not address or size < 0:
            raise FrameError("a pointer of the call frame is NULL")
        found = ctypes.string_at(address, size)
        self.notes.append((address, found))
        return found

    def words(self, address: int, count: int) -> tuple[int, ...]:
        if not 0 <= count <= MAX_COUNT:
            raise FrameError(f"the call frame has {count} entries")
        return struct.unpack(f"<{count}Q", self.read(address, 8 * count))

    def kinds(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}i", self.read(address, 4 * count))

    def buffers(self, args: ctypes.Structure) -> tuple[RawBuffer, ...]:
        addresses = self.words(_address(args.args), args.size)
        kinds = self.kinds(_address(args.types), args.size)
        return tuple(self.buffer(k, a) if k == BUFFER else RawBuffer(k, a) for k, a in zip(kinds, addresses))

    def buffer(self, kind: int, address: int) -> RawBuffer:
        (dtype,) = struct.unpack("<i", self.read(address + 16, 4))
        data = ctypes.c_uint64.from_address(address + 24).value  # not noted: it changes from call to call
        rank, dims = struct.unpack("<qQ", self.read(address + 32, 16))
        if not 0 <= rank <= MAX_RANK:
            raise FrameError(f"a buffer has rank {rank}, which is not from 0 to {MAX_RANK}")
        sizes = struct.unpack(f"<{rank}q", self.read(dims, 8 * rank))
        if any(d < 0 for d in sizes):
            raise FrameError(f"a buffer has dimensions {list(sizes)}")
        return RawBuffer(kind, address, dtype, data, rank, sizes)

    def dictionary(self, count: int, types: int, names: int, attrs: int, depth: int) -> RawAttrs:
        if depth > 100:
            raise FrameError("attributes are nested more than 100 deep")
        spans = self.words(names, count)
        values = self.words(attrs, count)
        kinds = self.kinds(types, count)
        found = tuple(self.attr(k, a, depth) for k, a in zip(kinds, values))
        return RawAttrs(tuple(self.span(s) for s in spans), found)

    def span(self, address: int) -> bytes:
        pointer, length = struct.unpack("<QQ", self.read(address, 16))
        return self.read(pointer, length)

    def attr(self, kind: int, address: int, depth: int) -> RawAttr:
        if kind == AttrType.STRING:
            return RawAttr(kind, data=self.span(address))
        if kind == AttrType.DICTIONARY:
            count, types, names, attrs = struct.unpack("<q3Q", self.read(address + 16, 32))
            return RawAttr(kind, entries=self.dictionary(count, types, names, attrs, depth + 1))
        if kind == AttrType.SCALAR:
            (dtype,) = struct.unpack("<i", self.read(address, 4))
            (value,) = struct.unpack("<Q", self.read(address + 8, 8))
            return RawAttr(kind, dtype, 1, self.read(value, ELEMENT_BYTES.get(dtype, 1)))
        if kind == AttrType.ARRAY:
            (dtype,) = struct.unpack("<i", self.read(address, 4))
            size, data = struct.unpack("<QQ", self.read(address + 8, 16))
            return RawAttr(kind, dtype, size, self.read(data, size * ELEMENT_BYTES.get(dtype, 1)))
        return RawAttr(kind)
