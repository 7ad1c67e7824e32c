"""One Context for the process, and the passes from scf, arith, math, vector and func to LLVM IR text."""

from __future__ import annotations

import threading

from mlir import ir
from mlir.dialects import llvm
from mlir.passmanager import PassManager

from ..hlo.errors import TestbedError
from ..lhlo.dialect import load as load_lhlo
from .builder import Types

LOCK = threading.RLock()
"""Held while a module is built or lowered: a session is shared."""

LIFETIME = 500
"""Modules that a session serves. A Context keeps every type and constant it has seen; a new one frees them."""

PASSES = (
    "convert-scf-to-cf",
    "convert-vector-to-llvm{vector-transpose-lowering=shuffle16x16}",
    "convert-math-to-llvm",
    "convert-func-to-llvm",
    "convert-arith-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
)
"""LLVM does what canonicalisation and CSE would do here, and faster."""


class Session:
    """A Context that knows LHLO, with what is made once in it."""

    def __init__(self) -> None:
        self.context = ir.Context()
        # A pool of threads costs more than it gives on modules of this size.
        self.context.enable_multithreading(False)
        load_lhlo(self.context)
        with self.context, ir.Location.unknown():
            self.types = Types()
        self.passes = PassManager.parse(f"builtin.module({','.join(PASSES)})", self.context)
        self.passes.enable_verifier(False)  # `lower` verifies before, LLVM after: between them only MLIR's own passes
        self.served = 0


_current: list[Session] = []


def session() -> Session:
    """The session for the next module. Call it with LOCK held."""
    if not _current or _current[0].served >= LIFETIME:
        _current[:] = [Session()]
    _current[0].served += 1
    return _current[0]


class LoweringError(TestbedError):
    """A module of ours that MLIR refuses: a fault of an emitter."""


def lower(module: ir.Module, passes: PassManager) -> None:
    """To the LLVM dialect, in place. MLIR's verifier runs before, so a wrong module is an error and not a crash."""
    try:
        module.operation.verify()
        passes.run(module.operation)
    except ir.MLIRError as error:
        raise LoweringError(
            f"MLIR refuses an emitted module: {error}", remedy="report it with the module's text"
        ) from error


def translate(module: ir.Module) -> str:
    """LLVM IR text of a module in the LLVM dialect."""
    return llvm.translate_module_to_llvmir(module.operation)
