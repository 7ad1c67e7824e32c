"""Kernels that groups of a device's items compute: their emission, for those that have a form."""

from __future__ import annotations

from llvmlite import ir

from ..codegen.options import EmitOptions, Grouped
from ..planning.plan import KernelRequest
from .devices.group import Group
from .forms import Chosen, choose_group
from .kernel import Kernel, begin


def emit_grouped(module: ir.Module, request: KernelRequest, options: EmitOptions) -> tuple[Grouped, Chosen] | None:
    """Add the kernel's function to the module; None, and nothing is added, if groups cannot compute it."""
    kernel = Kernel.of(request, options)
    assert options.group is not None
    chosen = choose_group(kernel.view, kernel.leaves, options.group)
    if chosen is None:
        return None
    e = begin(module, kernel, options, ranged=False)
    group = Group(e.code, options.group)
    chosen.form.emit(e, chosen.results, chosen.fit.parameters, group)
    e.code.root.builder.ret_void()
    steps, across, down = chosen.fit.parameters.grouped(options.group)
    return Grouped(steps, across, down, group.used), chosen
