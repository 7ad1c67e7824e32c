"""One Context per process, and the passes from scf, arith, math, vector and func to LLVM IR text."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from mlir import ir
from mlir.passmanager import PassManager

from ...codegen.mlir import translate as translate
from ...hlo.errors import TestbedError
from ...lhlo.dialect import PLAIN
from ...lhlo.dialect import load as load_lhlo
from .builder import HINTS, UNROLLED, Types, Unroll

LOCK = threading.RLock()
"""Must be held while a module is built or lowered, because the session is shared."""

LIFETIME = 500
"""Modules per session. A Context keeps every type and constant that it has seen; a new one frees them."""

VECTORS = "convert-vector-to-llvm{vector-transpose-lowering=shuffle16x16}"
"""The pass for operations of vectors, which takes a third of the time of all."""

DIRECT = frozenset(
    f"vector.{name}"
    for name in ("bitcast", "broadcast", "extract", "load", "maskedload", "maskedstore", "shuffle", "store")
)
"""Operations of vectors that become LLVM's by one pattern each: they need no pass of their own."""

PASSES = (
    "convert-scf-to-cf",
    VECTORS,
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
    "convert-to-llvm{filter-dialects=math,memref,arith,cf}",
    "reconcile-unrealized-casts",
)
"""Canonicalisation and CSE are left out: LLVM does the same, faster. One pass for four dialects takes half of the time
of four.
"""


class Session:
    """A Context that knows LHLO, and objects that are created once per Context."""

    def __init__(self) -> None:
        # Those that emitters use: all take 5 ms. Passes load what else they make.
        self.context = ir.Context(load_on_create_dialects=PLAIN)
        # A thread pool costs more time than it saves for modules of this size.
        self.context.enable_multithreading(False)
        load_lhlo(self.context)
        with self.context, ir.Location.unknown():
            self.types = Types()
        self.passes = self._passes(PASSES)
        scalar = [name for name in PASSES if name != VECTORS]
        self.scalar_passes = self._passes(scalar)
        self.direct_passes = self._passes([name.replace("=math,", "=math,vector,") for name in scalar])
        self.loops = self._passes(["convert-linalg-to-loops"])
        self.served = 0

    def _passes(self, names: Sequence[str]) -> PassManager:
        passes = PassManager.parse(f"builtin.module({','.join(names)})", self.context)
        passes.enable_verifier(False)  # `lower` verifies before the passes, LLVM after them
        return passes


_current: list[Session] = []


def session() -> Session:
    """The session for the next module. LOCK must be held."""
    if not _current or _current[0].served >= LIFETIME:
        _current[:] = [Session()]
    _current[0].served += 1
    return _current[0]


class LoweringError(TestbedError):
    """MLIR refuses a module of ours: a bug of an emitter."""


def open_loops(module: ir.Module, session: Session, hinted: bool) -> None:
    """Make loops of linalg operations, in place. hinted: whether some of them have hints for their loops."""
    _run(session.loops, module)
    if hinted:
        module.operation.walk(lambda op: _hint(session.types, op))


def _hint(types: Types, op: ir.Operation) -> ir.WalkResult:
    """Give a loop the hint that its linalg operation has; of SHORT ones, LLVM shall not unroll the long ones."""
    if op.name != "scf.for":
        return ir.WalkResult.ADVANCE
    found = {}
    if str(op.location) == MARKS[Unroll.SCALAR]:
        found = types.scalar
    elif str(op.location) == MARKS[Unroll.NONE]:
        found = types.rolled
    elif str(op.location) == MARKS[Unroll.ABREAST]:
        found = types.abreast
    elif str(op.location) == MARKS[Unroll.SHORT]:
        owner = op.operands[1].owner
        bound = owner.attributes["value"] if owner.name == "arith.constant" else None
        found = types.rolled if bound is None or ir.IntegerAttr(bound).value > UNROLLED else {}
    for name, attribute in found.items():
        op.attributes[name] = attribute
    return ir.WalkResult.ADVANCE


MARKS = {unroll: f'loc("{name}")' for unroll, name in HINTS.items()}


def lower(module: ir.Module, session: Session, vectors: Collection[str]) -> None:
    """Lower to the LLVM dialect, in place. MLIR's verifier runs first, so that a wrong module raises and does not
    crash. vectors: the operations of the vector dialect that the module may have.
    """
    passes = session.passes if not DIRECT.issuperset(vectors) else session.direct_passes
    _run(passes if vectors else session.scalar_passes, module)


def _run(passes: PassManager, module: ir.Module) -> None:
    try:
        module.operation.verify()
        passes.run(module.operation)
    except ir.MLIRError as error:
        raise LoweringError(
            f"MLIR refuses an emitted module: {error}", remedy="report it with the module's text"
        ) from error
