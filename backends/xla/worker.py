"""The child process of child.py: compiles and runs modules, one request after the other."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ...hlo.errors import TestbedError
from .errors import XlaRefused, reason_of
from .executable import XlaExecutable, start_client


def serve(descriptor: int, answer: Callable[..., Any] | None = None) -> None:
    """Answer requests until the other side is closed. answer: to a request; None compiles and runs modules."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    connection: Connection = Connection(descriptor)
    compiled: dict[int, XlaExecutable] = {}
    while True:
        try:
            forgotten, *request = connection.recv()
        except EOFError:
            return
        for number in forgotten:
            compiled.pop(number, None)
        connection.send(_reply(answer or _answer, compiled, request))


def _reply(answer: Callable[..., Any], compiled: dict[int, XlaExecutable], request: list[Any]) -> tuple[Any, ...]:
    try:
        return "done", answer(compiled, *request)
    except XlaRefused as error:
        return "refused", error.what
    except TestbedError as error:
        return "input", error.message, error.remedy
    except Exception as error:  # jaxlib raises many types; the parent gets every one as a refusal
        return "refused", reason_of(f"{type(error).__name__}: {error}")


def _end_with_the_parent() -> None:
    """stdin is a pipe that nobody writes to: it ends with the parent, also while XLA compiles or runs."""
    os.read(0, 1)
    os._exit(0)


def _answer(compiled: dict[int, XlaExecutable], kind: str, *arguments: Any) -> Any:
    if kind == "compile":
        text, flags = arguments
        start_client()
        start = time.perf_counter()
        executable = XlaExecutable(text, flags)
        number = max(compiled, default=0) + 1
        compiled[number] = executable
        return number, time.perf_counter() - start
    number, inputs = arguments
    return compiled[number].timed(inputs)
