"""The public functions: parse, compile, evaluate, run. The package's root offers them lazily."""

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
    """Native code of a module. emitters: which stack emits what, such as 'mlir' or 'mlir,reduce=legacy'.

    The result's `execute(inputs)` takes and returns one array a leaf, tuples flattened in order.
    """
    from .compile import compile_module
    from .flags import Flags

    flags = Flags.parse(emitters) if isinstance(emitters, str) else emitters
    return compile_module(_module(source), flags, options)


def evaluate(source: Source, inputs: Sequence[Any] = ()) -> list[np.ndarray]:
    """Run a module on the evaluator, the reference: no code is generated."""
    from ..evaluator import evaluator

    return evaluator.evaluate(_module(source), [np.asarray(x) for x in inputs])


def run(source: Source, inputs: Sequence[Any] = (), emitters: str | Flags = "legacy") -> list[np.ndarray]:
    """Compile a module and run it once."""
    return compile(source, emitters).execute(inputs)


def _module(source: Source) -> Module:
    if isinstance(source, Module):
        return source
    if isinstance(source, str):
        return parse(source)
    raise TypeError(f"expected HLO text or a Module, given {type(source).__name__}")
