"""The memory that a handler reads: attributes, dimensions and call frames, laid out as the ABI says."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ..hlo.dtypes import DType
from .abi import (
    BUFFER,
    CALL_FRAME_SIZE,
    DATA_TYPES,
    Args,
    Array,
    Attrs,
    AttrType,
    Buffer,
    ByteSpan,
    CallFrame,
    Scalar,
    Stage,
)
from .attributes import Attribute, Attributes
from .layout import FrameLayout

Leaves = Sequence[tuple[str, tuple[int, ...]]]


class Memory:
    """Structures of C that point to each other. They live as long as this does."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def keep(self, made: Any) -> int:
        """The address of something of ctypes."""
        self._kept.append(made)
        return ctypes.addressof(made)

    def data(self, data: bytes) -> int:
        """The address of bytes, aligned to 16."""
        block = (ctypes.c_char * (len(data) + 17))()
        address = -(-self.keep(block) // 16) * 16
        ctypes.memmove(address, data, len(data))
        return address

    def attributes(self, rows: Attributes) -> Attrs:
        """XLA_FFI_Attrs of decoded attributes."""
        made, count = Attrs(), len(rows)
        names, values = (ctypes.c_void_p * count)(), (ctypes.c_void_p * count)()
        types = (ctypes.c_int32 * count)(*(row[1][0] for row in rows))
        for number, (name, attribute) in enumerate(rows):
            text = name.encode()
            names[number] = self.keep(ByteSpan(self.data(text), len(text)))
            values[number] = self._attribute(attribute)
        made.struct_size, made.size = ctypes.sizeof(Attrs), count
        made.types = ctypes.cast(self.keep(types), type(made.types))
        made.names = ctypes.cast(self.keep(names), type(made.names))
        made.attrs = ctypes.cast(self.keep(values), type(made.attrs))
        return made

    def _attribute(self, attribute: Attribute) -> int:
        kind, *fields = attribute
        match AttrType(kind):
            case AttrType.SCALAR:
                return self.keep(Scalar(fields[0], self.data(bytes.fromhex(fields[1]))))
            case AttrType.ARRAY:
                return self.keep(Array(fields[0], fields[1], self.data(bytes.fromhex(fields[2]))))
            case AttrType.STRING:
                data = bytes.fromhex(fields[0])
                return self.keep(ByteSpan(self.data(data), len(data)))
            case AttrType.DICTIONARY:
                return self.keep(self.attributes(tuple(fields[0])))

    def fill_frame(self, block: int, operands: Leaves, results: Leaves, attrs: Attrs, api: int, ctx: int) -> None:
        """Write a call frame for the stage EXECUTE, with its buffers, to a block. Their data is NULL."""
        layout = FrameLayout(len(operands), len(results))
        frame = CallFrame.from_address(block)
        frame.struct_size, frame.api, frame.ctx, frame.stage = CALL_FRAME_SIZE, api, ctx, int(Stage.EXECUTE)
        for args, leaves in ((frame.args, operands), (frame.rets, results)):
            types = (ctypes.c_int32 * len(leaves))(*[BUFFER] * len(leaves))
            args.struct_size, args.size = ctypes.sizeof(Args), len(leaves)
            args.types = ctypes.cast(self.keep(types), type(args.types))
        frame.attrs = attrs
        for number, (dtype, dims) in enumerate([*operands, *results]):
            buffer = Buffer.from_address(block + layout.buffer(number))
            sizes = (ctypes.c_int64 * len(dims))(*dims)
            buffer.struct_size, buffer.rank = ctypes.sizeof(Buffer), len(dims)
            buffer.dtype = DATA_TYPES[DType(dtype)]
            buffer.dims = ctypes.cast(self.keep(sizes), type(buffer.dims))
        for place, target in layout.places.items():
            ctypes.c_uint64.from_address(block + place).value = block + target
