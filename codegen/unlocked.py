"""Passes and code generation without llvmlite's lock, which admits one thread at a time to LLVM; freeing of passes.

LLVM needs no lock if the module is alone in its context and the thread has a machine of its own. Only this file uses
llvmlite's private interface: ffi.lib, the library's name, and the C functions below with their argument types. For a
version of llvmlite that is not in KNOWN, the public functions, which take the lock, are used, and a warning is issued.
To add a version, run tests/codegen/test_compile.py and tests/backends/test_threads.py with it.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi

from .errors import CodegenError

KNOWN = frozenset({"0.50"})
"""Versions (major.minor) of llvmlite with the private interface that is used here."""

USE_OBJECT = 1
"""LLVM's code for an object file (the other value is assembly)."""


@functools.cache
def is_known(version: str) -> bool:
    """Whether the private interface may be used. Warns once if not."""
    if ".".join(version.split(".")[:2]) in KNOWN:
        return True
    warnings.warn(
        f"llvmlite {version} is none of {', '.join(sorted(KNOWN))}, whose C interface codegen/unlocked.py knows: "
        "kernels compile one at a time; install the pinned version",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


@functools.cache
def _unlocked(name: str) -> Any:
    """The C function that llvmlite wraps in its lock, with the types that llvmlite declares."""
    locked = getattr(ffi.lib, name)
    function = ctypes.CDLL(ffi.lib._name)[name]
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def run_passes(manager: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """As `manager.run`, but other threads may work on other modules meanwhile."""
    if not is_known(llvmlite.__version__):
        manager.run(module, builder)
        return
    _unlocked("LLVMPY_RunNewModulePassManager")(manager, module, builder)


@contextmanager
def freed(manager: llvm.ModulePassManager) -> Iterator[llvm.ModulePassManager]:
    """Free a pass manager at the end.

    llvmlite 0.50 never does (86 KB a module): the first base class of ModulePassManager has a `_dispose` without
    effect, which hides that of the second. See docs/findings.md.
    """
    try:
        yield manager
    finally:
        if llvm.ModulePassManager._dispose is ffi.ObjectRef._dispose:
            llvm.newpassmanagers.NewPassManager._dispose(manager)
            manager.detach()
        else:
            manager.close()


def emit_object(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """As `machine.emit_object`, but other threads may work on other modules meanwhile. Raises CodegenError."""
    if not is_known(llvmlite.__version__):
        return machine.emit_object(module)
    with ffi.OutputString() as complaint:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, USE_OBJECT, complaint)
        if not buffer:
            raise CodegenError(f"LLVM cannot emit code: {complaint}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)
