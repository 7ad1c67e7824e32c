"""The structured form of the new stack: kernels over memrefs. MLIR is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import unsupported as unsupported

if TYPE_CHECKING:
    from ..codegen.options import EmitOptions, EmittedModule
    from ..planning.plan import KernelRequest


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every request, with its earlier IRs. Raises UnsupportedError."""
    from .builder import Builder
    from .emission import emit as emit_requests

    return emit_requests(requests, options, Builder)
