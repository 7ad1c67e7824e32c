"""LhloModule: an MLIR module of LHLO with its context, and its text and bytecode forms. lhlo/parse.py reads them."""

from __future__ import annotations

import io

from mlir import ir

from ..hlo.records import dataclass
from .guard import seal


@dataclass(frozen=True, eq=False, slots=True)
class LhloModule:
    """An MLIR module that holds LHLO: kernels (`func.func` with lhlo.kernel) or one program (lhlo.program)."""

    module: ir.Module

    @property
    def context(self) -> ir.Context:
        return self.module.context

    def to_text(self) -> str:
        """The module in MLIR's generic form. Parsing it gives an equal module."""
        return str(self.module)

    def to_bytecode(self) -> bytes:
        """MLIR bytecode with a checksummed header, which is needed because MLIR's reader aborts on damaged input."""
        stream = io.BytesIO()
        self.module.operation.write_bytecode(stream)
        return seal(stream.getvalue())
