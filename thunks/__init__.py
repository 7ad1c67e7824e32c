"""The kinds of thunks, their text form, and the executor that runs them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .kinds import (
    Access,
    BufferUse,
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    ProfileThunk,
    SequentialThunk,
    Split,
    Thunk,
    WhileThunk,
    children,
    read,
    write,
)

if TYPE_CHECKING:
    from .lowering import from_plan as from_plan
    from .parse import from_text as from_text
    from .text import to_text as to_text

__all__ = [
    "Access",
    "BufferUse",
    "ConditionalThunk",
    "CopyThunk",
    "KernelThunk",
    "ProfileThunk",
    "SequentialThunk",
    "Split",
    "Thunk",
    "WhileThunk",
    "children",
    "from_plan",
    "from_text",
    "read",
    "to_text",
    "write",
]

_LATER = {"from_plan": "lowering", "from_text": "parse", "to_text": "text"}
"""Functions that a program from a file does not need → where they are."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
