"""The public functions load, parse, compile, evaluate and run. The package's root imports them lazily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..hlo.ir import Module

if TYPE_CHECKING:
    from ..backends.base import CompileOptions
    from ..backends.host.executable import HostExecutable
    from ..formats.files import Loaded
    from .flags import Flags

Source = Any
"""What `load` takes: a path, text, bytes, a Module, a Lowered, Compiled or Exported of JAX, a module of XLA or MLIR."""


def load(source: Source, *, file: str | None = None, format: str | None = None) -> Module:
    """The verified module in `source`; of an LHLO program the same program as HLO.

    source: a path (a file, or a folder with module.hlo), HLO text, StableHLO text or bytecode, the text or bytes of
    an XLA proto (HloModuleProto, HloProto, HloSnapshot), an open file, a Module; from JAX a Traced, Lowered, Compiled
    or Exported, whose trees of arguments and results are kept; an MLIR module of StableHLO; an XlaComputation or
    HloModule of jaxlib; a protobuf message. A str is a path if it has one line and such a file exists, or if it holds
    neither `{` nor `=`. An LhloModule (lhlo/builder.py) or a file of LHLO keeps its buffers and kernels.
    file: name of text or bytes in messages. format: 'hlo', 'stablehlo', 'proto' or 'pbtxt'; without it, the end of the
    file's name or the content decides.

    Raises InputError if nothing can be read, ParseError with line and column if the text is malformed,
    VerificationError if the module breaks a rule of HLO.
    """
    return _loaded(source, file, format).module


def _loaded(source: Source, file: str | None = None, format: str | None = None) -> Loaded:
    from ..formats import source as sources
    from .programs import load_any, loaded_lhlo

    if type(source).__name__ == "LhloModule":  # by its name: importing the class loads MLIR
        return loaded_lhlo(source, file or "<lhlo>")
    return sources.load(source, file=file, format=format, read=load_any)


def parse(text: str, file: str = "<string>") -> Module:
    """HLO text → module. Raises ParseError with line and column."""
    from ..formats.text.parser import parse_module

    return parse_module(text, file)


def compile(source: Source, emitters: str | Flags = "ledger", options: CompileOptions | None = None) -> HostExecutable:
    """Compile a module to native code. source: as for `load`; an LHLO program keeps its buffers and kernels.
    emitters: which stack emits which ops, e.g. 'legacy' or 'mlir,reduce=legacy'; by default the ledger says it.

    The result is called like a function: `executable(x, y)`; its repr and inspect.signature say with what. Threads may
    call it at the same time. Its `execute(inputs)` takes and returns a list with one array per leaf.
    Raises InputError, ParseError, VerificationError, FlagError, UnsupportedError or CodegenError.
    """
    from ..formats.program import Program
    from .compile import compile_program
    from .flags import Flags

    flags = Flags.parse(emitters) if isinstance(emitters, str) else emitters
    found = _loaded(source)
    program = Program(found.module.name, found.text, found.module, plan=found.plan)
    return compile_program(program, flags, options)


def evaluate(source: Source, inputs: Sequence[Any] = ()) -> list[np.ndarray]:
    """Run a module on the evaluator, the reference implementation. No code is generated."""
    from ..evaluator import evaluator

    return evaluator.evaluate(load(source), [np.asarray(x) for x in inputs])


def run(source: Source, inputs: Sequence[Any] = (), emitters: str | Flags = "ledger") -> list[np.ndarray]:
    """Compile a module, run it once and return one array per result leaf."""
    return compile(source, emitters).execute(inputs)


def to_text(module: Module, *, long: bool = False) -> str:
    """The HLO text of a module. long: XLA's long form, with `%` before names and shapes before operands."""
    from ..formats.text.printer import print_module

    return print_module(module, long=long)
