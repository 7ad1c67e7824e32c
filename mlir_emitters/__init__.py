"""The new stack: one kernel request -> LHLO -> MLIR -> LLVM IR text. `emit` and `unsupported` load MLIR when first
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..codegen.options import EmitOptions, EmittedModule
    from ..hlo.errors import UnsupportedError
    from ..planning.plan import KernelRequest


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every request, with the IRs on the way to it."""
    from .emission import emit as emit_requests

    return emit_requests(requests, options)


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """What this stack has no rule for among the requests; empty if it can emit them all."""
    from .support import missing

    return missing(requests)
