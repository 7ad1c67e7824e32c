"""The plugin's native code, loaded, with the records that it shares with Python."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..backends.host.addresses import address_of
from ..backends.host.memory import POOL, native_functions, size_class
from ..codegen.load import load
from ..codegen.runtime import runtime_object
from ..hlo.errors import OutOfMemoryError
from . import api
from .native_code import GETTERS, LAYOUT_RANKS, SLOW, TYPE_COUNT
from .records import BUFFER, READY, W

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

NATIVE = (
    *("Event_Destroy", "Event_IsReady", "Event_Error", "Event_Await", "Event_OnReady"),
    *("Buffer_Destroy", "Buffer_Delete", "Buffer_DecreaseExternalReferenceCount"),
    *("Buffer_IncreaseExternalReferenceCount", "Buffer_IsOnCpu", "Buffer_DynamicDimensionIndices"),
    *("Buffer_ReadyEvent", "Layouts_MemoryLayout_Destroy", *GETTERS, *SLOW),
)
"""The functions of the table that are native."""


def text_record(text: bytes) -> tuple[int, int, bytes]:
    """The address and size of a text, and what keeps it alive."""
    return ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0, len(text), text


class Native:
    """slow: Python's forms of the functions in SLOW. All that is made here lives as long as the process: threads of the
    framework may call it until the end.
    """

    def __init__(self, slow: Mapping[str, Callable[[Any], Any]]):
        self._slow = [slow[name] for name in SLOW]
        self._event = np.array([1, READY], np.uint64)
        self._kept: list[object] = []
        self._layouts = np.array([self._layout(rank) for rank in range(LAYOUT_RANKS)], np.uint64)
        self._widths = np.zeros(TYPE_COUNT, np.uint64)
        for number, dtype in api.DTYPE_OF.items():
            if dtype.is_array:
                self._widths[number] = dtype.bytes
        imports = {f"slow_{name}": _address(slow[name]) for name in SLOW} | native_functions()
        library = ctypes.CDLL(None)
        for name in ("malloc", "aligned_alloc", "free", "memcpy", "memmove", "sched_yield"):
            imports[name] = _address(getattr(library, name))
        imports["pjrt_ready_event"] = address_of(self._event)
        imports["pjrt_layouts"] = address_of(self._layouts)
        imports["pjrt_widths"] = address_of(self._widths)
        self._code = load([_object()], imports)
        self.addresses = {name: self._code.address(f"PJRT_{name}") for name in NATIVE}
        self.nothing = self._code.address("nothing")
        """void (void*) that does nothing: a deleter."""
        self.none = self._code.address("PJRT_none")
        """A function of the table that does nothing and succeeds."""
        self.release_allocated = self._code.address("release_allocated")
        self.release_to_pool = native_functions()["testbed_give"]
        self.ready_event = address_of(self._event)
        self.execute = CALLBACK(self.addresses["LoadedExecutable_Execute"])
        self.drop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("testbed_drop"))
        self.delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("testbed_delete"))
        self._hold = CALLBACK(self.addresses["Buffer_IncreaseExternalReferenceCount"])
        self._malloc = library.malloc
        self._malloc.restype, self._malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self._take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(native_functions()["testbed_take"])

    def hold(self, buffer: int) -> None:
        """Take a reference on a buffer, which `drop` gives up."""
        kind = api.arguments("Buffer_IncreaseExternalReferenceCount")
        args = kind(ctypes.sizeof(kind), None, buffer)
        self._hold(ctypes.addressof(args))

    def _layout(self, rank: int) -> int:
        text = text_record(("{" + ",".join(str(d) for d in reversed(range(rank))) + "}").encode())
        record = np.array(text[:2], np.uint64)
        self._kept += [text, record]
        return address_of(record)

    def layout(self, rank: int) -> int:
        """The handle of the row-major layout of a rank."""
        return int(self._layouts[rank])

    def template(self, memory: int, device: int, dtype: int, dims: tuple[int, ...], size: int) -> np.ndarray:
        """The words of a new buffer without memory; `dims` of the record is to be set to where they are in a copy."""
        words = np.zeros(len(BUFFER) + len(dims), np.int64)
        values = {"refs": 1, "bytes": size, "device": device, "memory": memory, "type": dtype, "rank": len(dims)}
        values["layout"] = self.layout(len(dims))
        for name, value in values.items():
            words[W["buffer"][name]] = value
        words[len(BUFFER) :] = dims
        return words

    def new_buffer(
        self,
        template: np.ndarray,
        data: int,
        release: int = 0,
        release_a: int = 0,
        release_b: int = 0,
        owned: bool = False,
    ) -> int:
        """The handle of a buffer on memory."""
        address = self._malloc(template.nbytes)
        if not address:
            raise OutOfMemoryError("the record of a buffer", template.nbytes)
        ctypes.memmove(address, address_of(template), template.nbytes)
        words = words_at(address, len(BUFFER))
        w = W["buffer"]
        words[w["dims"]], words[w["data"]], words[w["owned"]] = address + 8 * len(BUFFER), data, owned
        words[w["release"]], words[w["release_a"]], words[w["release_b"]] = release, release_a, release_b
        return int(address)

    def take(self, size: int, what: str) -> tuple[int, int]:
        """The address of a block of the pool for `size` bytes, and its shelf. Raises OutOfMemoryError."""
        shelf = POOL.shelf(size_class(size))
        block = self._take(shelf)
        if not block:
            raise OutOfMemoryError(what, size)
        return block, shelf

    def pool_buffer(self, template: np.ndarray, size: int) -> tuple[int, int]:
        """A buffer on a block of the pool: its handle and the block's address. Raises OutOfMemoryError."""
        block, shelf = self.take(size, "a buffer")
        return self.new_buffer(template, block, self.release_to_pool, shelf, block, True), block


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def words_at(address: int, count: int) -> Any:
    """The 64-bit words at an address."""
    return (ctypes.c_uint64 * count).from_address(address)


def bytes_at(address: int, size: int) -> bytes:
    return ctypes.string_at(address, size) if size else b""


@functools.cache
def _object() -> bytes:
    from .execute_code import native_ir

    text = native_ir()
    return runtime_object(text, lambda: text)
