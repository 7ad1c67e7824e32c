"""Functions that the kernels of many programs call, each in a module of its own (`EmittedModule.helpers`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Protocol

from llvmlite import ir

from ...codegen.helpers import text_once
from ...codegen.lite_text import module_text
from .stack import ALIGNMENT


class Helper(Protocol):
    """What a function does, apart from its arguments: equal ones have equal names and texts."""

    @property
    def name(self) -> str: ...

    def __hash__(self) -> int: ...

    def declare(self, module: ir.Module) -> ir.Function: ...

    def define(self, module: ir.Module) -> None: ...


KNOWN: dict[str, Helper] = {}
"""The functions that have been called, by name."""


def call(b: ir.IRBuilder, helper: Helper, values: Sequence[ir.Value]) -> None:
    """Emit a call, and declare the function in the module that calls it."""
    KNOWN[helper.name] = helper
    module = b.function.module
    b.call(module.globals.get(helper.name) or helper.declare(module), values)


def declared(
    module: ir.Module,
    name: str,
    types: Sequence[ir.Type],
    is_read: Sequence[bool],
    apart: Collection[int] = (),
    aligned: Collection[int] = (),
) -> ir.Function:
    """Declare a function that returns nothing. is_read: of its pointers, whether they are only read. The numbers of
    those that do not overlap others, and of those that are on the stack.
    """
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), types), name)
    for attribute in ("nounwind", "willreturn", "noduplicate"):  # O3 would copy loops for conditions outside them
        set.add(function.attributes, attribute)
    pointers = [p for p in function.args if isinstance(p.type, ir.PointerType)]
    for parameter, read in zip(pointers, is_read, strict=True):
        parameter.add_attribute("captures(none)")
        if read:
            set.add(parameter.attributes, "readonly")
    for number in apart:
        function.args[number].add_attribute("noalias")
    for number in aligned:
        function.args[number].attributes.align = ALIGNMENT
    return function


def texts_of(module: ir.Module) -> tuple[str, ...]:
    """LLVM IR of the functions that a module calls."""
    called = [KNOWN[f.name] for f in module.functions if f.is_declaration and f.name in KNOWN]
    return tuple(text_once(helper, partial(_text, helper)) for helper in called)


def _text(helper: Helper) -> str:
    module = ir.Module(helper.name, context=ir.Context())
    helper.define(module)
    return module_text(module)
