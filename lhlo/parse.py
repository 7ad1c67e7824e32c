"""LHLO text or bytecode → LhloModule. External input is verified; text that this package wrote is trusted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mlir import ir

from ..hlo.errors import Location, ParseError
from .dialect import context, dialect_text
from .guard import check_parsed, check_text, unseal
from .module import LhloModule
from .verifier import verify


def parse_text(text: str, file: str = "<string>") -> LhloModule:
    """Parse and verify LHLO. Raises ParseError or VerificationError with a location in `text`."""
    check_text(text, file)
    return _verified(text, file)


def parse_bytecode(data: bytes, file: str = "<bytecode>", *, isolate: bool = False) -> LhloModule:
    """Read and verify the output of `LhloModule.to_bytecode`. Raises ParseError or VerificationError.

    isolate: read it in a child process, which takes about 0.3 s; for files, because MLIR's reader ends its process at
    some damaged bytecode, and a checksum can be right all the same.
    """
    payload = unseal(data, file)
    return parse_text(_read_in_child(payload, file), file) if isolate else _verified(payload, file)


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


LIMIT = 300.0
"""Time limit of the child process in seconds."""


def _read_in_child(payload: bytes, file: str) -> str:
    dialect = dialect_text().encode()
    place, data = Location(1, 1, file), len(dialect).to_bytes(8, "big") + dialect + payload
    try:
        status, output = child(data)
    except TimeoutError:
        raise ParseError(f"MLIR reads this bytecode for more than {LIMIT:g} s", location=place) from None
    answer = output.decode("utf-8", "surrogateescape")
    if status == 0 and answer.startswith("+"):
        return answer[1:]
    reason = f"MLIR's reader ends with status {status}"
    if status == 0 and answer.startswith("-"):
        reason = " ".join(answer[1:].split())[:200]
    raise ParseError(f"not bytecode that MLIR can read: {reason}", location=place, remedy="write it again")


def child(data: bytes) -> tuple[int, bytes]:
    """The exit status of lhlo/worker.py on this input, and its output. Raises TimeoutError."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]
    try:
        ended = subprocess.run(command, input=data, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return ended.returncode, ended.stdout


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
