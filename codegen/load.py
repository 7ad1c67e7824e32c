"""Object files → callable addresses in this process. All symbols are resolved before the code is linked."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from .elf import ObjectSymbols, object_symbols
from .library.symbols import library_address
from .llvm import CodegenError, start

LIBRARIES = {"linux": ("libm.so.6", "libgcc_s.so.1")}
"""Libraries with the functions that emitted code calls: libm, and the compiler's runtime (f16 conversions, 128-bit
division).
"""

LINKER_DEFINES = {"_GLOBAL_OFFSET_TABLE_"}


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LoadedCode:
    """Machine code in memory. It is unloaded when this value is dropped, so keep it as long as its addresses are in
    use.
    """

    addresses: Mapping[str, int]
    objects: tuple[bytes, ...] = ()

    def address(self, symbol: str) -> int:
        try:
            return self.addresses[symbol]
        except KeyError:
            raise CodegenError(
                f"the loaded code does not define {symbol!r}",
                remedy="defined: " + (", ".join(sorted(self.addresses)[:10]) or "nothing"),
            ) from None


def symbols_of(objects: Sequence[bytes]) -> ObjectSymbols:
    """The symbols that objects define and need together. Raises CodegenError if one is defined twice."""
    symbols = [object_symbols(data) for data in objects]
    defined = _defined_once(symbols)
    needed = set[str]().union(*(s.undefined for s in symbols)) - defined - LINKER_DEFINES
    return ObjectSymbols(frozenset(defined), frozenset(needed))


def missing_symbols(names: Iterable[str]) -> list[str]:
    """The names that neither this process nor a library has, sorted. Raises CodegenError for a missing library."""
    _load_libraries()
    return sorted(n for n in names if not (library_address(n) or llvm.address_of_symbol(n)))


def load(objects: Sequence[bytes], imports: Mapping[str, int] | None = None) -> LoadedCode:
    """Link objects. imports: addresses of further symbols; they take precedence over symbols of the process.

    Raises CodegenError if a symbol is missing or defined twice.
    """
    symbols = symbols_of(objects)
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    for name, address in _resolve(symbols.undefined, imports or {}).items():
        builder.import_symbol(name, address)
    for name in symbols.defined:
        builder.export_symbol(name)
    try:
        with _LOCK:
            jit, number = _next_library()
            tracker = builder.link(jit, f"testbed.{number}")
    except RuntimeError as error:
        raise CodegenError(f"the code does not load: {error}") from error
    code = LoadedCode({name: tracker[name] for name in symbols.defined}, tuple(objects))
    # The registry of finalizers holds both, so that not even the garbage collector frees the JIT before the library.
    weakref.finalize(code, _unload, tracker, jit).atexit = False
    return code


def _unload(tracker: llvm.ResourceTracker, jit: llvm.LLJIT) -> None:
    tracker.close()  # here, while the caller still holds the JIT, which goes with the last of its libraries


JIT_LIBRARIES = 128
"""Libraries per JIT. LLVM frees the code of a library but keeps 8 KB of its names until the whole JIT is freed."""

_LOCK = threading.Lock()
_served = 0
_current: llvm.LLJIT | None = None


def _next_library() -> tuple[llvm.LLJIT, int]:
    """The JIT for the next library, and the library's number. LLVM never accepts the name of a library again."""
    global _served, _current
    start()
    if _current is None or _served % JIT_LIBRARIES == 0:
        _current = llvm.create_lljit_compiler(use_jit_link=True)
    _served += 1
    return _current, _served


def _defined_once(symbols: Iterable[ObjectSymbols]) -> set[str]:
    defined: set[str] = set()
    for s in symbols:
        twice = defined & s.defined
        if twice:
            raise CodegenError(f"two objects define {', '.join(sorted(twice))}", remedy="give each kernel its own name")
        defined |= s.defined
    return defined


def _resolve(names: Iterable[str], imports: Mapping[str, int]) -> dict[str, int]:
    """The address of each name. Raises CodegenError that lists all missing names."""
    _load_libraries()
    found = {n: imports.get(n) or library_address(n) or llvm.address_of_symbol(n) for n in names}
    missing = sorted(name for name, address in found.items() if not address)
    if missing:
        raise CodegenError(
            f"the code needs symbols that this process does not have: {', '.join(missing)}",
            remedy="emit a function of libm or an inline expansion instead",
        )
    return {name: address for name, address in found.items() if address}


@functools.cache
def _load_libraries() -> None:
    for name in LIBRARIES.get(sys.platform, ()):
        try:
            llvm.load_library_permanently(name)
        except RuntimeError:
            continue  # symbols that only this library defines are then reported by name
