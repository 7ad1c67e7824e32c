"""Functions that the kernels of many programs call, each in a module of its own (`EmittedModule.helpers`): their texts
and their code, once a process. Texts do not depend on the program, nor the code on where it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from .cache import DEFAULT_CACHE, ObjectCache
from .field.element import active
from .optimize import CompiledObject, build_object, object_key
from .options import EmitOptions

_TEXTS: dict[Hashable, str] = {}
_OBJECTS: dict[str, bytes] = {}


def text_once(key: Hashable, make: Callable[[], str]) -> str:
    """What `make` gave for this key, a stack's description of a function, when it was first asked for."""
    key = (key, active())
    found = _TEXTS.get(key)
    if found is None:
        found = _TEXTS[key] = make()
    return found


def forget_texts() -> None:
    """Drop all texts, so that functions are emitted again: for a caller that replaces code of an emitter."""
    _TEXTS.clear()


def build_helper(llvm_ir: str, options: EmitOptions, cache: ObjectCache | None = DEFAULT_CACHE) -> CompiledObject:
    """As `build_object`, but this process compiles a text once, whatever the cache."""
    key = object_key(llvm_ir, options)
    data = _OBJECTS.get(key)
    if data is not None:
        return CompiledObject(data, 0.0, 0.0, cached=True)
    made = build_object(llvm_ir, options, cache)
    _OBJECTS[key] = made.data
    return made
