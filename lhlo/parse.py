"""LHLO text or bytecode → LhloModule. External input is verified; text that this package wrote is trusted."""

from __future__ import annotations

from mlir import ir

from ..hlo.errors import Location, ParseError
from .dialect import context
from .guard import check_parsed, check_text, unseal
from .module import LhloModule
from .verifier import verify


def parse_text(text: str, file: str = "<string>") -> LhloModule:
    """Parse and verify LHLO. Raises ParseError or VerificationError with a location in `text`."""
    check_text(text, file)
    return _verified(text, file)


def parse_bytecode(data: bytes, file: str = "<bytecode>") -> LhloModule:
    """Read and verify the output of `LhloModule.to_bytecode`. Raises ParseError or VerificationError."""
    return _verified(unseal(data, file), file)


def trusted(text: str, ctx: ir.Context | None = None) -> LhloModule:
    """Parse text that this package wrote. MLIR verifies it; the LHLO verifier does not run. ctx: has LHLO loaded."""
    with ctx or context():
        return LhloModule(_parse(text, "<lhlo>"))


def _verified(source: str | bytes, file: str) -> LhloModule:
    with context():
        lhlo = LhloModule(_parse(source, file))
    check_parsed(lhlo.to_text(), file)
    verify(lhlo, file)
    return lhlo


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
