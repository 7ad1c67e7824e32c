"""Kernels that call a library: one kernel request → LLVM IR text of a wrapper, for both stacks (docs/adr/0015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...hlo.errors import UnsupportedError
    from ...planning.plan import KernelRequest
    from ..options import EmitOptions, EmittedModule

__all__ = ["emit", "unsupported"]


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every requested kernel. Raises UnsupportedError for the first without a routine."""
    from .emission import emit_module

    return emit_module(requests, options)


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each op of the requests that no library routine computes."""
    from .emission import missing

    return missing(requests)
