"""Signals wait while MLIR's bindings load: their native code ends the process where a handler of Python raises in it.

A blocked signal would not do (pthread_sigmask): another thread may take it, and Python runs the handler in the main
thread all the same. So the handlers themselves wait. In other threads Python runs none, and nothing is to be done.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_waiting = False


@contextmanager
def waiting_signals() -> Iterator[None]:
    """What handlers of Python do for signals that come within happens at the end."""
    global _waiting
    if _waiting or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {n: h for n in signal.valid_signals() if callable(h := signal.getsignal(n))}
    came: dict[int, None] = {}
    _waiting = True
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: came.setdefault(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _waiting = False
        for number in came:
            handlers[number](number, sys._getframe())


class _Loader:
    """A loader whose work signals wait for."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        with waiting_signals():
            return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with waiting_signals():
            self._loader.exec_module(module)


def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    """Where Python finds a module of the bindings, with that loader."""
    spec = PathFinder.find_spec(name, path, target)
    if spec is not None and spec.loader is not None:
        spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
    return spec
