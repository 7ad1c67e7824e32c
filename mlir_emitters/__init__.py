"""The new stack: one kernel request → LHLO → MLIR → LLVM IR text. MLIR is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..codegen.forms import ChosenForms, FormInfo
    from ..codegen.options import EmitOptions, EmittedModule
    from ..hlo.errors import UnsupportedError
    from ..planning.plan import KernelRequest


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every request, with its earlier IRs. Raises UnsupportedError."""
    from .emission import emit as emit_requests

    return emit_requests(requests, options)


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each op of the requests without a rule; empty if all can be emitted."""
    from .support import missing

    return missing(requests)


def forms_of(request: KernelRequest, options: EmitOptions) -> ChosenForms | None:
    """The forms in which a request would be emitted; None if groups of items shall compute it and cannot. Raises
    UnsupportedError.
    """
    from .emission import forms_of as chosen

    return chosen(request, options)


def form_table() -> tuple[FormInfo, ...]:
    """All forms, in the order in which they are asked."""
    from .forms import form_table as table

    return table()
