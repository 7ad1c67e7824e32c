"""The public functions parse, compile, evaluate and run. The package's root imports them lazily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..hlo.ir import Module

if TYPE_CHECKING:
    from ..backends.base import CompileOptions
    from ..backends.host.executable import HostExecutable
    from .flags import Flags

Source = str | Module
"""HLO text, or a module that `parse` returned."""


def parse(text: str, file: str = "<string>") -> Module:
    """HLO text → module. Raises ParseError with line and column."""
    from ..formats.text.parser import parse_module

    return parse_module(text, file)


def compile(source: Source, emitters: str | Flags = "legacy", options: CompileOptions | None = None) -> HostExecutable:
    """Compile a module to native code. emitters: which stack emits which ops, e.g. 'mlir' or 'mlir,reduce=legacy'.

    `execute(inputs)` of the result takes and returns one array per leaf; tuples are flattened in order.
    Raises ParseError, VerificationError, FlagError, UnsupportedError or CodegenError.
    """
    from .compile import compile_module
    from .flags import Flags

    flags = Flags.parse(emitters) if isinstance(emitters, str) else emitters
    return compile_module(_module(source), flags, options)


def evaluate(source: Source, inputs: Sequence[Any] = ()) -> list[np.ndarray]:
    """Run a module on the evaluator, the reference implementation. No code is generated."""
    from ..evaluator import evaluator

    return evaluator.evaluate(_module(source), [np.asarray(x) for x in inputs])


def run(source: Source, inputs: Sequence[Any] = (), emitters: str | Flags = "legacy") -> list[np.ndarray]:
    """Compile a module, run it once and return one array per result leaf."""
    return compile(source, emitters).execute(inputs)


def _module(source: Source) -> Module:
    if isinstance(source, Module):
        return source
    if isinstance(source, str):
        return parse(source)
    raise TypeError(f"expected HLO text or a Module, given {type(source).__name__}")
