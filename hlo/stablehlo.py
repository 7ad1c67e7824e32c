"""StableHLO, text or portable bytecode (CHLO, VHLO, Shardy inside), → Module, through XLA's converter in jaxlib."""

from __future__ import annotations

import re

from .errors import InputError, Location, ParseError
from .ir import Module
from .parser import parse_module

BYTECODE = b"ML\xefR"
"""The magic with which MLIR bytecode starts."""

_DIAGNOSTIC = re.compile(r"^(?:[A-Z_]+: )?(-|<unknown>):(\d+):(\d+): error: (.*)", re.MULTILINE)


def is_bytecode(code: bytes) -> bool:
    return code.startswith(BYTECODE)


def parse_stablehlo(code: bytes, file: str = "<string>") -> Module:
    """The HloModule of a StableHLO module. Raises ParseError where the converter refuses it, with the place it names.

    Raises InputError where jaxlib is not installed.
    """
    return parse_module(stablehlo_to_hlo(code, file), f"{file} (as HLO)")


def stablehlo_to_hlo(code: bytes, file: str = "<string>") -> str:
    """XLA's HLO text of a StableHLO module, with every constant whole."""
    convert, options = _converter()
    if not code.strip():
        raise ParseError("the file is empty", location=Location(1, 1, file), remedy="give a StableHLO module")
    if not is_bytecode(code):
        _check_text(code, file)
    try:
        computation = convert(code, use_tuple_args=False, return_tuple=False)
        return computation.get_hlo_module().to_string(options)
    except (RuntimeError, ValueError, TypeError) as error:
        raise _located(str(error), code, file) from None


def _check_text(code: bytes, file: str) -> None:
    """MLIR's parser reads up to the first NUL; we refuse what it would not see."""
    at = code.find(b"\0")
    try:
        code.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start if at < 0 else min(at, error.start)
    if at >= 0:
        raise ParseError(
            f"neither MLIR text nor bytecode: byte {at} is no character",
            location=_place(code, at, file),
            remedy="StableHLO bytecode starts with 'ML\\xefR'",
        )


def _place(code: bytes, at: int, file: str) -> Location:
    return Location(code.count(b"\n", 0, at) + 1, at - code.rfind(b"\n", 0, at), file)


def _converter():  # type: ignore[no-untyped-def]
    try:
        from jaxlib import _hlo, _jax
    except ImportError:
        raise InputError(
            "StableHLO is converted by XLA, and jaxlib is not installed",
            remedy="run ./testbed setup --xla, or give the module as HLO",
        ) from None
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_backend_config = True
    return _jax.mlir.mlir_module_to_xla_computation, options


def _located(message: str, code: bytes, file: str) -> ParseError:
    """The converter's first diagnostic as our error: its line and column, where it has any, and the line they name."""
    found = _DIAGNOSTIC.search(message)
    if found is None:
        first = message.strip().split("\n", 1)[0]
        return ParseError(f"XLA's converter refuses this StableHLO: {first}", location=Location(1, 1, file))
    line, column, text = max(int(found[2]), 1), max(int(found[3]), 1), found[4].strip()
    source = ""
    if not is_bytecode(code):
        lines = code.decode("utf-8").split("\n")
        source = lines[line - 1] if line <= len(lines) else ""
    return ParseError(text, location=Location(line, column, file), source=source)
