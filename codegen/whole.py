"""Several LLVM modules → one object that defines one public function: all other symbols become local to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import llvmlite.binding as llvm

from .elf import object_symbols
from .llvm import make_machine, parse, start
from .load import LINKER_DEFINES
from .optimize import optimize
from .options import EmitOptions
from .unlocked import emit_object

RELOCATIONS = {"static": (), "pic": ("PIC",), "pie": ("PIC", "PIE")}
"""Relocation model → the levels that LLVM's modules note for it."""


def whole_object(
    texts: Sequence[str | tuple[str, EmitOptions]], entry: str, public: str, options: EmitOptions, relocation: str
) -> bytes:
    """One object of LLVM modules. Each is optimised by itself, as programs that run at once are: the bits are the same.

    texts: the modules, some with options of their own. entry: the module of the function `public`, which may have the
    name of another module's function if it does not call that. relocation: a key of RELOCATIONS. Raises CodegenError.
    """
    start()
    context = llvm.create_context()
    whole = parse(_flags(relocation), context)
    called = {f.name for f in parse(entry).functions if f.is_declaration}
    for text, visible in [*((text, None) for text in texts[:-1]), (texts[-1], called), (entry, {public})]:
        text, given = (text, options) if isinstance(text, str) else text
        whole.link_in(parse(optimize(text, given), context))
        if visible is not None:
            _hide(whole, visible)
    machine = make_machine(options.target, "static" if relocation == "static" else "pic")
    whole.triple, whole.data_layout = options.target.triple, str(machine.target_data)
    return emit_object(machine, whole)


def _hide(whole: llvm.ModuleRef, visible: Collection[str]) -> None:
    """Make all symbols local but `visible`."""
    for value in (*whole.functions, *whole.global_variables):
        if not value.is_declaration and value.name not in visible and not value.name.startswith("llvm."):
            value.linkage = "internal"


def _flags(relocation: str) -> str:
    levels = RELOCATIONS[relocation]
    if not levels:
        return ""
    flags = "\n".join(f'!{n} = !{{i32 8, !"{name} Level", i32 2}}' for n, name in enumerate(levels))
    return f"!llvm.module.flags = !{{{', '.join(f'!{n}' for n in range(len(levels)))}}}\n{flags}\n"


def needed_symbols(data: bytes) -> frozenset[str]:
    """The symbols that an object needs from libraries."""
    return object_symbols(data).undefined - LINKER_DEFINES
