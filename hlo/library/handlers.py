"""Custom-call targets for which this process has handlers, for the evaluator; ffi/registry.py fills the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALLS: dict[str, Callable[..., Any]] = {}
"""Target → a function of (instruction, operands, context) that returns an array, or a tuple of them."""


def handled(*arguments: Any) -> Any:
    """The function of a target that ffi/ has handlers for: the one that this room was given."""
    return _given[0](*arguments)


def handle_by(call: Callable[..., Any]) -> None:
    """Set what `handled` calls; ffi/ does so, which stands above this room."""
    _given[:] = [call]


_given: list[Callable[..., Any]] = []
