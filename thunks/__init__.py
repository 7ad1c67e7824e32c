"""The kinds of thunks, their text form, and the executor that runs them."""

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
from .lowering import from_plan
from .parse import from_text
from .text import to_text

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
