"""XLA FFI: the C ABI, the registry of custom-call handlers, and the host side that calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..codegen.options import EmitOptions, EmittedModule
    from ..hlo.errors import UnsupportedError
    from ..planning.plan import KernelRequest

__all__ = ["emit", "unsupported"]


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every requested kernel. Raises UnsupportedError for the first without a handler."""
    from .emission import emit_module

    return emit_module(requests, options)


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each custom call of the requests that cannot be made."""
    from .emission import missing

    return missing(requests)
