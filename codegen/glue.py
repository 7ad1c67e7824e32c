"""Kernels for which LLVM does less, as modules of their own, of one kind each: loops around calls of shared functions,
and loops that their stacks have written as they are to be.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from .options import EmitOptions, EmittedModule


def modules_of(module: EmittedModule, options: EmitOptions) -> list[tuple[str, EmitOptions]]:
    """LLVM IR of the kernels of a module, with the options to compile it: of those that are glue, or lean, apart."""
    if not (module.glue or module.lean) or not options.optimized:
        return [(module.llvm_ir, options)]
    kernels = [name for name, _, _ in _kernels(module.llvm_ir)]
    ways = {"glue": replace(options, glue=True), "lean": replace(options, lean=True), "": options}
    found = []
    for kind, given in ways.items():
        others = [name for name in kernels if _kind(module, name) != kind]
        if len(others) < len(kernels):
            found.append((_without(module.llvm_ir, others), given))
    return found


def _kind(module: EmittedModule, name: str) -> str:
    return "glue" if name in module.glue else "lean" if name in module.lean else ""


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
