"""Kernels for which LLVM does less, as modules of their own, of one kind each: loops around calls of shared functions,
and loops that their stacks have written as they are to be.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..hlo.records import replace
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


def kernels_of(llvm_ir: str, names: Collection[str]) -> str | None:
    """LLVM IR of some kernels of a module; None if it has none of them."""
    kernels = [name for name, _, _ in _kernels(llvm_ir)]
    others = [name for name in kernels if name not in names]
    return _without(llvm_ir, others) if len(others) < len(kernels) else None


def _kind(module: EmittedModule, name: str) -> str:
    return "glue" if name in module.glue else "lean" if name in module.lean else ""


_KERNEL = re.compile(r'define (?!internal |private )[^@\n]*@(?:"([^"\n]*)"|([-\w.$]+))\(')
"""Kernels are public functions, whatever else is in a module is internal."""


def function_starts(text: str) -> Iterator[int]:
    """Where the functions of a module begin. `find` is many times as fast as a search for a pattern by lines."""
    start = 0 if text.startswith("define") else text.find("\ndefine") + 1 or -1
    while start >= 0:
        yield start
        start = text.find("\ndefine", start) + 1 or -1


def _kernels(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of each kernel."""
    for start in function_starts(text):
        found = _KERNEL.match(text, start)
        if found is not None:
            end = text.find("\n}", found.end())
            assert end >= 0, text
            yield found[1] or found[2], start, min(end + 3, len(text))


def _without(text: str, names: Collection[str]) -> str:
    pieces, position = [], 0
    for name, start, end in _kernels(text):
        if name in names:
            pieces.append(text[position:start])
            position = end
    return "".join([*pieces, text[position:]])
