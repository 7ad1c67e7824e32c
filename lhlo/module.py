"""LhloModule: an MLIR module of LHLO with its context; text and bytecode in and out."""

from __future__ import annotations

import io
from dataclasses import dataclass

from mlir import ir

from ..hlo.errors import Location, ParseError
from .dialect import context
from .guard import check_parsed, check_text, seal, unseal
from .verifier import verify


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

    @staticmethod
    def from_text(text: str, file: str = "<string>") -> LhloModule:
        """Parse and verify LHLO. Raises ParseError or VerificationError, located in `text`."""
        check_text(text, file)
        ctx = context()
        with ctx:
            lhlo = LhloModule(_parse(text, file))
        check_parsed(lhlo.to_text(), file)
        verify(lhlo, file)
        return lhlo

    @staticmethod
    def from_bytecode(data: bytes, file: str = "<bytecode>") -> LhloModule:
        """Read and verify what `to_bytecode` wrote. Raises ParseError or VerificationError."""
        payload = unseal(data, file)
        ctx = context()
        with ctx:
            lhlo = LhloModule(_parse(payload, file))
        check_parsed(lhlo.to_text(), file)
        verify(lhlo, file)
        return lhlo


def trusted(text: str, ctx: ir.Context | None = None) -> LhloModule:
    """A module from text that this package wrote: MLIR checks it, our verifier does not. ctx: one that knows LHLO."""
    with ctx or context():
        return LhloModule(_parse(text, "<lhlo>"))


def _parse(source: str | bytes, file: str) -> ir.Module:
    try:
        return ir.Module.parse(source)
    except ir.MLIRError as error:
        raise _located(error, file) from None


def _located(error: ir.MLIRError, file: str) -> ParseError:
    for diagnostic in error.error_diagnostics:
        place = diagnostic.location
        line, column = (place.start_line, place.start_col) if place.is_a_file() else (1, 1)
        message = diagnostic.message.strip().split("\n")[0]
        return ParseError(
            message, location=Location(line or 1, column or 1, file), remedy="docs/lhlo.md describes LHLO's text"
        )
    return ParseError("not a module that MLIR can read", location=Location(1, 1, file))
