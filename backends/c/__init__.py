"""A CPU without LLVM: kernels as one C99 file, which any C compiler builds. A stack of its own, from Plan to C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...codegen.options import EmitOptions, EmittedModule
    from ...hlo.errors import UnsupportedError
    from ...planning.plan import KernelRequest

LANGUAGE = "c"
"""In which `emit` writes; other stacks write LLVM IR."""


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One C99 file that defines every requested kernel. Raises UnsupportedError for the first op without a row."""
    from .program import emit as emit_program

    return emit_program(requests, options)


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each op of the requests that this stack has no row for."""
    from .kernel import missing

    return missing(requests)
