"""The kernels of a program as one C99 file."""

from __future__ import annotations

from collections.abc import Sequence

from ...codegen.options import EmitOptions, EmittedModule
from ...planning.plan import KernelRequest
from .contract import fused
from .helpers import runtime
from .kernel import emit_kernel, missing


def kernels_text(requests: Sequence[KernelRequest], options: EmitOptions, linkage: str = "") -> str:
    """The functions of all kernels, and what they call. linkage: a word before each, such as `static `."""
    errors = missing(requests)
    if errors:
        raise errors[0]
    made = [linkage + emit_kernel(request, options.strict) for request in requests]
    text = "\n".join(made if options.strict else map(fused, made))
    return f"{runtime(text)}\n{text}"


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    return EmittedModule(kernels_text(requests, options), language="c")
