"""LhloModule: an MLIR module of LHLO with its context; text and bytecode out. In: lhlo/parse.py."""

from __future__ import annotations

import io
from dataclasses import dataclass

from mlir import ir

from .guard import seal


@dataclass(frozen=True, eq=False, slots=True)
class LhloModule:
    """An MLIR module that holds LHLO: kernels (`func.func` with lhlo.kernel) or one program (lhlo.program)."""

    module: ir.Module

    @property
    def context(self) -> ir.Context:
        return self.module.context

    def to_text(self) -> str:
        """The module in generic form; parses back to an equal module."""
        return str(self.module)

    def to_bytecode(self) -> bytes:
        """MLIR bytecode behind a header with a checksum: MLIR's reader ends the process on damaged input."""
        stream = io.BytesIO()
        self.module.operation.write_bytecode(stream)
        return seal(stream.getvalue())
