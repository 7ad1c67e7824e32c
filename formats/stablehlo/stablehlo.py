"""StableHLO → Module, by XLA's converter in jaxlib.

The input is text or portable bytecode and may use the CHLO, VHLO and Shardy dialects.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ...hlo.errors import InputError, Location, ParseError
from ...hlo.ir import Module
from ...hlo.remedies import adding
from ..text.parser import parse_module
from .magic import is_bytecode
from .worker import convert

_DIAGNOSTIC = re.compile(r"^(?:[A-Z_]+: )?(-|<unknown>):(\d+):(\d+): error: (.*)", re.MULTILINE)


def parse_stablehlo(code: bytes, file: str = "<string>", *, isolate: bool = False) -> Module:
    """The HLO module of a StableHLO module.

    isolate: convert in a child process, which takes about 0.5 s; for untrusted input, because some malformed modules
    crash the converter. Raises ParseError if the converter refuses the module, InputError if jaxlib is not installed.
    """
    return parse_module(stablehlo_to_hlo(code, file, isolate=isolate), f"{file} (as HLO)")


def stablehlo_to_hlo(code: bytes, file: str = "<string>", *, isolate: bool = False) -> str:
    """XLA's HLO text of a StableHLO module; no constant is elided."""
    _need_jaxlib()
    if not code.strip():
        raise ParseError("the file is empty", location=Location(1, 1, file), remedy="give a StableHLO module")
    if not is_bytecode(code):
        _check_text(code, file)
    if isolate:
        return _convert_in_child(code, file)
    try:
        return convert(code)
    except (RuntimeError, ValueError, TypeError) as error:
        raise _located(str(error), code, file) from None


LIMIT = 300.0
"""Time limit of the child process in seconds."""


def export_in_child(proto: bytes, file: str, *, bytecode: bool) -> tuple[bytes, str]:
    """(StableHLO, "") of an HloModuleProto, by XLA's converter in a child process; (b"", diagnostics) if it refuses.

    Raises InputError if jaxlib is not installed, or if the child does not answer.
    """
    _need_jaxlib()
    child = _ask_child(["bytecode" if bytecode else "text"], proto, file)
    answer = child.stdout
    if child.returncode == 0 and answer[:1] in (b"+", b"-"):
        return (answer[1:], "") if answer[:1] == b"+" else (b"", answer[1:].decode("utf-8", "replace"))
    raise InputError(
        f"{file}: XLA's converter crashed on this module (status {child.returncode})", remedy="convert a smaller part"
    )


def _ask_child(arguments: list[str], data: bytes, file: str) -> subprocess.CompletedProcess[bytes]:
    worker = Path(__file__).with_name("worker.py")
    try:
        return subprocess.run([sys.executable, worker, *arguments], input=data, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise InputError(f"{file}: XLA's converter took more than {LIMIT:g} s", remedy="give the HLO") from None


def _convert_in_child(code: bytes, file: str) -> str:
    child = _ask_child([], code, file)
    answer = child.stdout.decode("utf-8", "replace")
    if child.returncode == 0 and answer.startswith("+"):
        return answer[1:]
    if child.returncode == 0 and answer.startswith("-"):
        raise _located(answer[1:], code, file)
    raise ParseError(
        f"XLA's converter crashed on this module (status {child.returncode})",
        location=Location(1, 1, file),
        remedy="is it damaged?",
    )


def _check_text(code: bytes, file: str) -> None:
    """Refuses text with a NUL or with bytes that are not UTF-8: MLIR's parser would ignore all after the NUL."""
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


def _need_jaxlib() -> None:
    try:
        import jaxlib  # noqa: F401
    except ImportError:
        raise InputError(
            "StableHLO is converted by XLA, and jaxlib is not installed",
            remedy=f"run {adding('xla')}, or give the module as HLO",
        ) from None


_VERSION = re.compile(rb"ML\xefR.StableHLO_v(\d+)\.(\d+)\.(\d+)\0", re.DOTALL)

READS = {(1, 18): "0.12"}
"""Version of StableHLO → the first jaxlib that is known to read it, for versions newer than the pinned jaxlib's."""


def _newer(code: bytes, file: str) -> ParseError | None:
    """The error for bytecode of a StableHLO newer than the converter's; None for any other code."""
    import jaxlib
    from jaxlib.mlir.dialects import stablehlo

    found = _VERSION.match(code)
    ours = stablehlo.get_current_version()
    if found is None or tuple(map(int, found.groups())) <= tuple(map(int, ours.split("."))):
        return None
    version = b".".join(found.groups()).decode()
    known = READS.get((int(found[1]), int(found[2])))
    reader = f"jaxlib {known} or newer reads it" if known else "the jaxlib that wrote it reads it"
    return ParseError(
        f"bytecode of StableHLO {version}; jaxlib {jaxlib.__version__} reads versions up to {ours}",
        location=Location(1, 1, file),
        remedy=f"{reader}; or serialize it for version {ours}, or give the module as HLO",
    )


def _located(message: str, code: bytes, file: str) -> ParseError:
    """The converter's first diagnostic as a ParseError, with its line, column and source line if it names them."""
    if is_bytecode(code) and (newer := _newer(code, file)) is not None:
        return newer
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
