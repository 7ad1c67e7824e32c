"""NumPy as `np`, imported when something of it is first used: loading a program from a file needs nothing of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["np"]

if TYPE_CHECKING:
    import numpy as np
else:

    class _Later:
        """A module's attributes. Those that were used are its own, so that a second use costs what a module's does."""

        def __init__(self, name: str):
            self._name = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__dict__["_name"]), name)
            setattr(self, name, value)
            return value

    np = _Later("numpy")
