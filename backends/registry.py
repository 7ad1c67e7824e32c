"""Platforms by name: built-in ones, entry points of installed packages, and those that are registered by a call.

Each is imported on first use. A package offers one in its pyproject.toml:

    [project.entry-points."testbed.backends"]
    mine = "my_package.platform:MyPlatform"
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from ..hlo.errors import TestbedError
from .base import BackendError, Capability, Platform

BUILT_IN: dict[str, str] = {
    "c": ".c.platform:CPlatform",
    "cuda": ".cuda.platform:cuda",
    "host": ".host.platform:HostPlatform",
    "interpreter": ".interpreter.platform:InterpreterPlatform",
    "opencl": ".opencl.platform:OpenClPlatform",
    "rocm": ".rocm.platform:rocm",
}

GROUP = "testbed.backends"

_LOCK = threading.RLock()
_FACTORIES: dict[str, Callable[[], Platform]] = {}
_PLATFORMS: dict[str, Platform] = {}


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a platform. origin: built in, registered, or the package. why: why it cannot be used here."""

    name: str
    origin: str
    devices: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    why: str | None = None


def register_platform(name: str, factory: Callable[[], Platform]) -> None:
    """Register a platform. `factory` is called once, on first use. Raises BackendError if the name is taken."""
    with _LOCK:
        if name in BUILT_IN or name in _FACTORIES:
            raise BackendError(f"platform {name!r} is registered already", remedy="choose another name")
        _FACTORIES[name] = factory
        _PLATFORMS.pop(name, None)


def unregister_platform(name: str) -> None:
    """Remove a registered platform. Raises BackendError if there is none."""
    with _LOCK:
        if name not in _FACTORIES:
            raise BackendError(f"platform {name!r} is not registered", remedy=_known())
        del _FACTORIES[name]
        _PLATFORMS.pop(name, None)


def platforms() -> tuple[str, ...]:
    return tuple(sorted({*BUILT_IN, *_FACTORIES, *_offered()}))


def platform(name: str) -> Platform:
    """The platform of a name. Raises BackendError for an unknown name, or if its package cannot be loaded."""
    with _LOCK:
        if name not in _PLATFORMS:
            _PLATFORMS[name] = _factory(name)()
        return _PLATFORMS[name]


def status(name: str) -> Status:
    """What a platform has here; nothing is raised, whatever its package does."""
    origin = _origin(name)
    try:
        found = platform(name)
        why = found.unavailable()
        capabilities = tuple(c for c in Capability if c in found.capabilities)
        if why is not None:
            return Status(name, origin, (), capabilities, " ".join(why.split()))
        devices = tuple(found.executor(n).description().name for n in range(found.visible_device_count()))
        return Status(name, origin, devices, capabilities)
    except Exception as error:
        text = str(error) if isinstance(error, TestbedError) else f"{type(error).__name__}: {error}"
        return Status(name, origin, why=" ".join(text.split()))


def _offered() -> dict[str, EntryPoint]:
    """The entry points of installed packages. A name that is taken is the one that took it."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _origin(name: str) -> str:
    if name in BUILT_IN:
        return "built in"
    if name in _FACTORIES:
        return "registered"
    point = _offered().get(name)
    return "unknown" if point is None else (point.dist.name if point.dist is not None else point.value)


def _factory(name: str) -> Callable[[], Platform]:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return getattr(import_module(module, __package__), attribute)
    if name in _FACTORIES:
        return _FACTORIES[name]
    point = _offered().get(name)
    if point is not None:
        return _loaded(point)
    near = difflib.get_close_matches(name, platforms(), 1)
    raise BackendError(f"unknown platform {name!r}", remedy=f"did you mean {near[0]!r}?" if near else _known())


def _loaded(point: EntryPoint) -> Callable[[], Platform]:
    """What an entry point names. Raises BackendError with the reason if it cannot be imported."""
    try:
        factory: Callable[[], Platform] = point.load()
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        what = f"platform {point.name!r} cannot be loaded from {point.value}: {reason}"
        raise BackendError(what, remedy="mend or remove its package") from None
    return factory


def _known() -> str:
    return f"known: {', '.join(platforms())}"
