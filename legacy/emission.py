"""Emits all requested kernels into one LLVM module."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..codegen.field.element import emitting
from ..codegen.forms import ChosenForms
from ..codegen.lite_text import module_text
from ..codegen.options import EmitOptions, EmittedModule
from ..planning.plan import KernelRequest
from .core.helper import texts_of
from .forms import Chosen, choose_group
from .kernel import Kernel, emit_grouped, emit_kernel
from .support import missing


def emit_module(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """The LLVM module of the kernels. Its text depends only on the requests and the options."""
    with emitting(options.exact):
        return _module(requests, options)


def _module(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    errors = missing(requests)
    if errors:
        raise errors[0]
    module = ir.Module("legacy", context=ir.Context())
    module.triple = options.target.triple
    if options.group is not None:
        made = {r.name: found for r in requests if (found := emit_grouped(module, r, options)) is not None}
        forms = {name: told_of_group(chosen) for name, (_, chosen) in made.items()}
        return EmittedModule(module_text(module), grouped={n: grouped for n, (grouped, _) in made.items()}, forms=forms)
    chosen = {request.name: emit_kernel(module, request, options) for request in requests}
    ranged = frozenset(name for name, choice in chosen.items() if choice.ranged)
    glue, lean = (frozenset(n for n, choice in chosen.items() if choice.passes == p) for p in ("glue", "lean"))
    forms = {name: choice.told() for name, choice in chosen.items()}
    return EmittedModule(
        module_text(module), ranged=ranged, helpers=texts_of(module), glue=glue, lean=lean, forms=forms
    )


def forms_of(request: KernelRequest, options: EmitOptions) -> ChosenForms | None:
    """The forms of a kernel, without its emission; None if groups cannot compute it."""
    kernel = Kernel.of(request, options)
    if options.group is None:
        return kernel.choose(options).told()
    chosen = choose_group(kernel.view, kernel.leaves, options.group)
    return None if chosen is None else told_of_group(chosen)


def told_of_group(chosen: Chosen) -> ChosenForms:
    return ChosenForms((chosen.told(),), False, "full")
