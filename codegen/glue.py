"""Kernels that are loops around calls of shared functions, as modules of their own: LLVM does less for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from .options import EmitOptions, EmittedModule


def modules_of(module: EmittedModule, options: EmitOptions) -> list[tuple[str, EmitOptions]]:
    """LLVM IR of the kernels of a module, with the options to compile it: of those that are glue apart."""
    if not module.glue or not options.optimized:
        return [(module.llvm_ir, options)]
    kernels = [name for name, _, _ in _kernels(module.llvm_ir)]
    glue = [name for name in kernels if name in module.glue]
    others = [name for name in kernels if name not in module.glue]
    found = [(_without(module.llvm_ir, others), replace(options, glue=True))]
    return [*found, (_without(module.llvm_ir, glue), options)] if others else found


_KERNEL = re.compile(r'^define void @(?:"([^"\n]*)"|([-\w.$]+))\(', re.MULTILINE)
"""Kernels are public functions, whatever else is in a module is internal."""


def _kernels(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of each kernel."""
    for found in _KERNEL.finditer(text):
        yield found[1] or found[2], found.start(), text.index("\n}\n", found.end()) + 3


def _without(text: str, names: Collection[str]) -> str:
    pieces, position = [], 0
    for name, start, end in _kernels(text):
        if name in names:
            pieces.append(text[position:start])
            position = end
    return "".join([*pieces, text[position:]])
