"""Buffers → numpy arrays over the runtime's memory: arguments are read-only, results are written in place.

A view is valid while the call lasts, as a pointer in C++ is.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...hlo.dtypes import NUMPY, DType
from ...hlo.library.foreign import is_packed
from ...hlo.shapes import Shape
from ..abi import BUFFER, DATA_TYPES, DTYPES
from ..packing import pack, packed_bytes, unpack
from .attributes import FAILED, Diagnostics, dtype_name
from .errors import Error
from .frames import RawBuffer
from .specs import BufferSpec

MAX_BYTES = 1 << 62


def view(buffer: RawBuffer, writable: bool) -> np.ndarray | None:
    """The array over a buffer; None if numpy has no such array. Without memory (before execution) it holds zeros.

    Of packed elements it is an array of its own: `write_back` packs a result when the function has returned.
    """
    dtype = NUMPY.get(DTYPES.get(buffer.dtype, DType.OPAQUE))
    if dtype is None:
        return np.empty(0, np.uint8) if DTYPES.get(buffer.dtype) == DType.TOKEN else None
    size = math.prod(buffer.dims) * dtype.itemsize
    if size > MAX_BYTES:
        return None
    if size == 0:
        made = np.empty(buffer.dims, dtype)
    elif buffer.data == 0:
        return np.broadcast_to(np.zeros((), dtype), buffer.dims)
    elif is_narrow(buffer):
        kind = DTYPES[buffer.dtype]
        made = unpack(_packed(buffer), size, kind).reshape(buffer.dims)
    else:
        memory: Any = (ctypes.c_uint8 * size).from_address(buffer.data)
        made = np.ndarray(buffer.dims, dtype, memory)
    made.flags.writeable = writable
    return made


def is_narrow(buffer: RawBuffer) -> bool:
    """Whether its elements are packed, several to a byte."""
    return buffer.kind == BUFFER and is_packed(Shape(DTYPES.get(buffer.dtype, DType.U8), buffer.dims))


def write_back(buffer: RawBuffer, array: np.ndarray) -> None:
    """Pack the elements of a result into its buffer."""
    _packed(buffer)[:] = pack(array, DTYPES[buffer.dtype])


def _packed(buffer: RawBuffer) -> np.ndarray:
    size = packed_bytes(math.prod(buffer.dims), DTYPES[buffer.dtype])
    memory: Any = (ctypes.c_uint8 * size).from_address(buffer.data)
    return np.ndarray((size,), np.uint8, memory)


def matches(spec: BufferSpec, buffer: RawBuffer) -> bool:
    """Whether a buffer has the dtype and the rank, as C++'s `isa`."""
    dtype = spec.dtype is None or buffer.dtype == DATA_TYPES[spec.dtype]
    return buffer.kind == BUFFER and dtype and spec.rank in (None, buffer.rank)


def decode_buffer(spec: BufferSpec, buffer: RawBuffer, writable: bool, diagnostics: Diagnostics) -> Any:
    """The view of a buffer, or FAILED."""
    if buffer.kind != BUFFER:
        what = "result" if writable else "argument"
        diagnostics.append(f"Wrong {what} type: expected buffer but got {buffer.kind}")
        return FAILED
    if spec.dtype is not None and buffer.dtype != DATA_TYPES[spec.dtype]:
        expected, got = dtype_name(DATA_TYPES[spec.dtype]), dtype_name(buffer.dtype)
        diagnostics.append(f"Wrong buffer dtype: expected {expected} but got {got}")
        return FAILED
    if spec.rank is not None and buffer.rank != spec.rank:
        diagnostics.append(f"Wrong buffer rank: expected {spec.rank} but got {buffer.rank}")
        return FAILED
    found = view(buffer, writable)
    if found is None:
        diagnostics.append(f"Unsupported buffer: {dtype_name(buffer.dtype)} {list(buffer.dims)}")
        return FAILED
    return found


Decode = Callable[[RawBuffer, Diagnostics], Any]
_CUSTOM: dict[tuple[Any, bool], tuple[Decode, Any]] = {}


def _registration(kind: Any, decode: Callable[[np.ndarray], Any], of: Any, is_result: bool) -> None:
    def run(buffer: RawBuffer, diagnostics: Diagnostics) -> Any:
        found = decode_buffer(of, buffer, is_result, diagnostics)
        if found is FAILED:
            return found
        if is_result and is_narrow(buffer):
            diagnostics.append(f"A result of {dtype_name(buffer.dtype)} is packed: take it as a Buffer")
            return FAILED
        try:
            return decode(found)
        except Exception as error:
            diagnostics.append(error.message if isinstance(error, Error) else str(error) or type(error).__name__)
            return FAILED

    _CUSTOM[kind, is_result] = run, of


def register_arg_decoding(kind: Any, decode: Callable[[np.ndarray], Any], of: Any) -> None:
    """Teach signatures a new type of argument. decode: takes the array that `of` (say, Buffer[F32]) gives."""
    _registration(kind, decode, of, False)


def register_ret_decoding(kind: Any, decode: Callable[[np.ndarray], Any], of: Any) -> None:
    """Teach signatures a new type of result, written through what `decode` makes of its array."""
    _registration(kind, decode, of, True)


def is_custom(kind: Any, is_result: bool) -> bool:
    try:
        return (kind, is_result) in _CUSTOM
    except TypeError:
        return False


def decode_operand(of: Any, buffer: RawBuffer, is_result: bool, diagnostics: Diagnostics) -> Any:
    """An argument or result by a BufferSpec, or as a registered type; FAILED after saying why."""
    if isinstance(of, BufferSpec):
        return decode_buffer(of, buffer, is_result, diagnostics)
    return _CUSTOM[of, is_result][0](buffer, diagnostics)


class Remaining(Sequence[np.ndarray]):
    """Further arguments or results: as arrays by their number, or with `get` as a type of the signature."""

    def __init__(self, buffers: Sequence[RawBuffer], is_result: bool):
        self._buffers = buffers
        self._is_result = is_result
        self._views: list[np.ndarray | None] = [view(b, is_result) if b.kind == BUFFER else None for b in buffers]

    def __len__(self) -> int:
        return len(self._buffers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError("Index out of range")
        return self.get(BufferSpec(None, None), index % len(self))

    def get(self, kind: Any, index: int) -> Any:
        """Raises Error: INVALID_ARGUMENT for an index out of range, INTERNAL for another type."""
        if not 0 <= index < len(self):
            raise Error.invalid_argument("Index out of range")
        diagnostics: Diagnostics = []
        buffer, found = self._buffers[index], self._views[index]
        if isinstance(kind, BufferSpec) and found is not None and matches(kind, buffer):
            return found
        decoded = decode_operand(kind, buffer, self._is_result, diagnostics)
        if decoded is FAILED:
            raise Error.internal("".join(diagnostics))
        return decoded

    def isa(self, kind: Any, index: int) -> bool:
        """Whether the one with this number has the type."""
        of = kind if isinstance(kind, BufferSpec) else _CUSTOM[kind, self._is_result][1]
        return matches(of, self._buffers[index])

    @property
    def views(self) -> list[np.ndarray | None]:
        return self._views


class RemainingArgs(Remaining):
    """All further arguments."""

    def __init__(self, buffers: Sequence[RawBuffer]):
        super().__init__(buffers, False)


class RemainingRets(Remaining):
    """All further results."""

    def __init__(self, buffers: Sequence[RawBuffer]):
        super().__init__(buffers, True)
