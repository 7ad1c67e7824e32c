"""Links objects by LLVM's JIT: for processors whose relocations codegen/link.py does not know."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

import llvmlite.binding as llvm

from .errors import CodegenError
from .llvm import start


def jit_link(
    objects: Sequence[bytes], names: Collection[str], external: Mapping[str, int]
) -> tuple[dict[str, int], Callable[[], object]]:
    """The addresses of `names`, which the objects define, and what unloads them. Raises CodegenError."""
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    for name, address in external.items():
        builder.import_symbol(name, address)
    for name in names:
        builder.export_symbol(name)
    try:
        with _LOCK:
            jit, number = _next_library()
            tracker = builder.link(jit, f"testbed.{number}")
    except RuntimeError as error:
        raise CodegenError(f"the code does not load: {error}") from error
    # Both are held, so that not even the garbage collector frees the JIT before the library.
    return {name: tracker[name] for name in names}, functools.partial(_unload, tracker, jit)


def _unload(tracker: llvm.ResourceTracker, jit: llvm.LLJIT) -> None:
    tracker.close()  # here, while the caller still holds the JIT, which goes with the last of its libraries


JIT_LIBRARIES = 128
"""Libraries per JIT. LLVM frees the code of a library but keeps 8 KB of its names until the whole JIT is freed."""

_LOCK = threading.Lock()
_served = 0
_current: llvm.LLJIT | None = None


def _next_library() -> tuple[llvm.LLJIT, int]:
    """The JIT for the next library, and the library's number. LLVM never accepts the name of a library again."""
    global _served, _current
    start()
    if _current is None or _served % JIT_LIBRARIES == 0:
        _current = llvm.create_lljit_compiler(use_jit_link=True)
    _served += 1
    return _current, _served
