"""Loads a MODULE argument of any kind: HLO, StableHLO and protos (formats/), and LHLO, as text or bytecode.

LHLO brings its own buffers, kernels and order, so its program has a plan; `module` is the same program as HLO.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..formats.files import Loaded, load_module
from ..formats.program import Program, source_file
from ..formats.program import load_program as load
from ..formats.text.printer import print_module
from ..hlo.errors import InputError, Location, ParseError, TestbedError
from ..planning.plan import Plan

if TYPE_CHECKING:
    from ..lhlo.module import LhloModule

SUFFIXES = (".lhlo.mlir", ".lhlo.mlirbc")
"""The end of an LHLO file's name. Other .mlir files are LHLO if they hold a function marked as a program or kernel."""

MAGIC = b"LHLO"
_MARK = re.compile(rb"\blhlo\.(?:program|kernel)\b")


def load_program(spec: str) -> Program:
    """Read a MODULE: a file, a folder or `-`, or a module in a folder of XLA's dumps.

    Raises InputError, ParseError or VerificationError with the place.
    """
    path = Path(spec)
    if spec != "-" and not source_file(path).is_file():
        from ..xla_kernels.folder import is_dump, one_module

        if is_dump(path):
            from .xla_programs import as_program, read_program

            return as_program(read_program(one_module(path)))
    return load(spec, load_any)


def load_any(data: bytes, file: str) -> Loaded:
    """The program in a file's bytes. Raises InputError, ParseError or VerificationError with the place."""
    if not is_lhlo(data, file):
        return load_module(data, file)
    return loaded_lhlo(lhlo_of(data, file), file)


def loaded_lhlo(lhlo: LhloModule, file: str) -> Loaded:
    """The program of a verified LHLO module. Raises VerificationError or UnsupportedError with the place."""
    from ..lhlo.to_plan import to_plan

    try:
        plan = to_plan(lhlo, file)
    except TestbedError as error:
        raise at_file(error, file) from None
    return Loaded(plan.module, print_module(plan.module), plan=plan)


def lhlo_of(data: bytes, file: str) -> LhloModule:
    """The LHLO, text or bytecode, in a file's bytes. Raises ParseError or VerificationError."""
    from ..lhlo.parse import parse_bytecode, parse_text

    if data.startswith(MAGIC):
        return parse_bytecode(data, file, isolate=True)
    try:
        return parse_text(data.decode("utf-8"), file)
    except UnicodeDecodeError as error:
        raise ParseError(
            f"not UTF-8 text at byte {error.start}",
            location=Location(1, 1, file),
            remedy="LHLO bytecode starts with LHLO; write it with testbed lhlo -o FILE.mlirbc",
        ) from None


def is_lhlo(data: bytes, file: str) -> bool:
    """Whether a file holds LHLO, by its name or its content."""
    if data.startswith(MAGIC) or file.endswith(SUFFIXES):
        return True
    return not data.lstrip().startswith(b"HloModule") and b"func.func" in data and _MARK.search(data) is not None


def plan_of(program: Program) -> Plan | None:
    """The plan that an LHLO file fixes; None for a program whose plan the planner makes, also of a module of XLA's."""
    if program.plan is None or isinstance(program.plan, Plan):
        return program.plan
    from .xla_programs import XlaProgram  # loads a room that few programs need

    if isinstance(program.plan, XlaProgram):
        return None
    raise InputError(f"{program.name}: not a plan: {type(program.plan).__name__}")


def at_file(error: TestbedError, file: str) -> TestbedError:
    """The error with the file's name in its location, which MLIR's locations lack."""
    place = error.location or Location(1, 1)
    error.location = Location(place.line, place.column, file)
    return error
