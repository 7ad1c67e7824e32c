"""One Context for the process, and the passes from scf, arith, math, vector and func to LLVM IR text."""

from __future__ import annotations

import threading
from functools import cache

from mlir import ir
from mlir.dialects import llvm
from mlir.passmanager import PassManager

from ..hlo.errors import TestbedError
from ..lhlo.dialect import load as load_lhlo
from .builder import Types

LOCK = threading.RLock()
"""Held while a module is built or lowered: the Context and its types are shared."""

PASSES = (
    "convert-scf-to-cf,convert-vector-to-llvm{vector-transpose-lowering=shuffle16x16},convert-math-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts"
)


class LoweringError(TestbedError):
    """A module of ours that MLIR refuses: a fault of an emitter."""


@cache
def context() -> ir.Context:
    """Single-threaded: a pool of threads costs more than it gives on modules of this size. Knows LHLO."""
    made = ir.Context()
    made.enable_multithreading(False)
    load_lhlo(made)
    return made


@cache
def types() -> Types:
    with context(), ir.Location.unknown():
        return Types()


@cache
def _passes() -> PassManager:
    return PassManager.parse(f"builtin.module({PASSES})", context())


def lower(module: ir.Module) -> None:
    """To the LLVM dialect, in place. MLIR's verifier runs before, so a wrong module is an error and not a crash."""
    try:
        module.operation.verify()
        _passes().run(module.operation)
    except ir.MLIRError as error:
        raise LoweringError(
            f"MLIR refuses an emitted module: {error}", remedy="report it with the module's text"
        ) from error


def translate(module: ir.Module) -> str:
    """LLVM IR text of a module in the LLVM dialect."""
    return llvm.translate_module_to_llvmir(module.operation)
