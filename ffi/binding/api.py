"""The functions of XLA_FFI_Api, as a handler calls them. Structures are those of the API's own version."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from .. import abi
from .errors import Error

OURS = abi.NEWEST
"""The version of the header that these handlers follow; a frame of an older API gets what it knows."""

_CALL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_NO_RESULT = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ApiError(Exception):
    """An API function returned an error, which has been destroyed; the text is its message."""


class Api:
    """An API by the bytes of its table. Names of functions are XLA's."""

    def __init__(self, content: bytes):
        table = abi.Api.from_buffer_copy(content.ljust(_SIZE, b"\0"))
        self.version = table.api_version.major_version, table.api_version.minor_version
        self._functions = {
            name: getattr(table, name)
            for name in abi.FUNCTIONS
            if getattr(abi.Api, name).offset + 8 <= table.struct_size
        }

    def function(self, name: str, kind: Any = _CALL) -> Callable[[int], Any]:
        address = self._functions.get(name)
        if not address:
            raise ApiError(f"the runtime has no function XLA_FFI_{name}")
        return kind(address)  # type: ignore[no-any-return]

    def error(self, error: Error) -> int:
        """A new error, which its receiver destroys."""
        text = error.message.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0")
        args = abi.ErrorCreateArgs(abi.size_of(abi.ErrorCreateArgs), None, text, int(error.code))
        return self._create(ctypes.addressof(args)) or 0

    @functools.cached_property
    def _create(self) -> Callable[[int], int | None]:
        return self.function("Error_Create")

    def call(self, name: str, args: Any, size: int | None = None) -> None:
        """Call a function that may return an error. size: what stands in struct_size. Raises ApiError."""
        args.struct_size = abi.size_of(type(args)) if size is None else size
        failed = self.function(name)(ctypes.addressof(args))
        if failed:
            raise ApiError(self.take_message(failed))

    def take_message(self, error: int) -> str:
        """The message of an error, which is destroyed."""
        args = abi.ErrorGetMessageArgs(abi.ErrorGetMessageArgs.errc.offset, None, error)
        self.function("Error_GetMessage", _NO_RESULT)(ctypes.addressof(args))
        text = (args.message or b"").decode("utf-8", "replace")
        gone = abi.ErrorDestroyArgs(abi.size_of(abi.ErrorDestroyArgs), None, error)
        self.function("Error_Destroy", _NO_RESULT)(ctypes.addressof(gone))
        return text


_SIZE = ctypes.sizeof(abi.Api)


def api_at(address: int) -> Api:
    """The API of a runtime."""
    size = min(ctypes.c_size_t.from_address(address).value, _SIZE)
    return _api(ctypes.string_at(address, size))


@functools.lru_cache(64)
def _api(content: bytes) -> Api:
    return Api(content)
