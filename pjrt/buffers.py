"""Functions of buffers that are not native: unusual host memory, copies, views, transfers to the host."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..hlo.dtypes import DType
from . import api
from .client import Memory, memory_of
from .errors import PjrtError
from .native import words_at
from .records import BUFFER, W

if TYPE_CHECKING:
    from .native import Native

B = W["buffer"]


def sizes_at(address: int | None, count: int) -> tuple[int, ...]:
    """An array of int64_t."""
    return tuple((ctypes.c_int64 * count).from_address(address)) if count and address else ()


def array_at(address: int, dtype: np.dtype, dims: tuple[int, ...]) -> np.ndarray:
    """The row-major array at an address. Whoever uses it keeps the memory alive."""
    size = dtype.itemsize * int(np.prod(dims, dtype=np.int64))
    return np.ndarray(dims, dtype, memory_at(address, size)) if size else np.empty(dims, dtype)


def memory_at(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_uint8 * size).from_address(address))


def dtype_of(number: int) -> DType:
    """Raises PjrtError for a type whose arrays cannot be held."""
    dtype = api.DTYPE_OF.get(number)
    if dtype is None or not dtype.is_array:
        raise PjrtError(api.ErrorCode.UNIMPLEMENTED, f"buffers of PJRT's element type {number} are not supported")
    return dtype


class Buffer:
    """A buffer's record as Python reads it."""

    def __init__(self, handle: int):
        self.handle, self._words = handle, words_at(handle, len(BUFFER))

    def __getitem__(self, name: str) -> int:
        return int(self._words[B[name]])

    @property
    def dims(self) -> tuple[int, ...]:
        return sizes_at(self["dims"], self["rank"])

    def array(self) -> np.ndarray:
        """Its elements. Raises PjrtError if it was deleted or given up."""
        if self["deleted"]:
            raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, "Buffer has been deleted or donated.")
        return array_at(self["data"], dtype_of(self["type"]).numpy, self.dims)


def _strided(address: int, dtype: np.dtype, dims: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """The array at an address with strides in bytes, which may be negative."""
    if not all(dims):
        return np.empty(dims, dtype)
    reach = [(d - 1) * s for d, s in zip(dims, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + dtype.itemsize
    return np.ndarray(dims, dtype, memory_at(address + low, high - low), -low, strides)


class Buffers:
    """The functions, with the native code that makes buffers."""

    def __init__(self, native: Callable[[], Native]):
        self._native = native

    @property
    def native(self) -> Native:
        return self._native()

    def template(self, memory: Memory, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
        size = dtype.bytes * int(np.prod(dims, dtype=np.int64))
        return self.native.template(memory.handle, memory.device.handle, api.TYPE_OF[dtype], dims, size)

    def uninitialized(self, memory: Memory, dtype: DType, dims: tuple[int, ...]) -> tuple[int, np.ndarray]:
        """A new buffer and the array on its memory."""
        template = self.template(memory, dtype, dims)
        handle, block = self.native.pool_buffer(template, int(template[B["bytes"]]))
        return handle, array_at(block, dtype.numpy, dims)

    def copy(self, array: np.ndarray, memory: Memory, dtype: DType) -> int:
        """A new buffer with the elements of an array."""
        handle, made = self.uninitialized(memory, dtype, array.shape)
        np.copyto(made, array)
        return handle

    def from_host(self, args: Any) -> None:
        """Client_BufferFromHostBuffer for what its native form leaves."""
        dtype, dims = dtype_of(args.type), sizes_at(args.dims, args.num_dims)
        refuse_layout(args.device_layout, len(dims))
        strides = sizes_at(args.byte_strides, args.num_byte_strides)
        if strides:
            array = _strided(args.data or 0, dtype.numpy, dims, strides)
        else:
            array = array_at(args.data or 0, dtype.numpy, dims)
        args.buffer = self.copy(array, memory_of(args.memory, args.device), dtype)
        args.done_with_host_buffer = self.native.ready_event

    def to_host(self, args: Any) -> None:
        array = Buffer(args.src).array()
        if not args.dst:
            args.dst_size = array.nbytes
            return
        if args.dst_size < array.nbytes:
            what = f"{array.nbytes} bytes do not fit into {args.dst_size}"
            raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, what)
        order = minor_to_major(args.host_layout, array.ndim)
        physical = array.transpose(tuple(reversed(order)))
        np.copyto(array_at(args.dst, array.dtype, physical.shape), physical)
        args.event = self.native.ready_event

    def raw_to_host(self, args: Any) -> None:
        buffer = Buffer(args.buffer)
        buffer.array()
        if args.offset < 0 or args.transfer_size < 0 or args.offset + args.transfer_size > buffer["bytes"]:
            what = f"{args.transfer_size} bytes from {args.offset} on are not in a buffer of {buffer['bytes']} bytes"
            raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, what)
        ctypes.memmove(args.dst, buffer["data"] + args.offset, args.transfer_size)
        args.event = self.native.ready_event

    def to_memory(self, args: Any) -> None:
        buffer = Buffer(args.buffer)
        args.dst_buffer = self.copy(buffer.array(), memory_of(args.dst_memory, None), dtype_of(buffer["type"]))

    def to_device(self, args: Any) -> None:
        buffer = Buffer(args.buffer)
        args.dst_buffer = self.copy(buffer.array(), memory_of(None, args.dst_device), dtype_of(buffer["type"]))

    def new(self, args: Any) -> None:
        dims = sizes_at(args.shape_dims, args.shape_num_dims)
        refuse_layout(args.shape_layout, len(dims))
        memory = memory_of(args.memory, args.device)
        args.buffer = self.uninitialized(memory, dtype_of(args.shape_element_type), dims)[0]

    def view(self, args: Any) -> None:
        """A buffer on memory of the caller, who is told when nothing reads it any more."""
        dtype, dims = dtype_of(args.element_type), sizes_at(args.dims, args.num_dims)
        refuse_layout(args.layout, len(dims))
        template = self.template(memory_of(args.memory, args.device), dtype, dims)
        data, callback = args.device_buffer_ptr or 0, args.on_delete_callback or 0
        args.buffer = self.native.new_buffer(template, data, callback, data, args.on_delete_callback_arg or 0)

    def bitcast(self, args: Any) -> None:
        """The same bytes as another type. The result is a copy."""
        dtype, dims = dtype_of(args.element_type), sizes_at(args.dims, args.num_dims)
        refuse_layout(args.device_layout, len(dims))
        buffer = Buffer(args.buffer)
        array = buffer.array()
        wanted = dtype.bytes * int(np.prod(dims, dtype=np.int64))
        if wanted != array.nbytes:
            raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, f"{array.nbytes} bytes are not {wanted} bytes")
        memory = memory_of(buffer["memory"], None)
        handle, made = self.uninitialized(memory, dtype, dims)
        ctypes.memmove(Buffer(handle)["data"], buffer["data"], made.nbytes)
        args.out_buffer = handle

    def dense_layout(self, args: Any) -> None:
        """Buffer_GetMemoryLayout: row-major, without tiles."""
        rank = Buffer(args.buffer)["rank"]
        order = _ORDERS.setdefault(rank, (ctypes.c_int64 * max(rank, 1))(*reversed(range(rank))))
        args.layout.type = int(api.LayoutType.TILED)
        args.layout.tiled.minor_to_major = ctypes.addressof(order)
        args.layout.tiled.minor_to_major_size = rank
        args.layout.tiled.num_tiles = 0

    def functions(self) -> dict[str, Callable[[Any], None]]:
        return {
            "Client_BufferFromHostBuffer": self.from_host,
            "Client_CreateUninitializedBuffer": self.new,
            "Client_CreateViewOfDeviceBuffer": self.view,
            "Buffer_ToHostBuffer": self.to_host,
            "Buffer_CopyRawToHost": self.raw_to_host,
            "Buffer_CopyToMemory": self.to_memory,
            "Buffer_CopyToDevice": self.to_device,
            "Buffer_Bitcast": self.bitcast,
            "Buffer_GetMemoryLayout": self.dense_layout,
        }


_ORDERS: dict[int, Any] = {}


def minor_to_major(layout: int | None, rank: int) -> tuple[int, ...]:
    """The order of dimensions that a layout says; row-major without one. Raises PjrtError for tiles."""
    default = tuple(reversed(range(rank)))
    if not layout:
        return default
    given = api.structure("PJRT_Buffer_MemoryLayout").from_address(layout)
    if given.type != api.LayoutType.TILED:
        return default
    if given.tiled.num_tiles:
        raise PjrtError(api.ErrorCode.UNIMPLEMENTED, "layouts with tiles are not supported")
    return sizes_at(given.tiled.minor_to_major, given.tiled.minor_to_major_size) or default


def refuse_layout(layout: int | None, rank: int) -> None:
    """Raises PjrtError unless a layout is row-major: buffers have no other."""
    order = minor_to_major(layout, rank)
    if order != tuple(reversed(range(rank))):
        text = "{" + ",".join(map(str, order)) + "}"
        raise PjrtError(api.ErrorCode.UNIMPLEMENTED, f"a buffer with the layout {text}; all are row-major")
