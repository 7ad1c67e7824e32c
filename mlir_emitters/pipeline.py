"""One Context per process, and the passes from scf, arith, math, vector and func to LLVM IR text."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from pathlib import Path

from mlir import _mlir_libs, ir
from mlir.passmanager import PassManager

from ..hlo.errors import TestbedError
from ..lhlo.dialect import load as load_lhlo
from .builder import Types

LOCK = threading.RLock()
"""Must be held while a module is built or lowered, because the session is shared."""

LIFETIME = 500
"""Modules per session. A Context keeps every type and constant that it has seen; a new one frees them."""

PASSES = (
    "convert-scf-to-cf",
    "convert-vector-to-llvm{vector-transpose-lowering=shuffle16x16}",
    "convert-math-to-llvm",
    "convert-func-to-llvm",
    "convert-arith-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
)
"""Canonicalisation and CSE are left out: LLVM does the same, faster."""


class Session:
    """A Context that knows LHLO, and objects that are created once per Context."""

    def __init__(self) -> None:
        self.context = ir.Context()
        # A thread pool costs more time than it saves for modules of this size.
        self.context.enable_multithreading(False)
        load_lhlo(self.context)
        with self.context, ir.Location.unknown():
            self.types = Types()
        self.passes = PassManager.parse(f"builtin.module({','.join(PASSES)})", self.context)
        self.passes.enable_verifier(False)  # `lower` verifies before the passes, LLVM after them
        self.served = 0


_current: list[Session] = []


def session() -> Session:
    """The session for the next module. LOCK must be held."""
    if not _current or _current[0].served >= LIFETIME:
        _current[:] = [Session()]
    _current[0].served += 1
    return _current[0]


class LoweringError(TestbedError):
    """MLIR refuses a module of ours: a bug of an emitter."""


def lower(module: ir.Module, passes: PassManager) -> None:
    """Lower to the LLVM dialect, in place. MLIR's verifier runs first, so that a wrong module raises and does not
    crash.
    """
    try:
        module.operation.verify()
        passes.run(module.operation)
    except ir.MLIRError as error:
        raise LoweringError(
            f"MLIR refuses an emitted module: {error}", remedy="report it with the module's text"
        ) from error


def translate(module: ir.Module) -> str:
    """LLVM IR text of a module in the LLVM dialect.

    By MLIR's C function: the Python binding of it, `llvm.translate_module_to_llvmir`, never frees the text that the C
    function returns. See docs/findings.md.
    """
    to_string, free = _c_functions()
    text = to_string(_Operation(_pointer_of(module.operation)))
    try:
        return ctypes.string_at(text).decode()
    finally:
        free(text)


class _Operation(ctypes.Structure):
    """MlirOperation of MLIR's C interface."""

    _fields_ = (("pointer", ctypes.c_void_p),)


@functools.cache
def _c_functions() -> tuple[Callable[[_Operation], int], Callable[[int], None]]:
    """The C function of the translation, and the one that frees its result."""
    (library,) = Path(_mlir_libs.__file__).parent.glob("libMLIRPythonCAPI.*")
    to_string = ctypes.CDLL(str(library)).mlirTranslateModuleToLLVMIRToString
    to_string.argtypes, to_string.restype = [_Operation], ctypes.c_void_p
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return to_string, free


def _pointer_of(operation: ir.Operation) -> int:
    """The address of an operation, from the capsule by which MLIR's bindings exchange objects with other libraries."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return get(operation._CAPIPtr, b"mlir.ir.Operation._CAPIPtr")
