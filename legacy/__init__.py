"""The old stack: one kernel request → LLVM IR text, built with llvmlite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..codegen.forms import ChosenForms, FormInfo
    from ..codegen.options import EmitOptions, EmittedModule
    from ..hlo.errors import UnsupportedError
    from ..planning.plan import KernelRequest

__all__ = ["emit", "form_table", "forms_of", "unsupported"]


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every requested kernel. Raises UnsupportedError for the first op without a row."""
    from .emission import emit_module

    return emit_module(requests, options)


def forms_of(request: KernelRequest, options: EmitOptions) -> ChosenForms | None:
    """The forms that `emit` would choose; None for a kernel that groups of a device's items cannot compute."""
    from .emission import forms_of

    return forms_of(request, options)


def form_table() -> tuple[FormInfo, ...]:
    """All forms of this stack, in the order in which they are asked."""
    from .forms import form_table

    return form_table()


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each op of the requests that this stack has no row for."""
    from .support import missing

    return missing(requests)
