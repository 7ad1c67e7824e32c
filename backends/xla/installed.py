"""Whether jaxlib is there."""

from __future__ import annotations

import importlib.util

from ...hlo.errors import InputError
from ...hlo.remedies import adding

REMEDY = f"install it with {adding('xla')}"


def installed() -> bool:
    """Whether jaxlib and jax can be imported. Neither is imported by the check."""
    return importlib.util.find_spec("jaxlib") is not None and importlib.util.find_spec("jax") is not None


def require_installed() -> None:
    """Raises InputError if jaxlib is absent."""
    if not installed():
        raise InputError("the stack xla needs jaxlib", remedy=REMEDY)
