"""One Context per process, and the passes from scf, arith, math, vector and func to LLVM IR text."""

from __future__ import annotations

import threading

from mlir import ir
from mlir.passmanager import PassManager

from ..codegen.mlir import translate as translate
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
    "finalize-memref-to-llvm",
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
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
