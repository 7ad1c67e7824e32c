"""Custom-call targets for which this process has handlers, for the evaluator; ffi/registry.py fills the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALLS: dict[str, Callable[..., Any]] = {}
"""Target → a function of (instruction, operands, context) that returns an array, or a tuple of them."""
