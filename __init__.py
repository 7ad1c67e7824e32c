"""XLA migration testbed: HLO in, native code out, through two code-generation stacks side by side.

This file is the public API. Everything in it loads on first use, so `import testbed` stays cheap.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> the room module that holds it. Loaded by __getattr__ below.
_PUBLIC: dict[str, str] = {
    "CompileOptions": "backends.base",
    "Flags": "migration.flags",
    "InputError": "hlo.errors",
    "Module": "hlo.ir",
    "ParseError": "hlo.errors",
    "TestbedError": "hlo.errors",
    "UnsupportedError": "hlo.errors",
    "VerificationError": "hlo.errors",
    "compile": "migration.api",
    "evaluate": "migration.api",
    "parse": "migration.api",
    "platform": "backends.registry",
    "register_platform": "backends.registry",
    "run": "migration.api",
}

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'testbed' has no attribute {name!r}; public names: {', '.join(__dir__())}")
    return getattr(import_module("." + _PUBLIC[name], __name__), name)


def __dir__() -> list[str]:
    return [*__all__, *_PUBLIC]
