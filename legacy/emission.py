"""Emits all requested kernels into one LLVM module."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..codegen.lite_text import module_text
from ..codegen.options import EmitOptions, EmittedModule
from ..planning.plan import KernelRequest
from .group_kernel import emit_grouped
from .helper import texts_of
from .kernel import emit_kernel
from .support import missing


def emit_module(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """The LLVM module of the kernels. Its text depends only on the requests and the options."""
    errors = missing(requests)
    if errors:
        raise errors[0]
    module = ir.Module("legacy", context=ir.Context())
    module.triple = options.target.triple
    if options.group is not None:
        grouped = {r.name: made for r in requests if (made := emit_grouped(module, r, options)) is not None}
        return EmittedModule(module_text(module), grouped=grouped)
    emitted = {request.name: emit_kernel(module, request, options) for request in requests}
    ranged, glue, lean = (frozenset(n for n, e in emitted.items() if getattr(e, k)) for k in ("ranged", "glue", "lean"))
    return EmittedModule(module_text(module), ranged=ranged, helpers=texts_of(module), glue=glue, lean=lean)
