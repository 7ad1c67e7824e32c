"""Platforms by name. Built-in ones are imported on first use; others are registered by a call, never by an import."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from importlib import import_module

from .base import BackendError, Platform

BUILT_IN: dict[str, str] = {
    "host": ".host.platform:HostPlatform",
    "interpreter": ".interpreter.platform:InterpreterPlatform",
}

_LOCK = threading.RLock()
_FACTORIES: dict[str, Callable[[], Platform]] = {}
_PLATFORMS: dict[str, Platform] = {}


def register_platform(name: str, factory: Callable[[], Platform]) -> None:
    """Register a platform. `factory` is called once, on first use. Raises BackendError if the name is taken."""
    with _LOCK:
        if name in BUILT_IN or name in _FACTORIES:
            raise BackendError(f"platform {name!r} is registered already", remedy="choose another name")
        _FACTORIES[name] = factory


def unregister_platform(name: str) -> None:
    """Remove a registered platform. Raises BackendError if there is none."""
    with _LOCK:
        if name not in _FACTORIES:
            raise BackendError(f"platform {name!r} is not registered", remedy=_known())
        del _FACTORIES[name]
        _PLATFORMS.pop(name, None)


def platforms() -> tuple[str, ...]:
    return tuple(sorted({*BUILT_IN, *_FACTORIES}))


def platform(name: str) -> Platform:
    """The platform of a name. Raises BackendError for an unknown name."""
    with _LOCK:
        if name not in _PLATFORMS:
            _PLATFORMS[name] = _factory(name)()
        return _PLATFORMS[name]


def _factory(name: str) -> Callable[[], Platform]:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return getattr(import_module(module, __package__), attribute)
    if name in _FACTORIES:
        return _FACTORIES[name]
    near = difflib.get_close_matches(name, platforms(), 1)
    raise BackendError(f"unknown platform {name!r}", remedy=f"did you mean {near[0]!r}?" if near else _known())


def _known() -> str:
    return f"known: {', '.join(platforms())}"
