"""XLA FFI: the C ABI, the registry of custom-call handlers, the host side that calls them, and handlers in Python.

`emit` and `unsupported` are the room's face to the compiler, as each stack has one. The names for users are those of
binding/public.py; they load when they are first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..hlo.library.handlers import handle_by

if TYPE_CHECKING:
    from ..codegen.options import EmitOptions, EmittedModule
    from ..hlo.errors import UnsupportedError
    from ..planning.plan import KernelRequest
    from .binding.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if not name.startswith("__"):
            public = import_module(".binding.public", __name__)
            if name in public.__all__:
                return getattr(public, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    public = import_module(".binding.public", __name__)
    return [*public.__all__]


def emit(requests: Sequence[KernelRequest], options: EmitOptions) -> EmittedModule:
    """One LLVM module that defines every requested kernel. Raises UnsupportedError for the first without a handler."""
    from .emission import emit_module

    return emit_module(requests, options)


def unsupported(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error for each custom call of the requests that cannot be made."""
    from .emission import missing

    return missing(requests)


def _evaluated(*arguments: Any) -> Any:
    """What the evaluator calls for a target."""
    from .evaluated import call

    return call(*arguments)


handle_by(_evaluated)
