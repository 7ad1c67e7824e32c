"""Errors of handlers: a code of absl and a text, raised or returned; and what an exception of Python becomes."""

from __future__ import annotations

import traceback

from ..abi import ErrorCode


class Error(Exception):
    """A failure that the caller of a handler sees: raise it, or return it. `Error.success()` is none."""

    def __init__(self, code: ErrorCode, message: str = ""):
        super().__init__(code, message)
        self.code = ErrorCode(code)
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    @property
    def failure(self) -> bool:
        return self.code != ErrorCode.OK

    @staticmethod
    def success() -> Error:
        return Error(ErrorCode.OK)

    @staticmethod
    def internal(message: str) -> Error:
        return Error(ErrorCode.INTERNAL, message)

    @staticmethod
    def invalid_argument(message: str) -> Error:
        return Error(ErrorCode.INVALID_ARGUMENT, message)


def error_of(exception: BaseException) -> Error:
    """What a handler that raised returns: its own Error, CANCELLED for Ctrl-C, and INTERNAL for everything else."""
    if isinstance(exception, Error):
        exception.__traceback__ = None  # its frames hold the views of the call
        return exception if exception.failure else Error.internal("the handler raised Error.success()")
    text = "".join(traceback.format_exception_only(exception)).strip()
    return Error(ErrorCode.CANCELLED if isinstance(exception, KeyboardInterrupt) else ErrorCode.INTERNAL, text)
