"""XLA migration testbed: HLO in, native code out, through two code-generation stacks side by side.

This file is the public API. Everything in it loads on first use, so `import testbed` stays cheap.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for type checkers; tests/repository/test_wheel.py compares the two lists
    from . import ffi as ffi
    from .backends.base import CompileOptions as CompileOptions
    from .backends.base import Executable as Executable
    from .backends.host.loader import deserialize_and_load as deserialize_and_load
    from .backends.host.loader import load_executable as load_executable
    from .backends.host.memory import memory_stats as memory_stats
    from .backends.host.memory import set_memory_limit as set_memory_limit
    from .backends.host.memory import trim_memory as trim_memory
    from .backends.registry import platform as platform
    from .backends.registry import register_platform as register_platform
    from .codegen.threads import set_threads as set_threads
    from .display.values import to_html as to_html
    from .display.values import to_svg as to_svg
    from .formats.builder import ops as ops
    from .formats.builder.builder import XlaBuilder as XlaBuilder
    from .formats.builder.builder import XlaOp as XlaOp
    from .hlo.dtypes import DType as DType
    from .hlo.errors import InputError as InputError
    from .hlo.errors import OutOfMemoryError as OutOfMemoryError
    from .hlo.errors import ParseError as ParseError
    from .hlo.errors import TestbedError as TestbedError
    from .hlo.errors import UnsupportedError as UnsupportedError
    from .hlo.errors import VerificationError as VerificationError
    from .hlo.ir import Module as Module
    from .hlo.shapes import Shape as Shape
    from .lhlo.builder import LhloBuilder as LhloBuilder
    from .migration.api import compile as compile
    from .migration.api import evaluate as evaluate
    from .migration.api import load as load
    from .migration.api import parse as parse
    from .migration.api import run as run
    from .migration.api import to_text as to_text
    from .migration.flags import Flags as Flags

__version__ = "0.2.0"

# Public name -> the room module that holds it; `:` marks a module that is itself the name. Loaded by __getattr__ below.
_PUBLIC: dict[str, str] = {
    "CompileOptions": "backends.base",
    "DType": "hlo.dtypes",
    "Executable": "backends.base",
    "Flags": "migration.flags",
    "InputError": "hlo.errors",
    "LhloBuilder": "lhlo.builder",
    "Module": "hlo.ir",
    "OutOfMemoryError": "hlo.errors",
    "ParseError": "hlo.errors",
    "Shape": "hlo.shapes",
    "TestbedError": "hlo.errors",
    "UnsupportedError": "hlo.errors",
    "VerificationError": "hlo.errors",
    "XlaBuilder": "formats.builder.builder",
    "XlaOp": "formats.builder.builder",
    "compile": "migration.api",
    "deserialize_and_load": "backends.host.loader",
    "evaluate": "migration.api",
    "ffi": "ffi:",
    "load": "migration.api",
    "load_executable": "backends.host.loader",
    "memory_stats": "backends.host.memory",
    "ops": "formats.builder.ops:",
    "parse": "migration.api",
    "platform": "backends.registry",
    "register_platform": "backends.registry",
    "set_threads": "codegen.threads",
    "run": "migration.api",
    "set_memory_limit": "backends.host.memory",
    "to_html": "display.values",
    "to_svg": "display.values",
    "to_text": "migration.api",
    "trim_memory": "backends.host.memory",
}

__all__ = ["__version__"]


if not TYPE_CHECKING:  # a type checker would take it for any name at all

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'testbed' has no attribute {name!r}; public names: {', '.join(__dir__())}")
        from .hlo.collector import collector_at_rest

        room, is_module = _PUBLIC[name].removesuffix(":"), _PUBLIC[name].endswith(":")
        with collector_at_rest():
            module = import_module("." + room, __name__)
        return module if is_module else getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, *_PUBLIC]


class _MlirFinder:
    """Lets signals wait while MLIR's bindings load, whoever imports them: codegen/mlir_import.py says why."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != "mlir":
            return None
        from .codegen.mlir_import import find_spec

        return find_spec(name, path, target)


sys.meta_path.insert(0, _MlirFinder)  # type: ignore[arg-type]
