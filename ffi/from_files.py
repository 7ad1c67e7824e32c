"""Handlers from files that a command line names: shared libraries, and Python files with the words of this package."""

from __future__ import annotations

import functools
import runpy
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..hlo.errors import InputError
from .registry import register, registered

FORMS = "X.so (it registers itself), X.so:TARGET[=SYMBOL],…, X.py, or jaxlib (its own handlers)"


def load_handlers(specs: Iterable[str]) -> tuple[str, ...]:
    """Load each file once a process; the names of the targets, sorted. Raises InputError for a file that has none."""
    return tuple(sorted({name for spec in specs for name in _loaded(spec)}))


@functools.cache
def _loaded(spec: str) -> tuple[str, ...]:
    if spec == "jaxlib":
        from .static_library import register_jaxlib

        return register_jaxlib("")
    path, symbols = _parts(spec)
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file", remedy=f"give {FORMS}")
    if path.endswith(".py"):
        return _of_python(path)
    from .static_library import load_library, register_symbols

    if symbols:
        register_symbols(path, symbols)
        return tuple(symbols)
    names = load_library(path)
    if not names:
        remedy = f"name its symbols: {path}:TARGET=SYMBOL (nm -D lists them)"
        raise InputError(f"{path}: the library registers no handler", remedy=remedy)
    return names


def _parts(spec: str) -> tuple[str, dict[str, str]]:
    """The file, and target → symbol."""
    path, colon, listed = spec.rpartition(":")
    if not colon or Path(spec).is_file():
        path, listed = spec, ""
    if not path.endswith((".so", ".py")) and ".so." not in path:
        raise InputError(f"{spec}: neither a shared library nor a Python file", remedy=f"give {FORMS}")
    pairs = (item.partition("=") for item in listed.split(",") if item)
    found = {target: symbol or target for target, _, symbol in pairs}
    if found and path.endswith(".py"):
        raise InputError(f"{spec}: a Python file names its handlers itself", remedy="call ffi.register in it")
    return path, found


def _of_python(path: str) -> tuple[str, ...]:
    """Run a file. What it does not register, its functions with @ffi.handler, gets the names that they have there."""
    before = set(registered())
    try:
        values: dict[str, Any] = runpy.run_path(path, run_name="handlers")
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        place = f"{path}:{lines[-1]}" if lines else path
        raise InputError(f"{place}: {type(error).__name__}: {error}", remedy="mend the file of handlers") from None
    found = {name for name, _ in set(registered()) - before}
    if not found:
        for name, value in values.items():
            if hasattr(value, "ffi_address"):
                register(name, value)
                found.add(name)
    if not found:
        raise InputError(f"{path}: registers no handler", remedy="call ffi.register(name, function) in it")
    _KEPT.append(values)
    return tuple(found)


_KEPT: list[dict[str, Any]] = []
"""What the files define, as long as the process lives."""
