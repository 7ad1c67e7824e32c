"""The custom-call targets of this process: (name, platform) → the functions that handle each stage of a call.

The evaluator, both stacks and programs from files find their handlers here; other threads may register meanwhile.
"""

from __future__ import annotations

import ctypes
import difflib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ..hlo.errors import InputError, Location, UnsupportedError
from ..hlo.library.handlers import CALLS, handled
from .abi import Stage

HOST = "Host"


class CallVersion(IntEnum):
    """How a target is called: CustomCallApiVersion of HLO."""

    API_VERSION_ORIGINAL = 1
    API_VERSION_STATUS_RETURNING = 2
    API_VERSION_STATUS_RETURNING_UNIFIED = 3
    API_VERSION_TYPED_FFI = 4


OF_JAXLIB = ("tridiagonal_solve_perturbed_ffi",)
"""Targets of programs that JAX makes for the CPU, whose handlers are jaxlib's alone."""

_PLATFORMS = {
    "host": HOST,
    "cpu": HOST,
    "cuda": "CUDA",
    "gpu": "CUDA",
    "rocm": "ROCM",
    "hip": "ROCM",
    "opencl": "OpenCL",
}


def platform_name(name: str) -> str:
    """A platform as XLA writes it: "cpu" and "Host" are the same."""
    return _PLATFORMS.get(name.lower(), name)


@dataclass(frozen=True, slots=True)
class Handler:
    """The functions of a target on one platform, as addresses; 0 for a stage that it does not handle.

    traits: of the registration; those that a handler's metadata states are found when it is first called. keep: what
    must live as long as the addresses are used (a library, a ctypes callback, a capsule).
    """

    name: str
    platform: str
    execute: int
    instantiate: int = 0
    prepare: int = 0
    initialize: int = 0
    record: int = 0
    traits: int = 0
    version: CallVersion = CallVersion.API_VERSION_TYPED_FFI
    keep: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    def of(self, stage: Stage) -> int:
        """The address of the function for a stage, or 0."""
        return int(getattr(self, stage.name.lower()))


def register(
    name: str,
    handler: Any,
    platform: str = HOST,
    version: CallVersion | str = CallVersion.API_VERSION_TYPED_FFI,
    traits: int = 0,
    replace: bool = False,
) -> Handler:
    """Make a target known.

    handler: an address, a capsule, a ctypes function or symbol of a library, an object with the attribute
    `ffi_address`; or a mapping from stages ("execute", "instantiate", …) to these. replace: it may take the place of
    another; otherwise other functions under a name that is taken raise InputError.
    """
    if not name:
        raise InputError("a custom-call target has no name")
    stages = handler if isinstance(handler, Mapping) else {"execute": handler}
    known = [stage.name.lower() for stage in Stage]
    unknown = sorted(set(stages) - set(known))
    if unknown:
        raise InputError(f"{name}: no stage {unknown[0]!r}", remedy=f"one of {', '.join(known)}")
    if stages.get("execute") is None:
        raise InputError(f"{name}: no handler for the stage 'execute'", remedy="give one, the others are optional")
    version = CallVersion[version] if isinstance(version, str) else version
    found = {stage: address_of(given, name) for stage, given in stages.items() if given is not None}
    made = Handler(name, platform_name(platform), **found, traits=traits, version=version, keep=tuple(stages.values()))
    return add(made, replace)


def add(handler: Handler, replace: bool = False) -> Handler:
    """Make a target known. Raises InputError where its name stands for other functions."""
    key = handler.name, handler.platform
    with _LOCK:
        if not replace and _TARGETS.get(key, handler) != handler:
            remedy = "unregister it first, or register with replace=True"
            raise InputError(f"custom-call target {handler.name!r} is registered already for {key[1]}", remedy=remedy)
        _TARGETS[key] = handler
        if handler.platform == HOST:
            CALLS[handler.name] = handled
    return handler


def unregister(name: str, platform: str = HOST) -> None:
    """Forget a target. Programs that were compiled with it keep its functions."""
    with _LOCK:
        _TARGETS.pop((name, platform_name(platform)), None)
        if platform_name(platform) == HOST:
            CALLS.pop(name, None)


def lookup(name: str, platform: str = HOST, *, what: str = "", location: Location | None = None) -> Handler:
    """The functions of a target. what: the instruction that calls it, for the error.

    Raises UnsupportedError, which names platforms that have the target, or near names.
    """
    found = find(name, platform)
    if found is not None:
        return found
    with _LOCK:
        keys = list(_TARGETS)
    platform = platform_name(platform)
    others = sorted(p for n, p in keys if n == name)
    near = difflib.get_close_matches(name, [n for n, p in keys if p == platform], n=3)
    if others:
        remedy = f"registered for {', '.join(others)} only"
    elif name in OF_JAXLIB and platform == HOST:
        remedy = "jaxlib has it: --handlers jaxlib, or testbed.ffi.static_library.register_jaxlib('')"
    elif near:
        remedy = f"near names: {', '.join(near)}"
    else:
        given = "" if platform == HOST else f", platform={platform!r}"
        remedy = f"register it with testbed.ffi.registry.register(name, handler{given})"
    by = (f" of {what}" if what else "") + (f" on {platform}" if platform != HOST else "")
    raise UnsupportedError("ffi", f"custom-call({name}){by}", remedy=remedy, location=location)


def find(name: str, platform: str = HOST) -> Handler | None:
    """The functions of a target, or None."""
    with _LOCK:
        return _TARGETS.get((name, platform_name(platform)))


def targets(platform: str = HOST) -> tuple[str, ...]:
    """The names of all targets of a platform, sorted."""
    with _LOCK:
        return tuple(sorted(n for n, p in _TARGETS if p == platform_name(platform)))


def registered() -> tuple[tuple[str, str], ...]:
    """(name, platform) of all targets."""
    with _LOCK:
        return tuple(_TARGETS)


def address_of(given: Any, name: str = "handler") -> int:
    """The address of a function. given: as `register` takes it. Raises InputError for anything else, and for NULL."""
    address: int | None
    if isinstance(given, bool | str | bytes):
        address = None
    elif isinstance(given, int):
        address = given
    elif type(given).__name__ == "PyCapsule":
        address = _capsule_pointer(given)
    elif hasattr(given, "ffi_address"):
        address = int(given.ffi_address)
    else:
        try:
            address = ctypes.cast(given, ctypes.c_void_p).value or 0
        except (TypeError, ctypes.ArgumentError):
            address = None
    if address is None:
        remedy = "give an address, a capsule, a ctypes function or a mapping from stages to them"
        raise InputError(f"{name}: {type(given).__name__} is no handler", remedy=remedy)
    if not 0 < address < 1 << 63:
        raise InputError(f"{name}: {address:#x} is no address of a function")
    return address


def _capsule_pointer(capsule: Any) -> int:
    """The pointer of a capsule under whatever name it has; some have none."""
    api = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    return int(get_pointer(capsule, get_name(capsule)) or 0)


def register_type(name: str, type_id: int = 0, deleter: int = 0) -> int:
    """Make a type of states or user data known, under the id that it has or, for 0, a new one. Returns its id.

    Raises InputError if the name has another id. deleter: the address of `void (*)(void*)`, or 0.
    """
    with _LOCK:
        known = _TYPES.get(name)
        if known is not None and type_id not in (0, known):
            raise InputError(f"Type name {name} already registered with type id {known} vs {type_id}")
        number = known or type_id or max(_DELETERS, default=0) + 1
        _TYPES[name] = number
        _DELETERS[number] = deleter or _DELETERS.get(number, 0)
        return number


def type_info(type_id: int) -> int | None:
    """The address of a type's deleter, 0 if it has none; None for an unknown type."""
    with _LOCK:
        return _DELETERS.get(type_id)


_LOCK = threading.RLock()
_TYPES: dict[str, int] = {}
_DELETERS: dict[int, int] = {}
_TARGETS: dict[tuple[str, str], Handler] = {}
