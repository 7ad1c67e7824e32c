"""MLIR text → LLVM IR text through MLIR's own passes, and the translation of a module in the LLVM dialect.

MLIR is imported on first use. What the passes are is for the caller to say.
"""

from __future__ import annotations

import ctypes
import functools
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..hlo.errors import TestbedError

if TYPE_CHECKING:
    from mlir import ir
    from mlir.passmanager import PassManager

DISTRIBUTION = "xtc-mlir-python-bindings"

TEXTS = 500
"""Texts per Context. A Context keeps every type and constant that it has seen; a new one frees them."""


class MlirError(TestbedError):
    """MLIR refuses a module of ours: a bug of what wrote it."""


@functools.cache
def mlir_version() -> str:
    """The version of MLIR, a part of the key of what was lowered with it. MLIR itself is not imported."""
    from importlib.metadata import version  # it takes longer to load than a small program

    return f"{DISTRIBUTION} {version(DISTRIBUTION)}"


def lower_text(text: str, passes: str) -> str:
    """LLVM IR text of a module. passes: a pipeline such as 'builtin.module(…)' that ends in the LLVM dialect.

    Raises MlirError with what the verifier or a pass says.
    """
    from mlir import ir

    with _LOCK:
        session = _session(passes)
        try:
            module = ir.Module.parse(text, session.context)
            session.passes.run(module.operation)
        except ir.MLIRError as error:
            raise MlirError(f"MLIR refuses a module: {error}", remedy="report it with the module's text") from error
        return translate(module)


def bytecode_of(text: str) -> bytes:
    """A module as MLIR's bytecode: equal bytes for equal texts."""
    from mlir import ir

    with _LOCK:
        module = ir.Module.parse(text, _session(NO_PASSES).context)
        stream = io.BytesIO()
        module.operation.write_bytecode(stream)
    return stream.getvalue()


def text_of(bytecode: bytes) -> str:
    """The text of a module in MLIR's bytecode. Raises MlirError for what is none."""
    from mlir import ir

    with _LOCK:
        try:
            return str(ir.Module.parse(bytecode, _session(NO_PASSES).context))
        except ir.MLIRError as error:
            raise MlirError(f"no bytecode that this MLIR reads: {error}".replace("\n", " ")) from None


NO_PASSES = "builtin.module()"

_LOCK = threading.Lock()


class _Session:
    """A Context and a pass manager on it, which serve many texts: both cost more than a small module."""

    def __init__(self, passes: str) -> None:
        from mlir import ir
        from mlir.passmanager import PassManager

        self.context: ir.Context = ir.Context()
        self.context.enable_multithreading(False)  # a thread pool costs more time than it saves for small modules
        self.passes: PassManager = PassManager.parse(passes, self.context)
        self.passes.enable_verifier(False)  # parsing verifies before the passes, LLVM after them
        self.served = 0


_SESSIONS: dict[str, _Session] = {}


def _session(passes: str) -> _Session:
    """The session for the next text. The lock must be held."""
    if passes not in _SESSIONS or _SESSIONS[passes].served >= TEXTS:
        _SESSIONS[passes] = _Session(passes)
    _SESSIONS[passes].served += 1
    return _SESSIONS[passes]


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
    from mlir import _mlir_libs

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
