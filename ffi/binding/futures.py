"""Handlers that finish later: the computation completes a Promise, whose Future the handler returned."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .. import abi
from .api import Api
from .errors import Error


class Promise:
    """To be completed once, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._result: Error | None = None
        self._waiter: Callable[[Error], None] | None = None

    def set_available(self) -> None:
        """The results are written."""
        self._complete(Error.success())

    def set_error(self, error: Error) -> None:
        """The computation failed."""
        self._complete(error)

    def _complete(self, error: Error) -> None:
        with self._lock:
            if self._result is not None:
                raise RuntimeError("the promise is completed already")
            self._result, waiter = error, self._waiter
        if waiter is not None:
            waiter(error)

    def _when_done(self, waiter: Callable[[Error], None]) -> None:
        with self._lock:
            self._waiter, result = waiter, self._result
        if result is not None:
            waiter(result)


class CountDownPromise(Promise):
    """A promise that is completed when it was counted down `count` times, by an error if any count had one."""

    def __init__(self, count: int):
        super().__init__()
        if count <= 0:
            raise ValueError("Count must be positive")
        self._count = count
        self._error = Error.success()

    def count_down(self, count: int = 1, error: Error | None = None) -> bool:
        """Whether this completed the promise."""
        with self._lock:
            if not 0 < count <= self._count:
                raise ValueError("Invalid count down value")
            self._count -= count
            if error is not None and error.failure:
                self._error = error
            done = self._count == 0
        if done:
            self._complete(self._error)
        return done


class Future:
    """What a handler returns whose promise will be completed."""

    def __init__(self, promise: Promise):
        self._promise = promise

    def start(self, api: Api) -> int:
        """The runtime's future; it is told when the promise is completed. Raises ApiError."""
        made = abi.FutureCreateArgs(0, None, None)
        api.call("Future_Create", made, abi.FutureCreateArgs.future.offset)
        handle = made.future

        def done(error: Error) -> None:
            if error.failure:
                args = abi.FutureSetErrorArgs(0, None, handle, api.error(error))
                api.call("Future_SetError", args)
            else:
                api.call("Future_SetAvailable", abi.FutureSetAvailableArgs(0, None, handle))

        self._promise._when_done(done)
        return handle or 0
