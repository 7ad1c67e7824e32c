"""Errors of the C API: an exception becomes a handle, which the caller asks for its code and text, and destroys."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from ..ffi.calls import CallError
from ..hlo.errors import (
    InputError,
    OutOfMemoryError,
    ParseError,
    TestbedError,
    UnsupportedError,
    VerificationError,
)
from .api import ErrorCode

CODES: tuple[tuple[type[BaseException], int], ...] = (
    (UnsupportedError, ErrorCode.UNIMPLEMENTED),
    (OutOfMemoryError, ErrorCode.RESOURCE_EXHAUSTED),
    (InputError, ErrorCode.INVALID_ARGUMENT),
    (ParseError, ErrorCode.INVALID_ARGUMENT),
    (VerificationError, ErrorCode.INVALID_ARGUMENT),
    (NotImplementedError, ErrorCode.UNIMPLEMENTED),
    (MemoryError, ErrorCode.RESOURCE_EXHAUSTED),
    (KeyboardInterrupt, ErrorCode.CANCELLED),
)
"""The code of an exception: that of the first class it belongs to, INTERNAL for others."""


class PjrtError(Exception):
    """An error with a code of the C API."""

    def __init__(self, code: int, message: str):
        self.code = code
        super().__init__(message)


_numbers = itertools.count(1)
_held: dict[int, tuple[int, bytes]] = {}


def code_of(error: BaseException) -> int:
    if isinstance(error, PjrtError):
        return error.code
    if isinstance(error, CallError):
        return int(error.code)
    return next((code for kind, code in CODES if isinstance(error, kind)), int(ErrorCode.INTERNAL))


def text_of(error: BaseException) -> str:
    """What the user reads; for an exception that is no planned error, with its class."""
    planned = isinstance(error, (PjrtError, TestbedError, NotImplementedError))
    return str(error) if planned else f"{type(error).__name__}: {error}"


def hold(error: BaseException) -> int:
    """A handle for an error."""
    number = next(_numbers)
    _held[number] = code_of(error), text_of(error).encode("utf-8", "replace")
    return number


def _destroy(args: Any) -> None:
    _held.pop(args.error or 0, None)


def _message(args: Any) -> None:
    _, text = _held.get(args.error or 0, (0, b"unknown error"))
    args.message = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p)
    args.message_size = len(text)


def _code(args: Any) -> None:
    args.code = _held.get(args.error or 0, (int(ErrorCode.UNKNOWN), b""))[0]


def _payloads(args: Any) -> None:
    """There are none."""


FUNCTIONS = {
    "Error_Destroy": _destroy,
    "Error_Message": _message,
    "Error_GetCode": _code,
    "Error_ForEachPayload": _payloads,
}
