"""Object files → callable addresses in this process. All symbols are resolved before the code is linked."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..hlo.records import dataclass
from .elf import ElfObject, ObjectSymbols, read_object
from .errors import CodegenError
from .library.symbols import library_address

LIBRARIES = {"linux": (None, "libm.so.6", "libgcc_s.so.1")}
"""Where the functions that emitted code calls are: the process, libm, and the compiler's runtime (f16 conversions,
128-bit division).
"""

LINKER_DEFINES = {"_GLOBAL_OFFSET_TABLE_"}


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LoadedCode:
    """Machine code in memory. It is unloaded when this value is dropped, so keep it as long as its addresses are in
    use. parts: code that it consists of.
    """

    addresses: Mapping[str, int]
    objects: tuple[bytes, ...] = ()
    parts: tuple[LoadedCode, ...] = ()

    @staticmethod
    def together(*parts: LoadedCode) -> LoadedCode:
        """The symbols of all parts; of two with one name, the later one."""
        addresses = {name: at for part in parts for name, at in part.addresses.items()}
        return LoadedCode(addresses, sum((part.objects for part in parts), ()), parts)

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
    return _symbols([read_object(data) for data in objects])


def _symbols(objects: Sequence[ElfObject]) -> ObjectSymbols:
    symbols = [o.global_symbols for o in objects]
    defined = _defined_once(symbols)
    needed = set[str]().union(*(s.undefined for s in symbols)) - defined - LINKER_DEFINES
    return ObjectSymbols(frozenset(defined), frozenset(needed))


def missing_symbols(names: Iterable[str]) -> list[str]:
    """The names that neither this process nor a library has, sorted. Raises CodegenError for a missing library."""
    return sorted(n for n in names if not _address(n))


def load(objects: Sequence[bytes], imports: Mapping[str, int] | None = None) -> LoadedCode:
    """Link objects. imports: addresses of further symbols; they take precedence over symbols of the process.

    Raises CodegenError if a symbol is missing or defined twice.
    """
    read = [read_object(data) for data in objects]
    symbols = _symbols(read)
    addresses, free = _linked(read, symbols.defined, _resolve(symbols.undefined, imports or {}))
    code = LoadedCode(addresses, tuple(objects))
    weakref.finalize(code, free).atexit = False
    return code


def _linked(
    objects: Sequence[ElfObject], names: Collection[str], external: Mapping[str, int]
) -> tuple[Mapping[str, int], Callable[[], object]]:
    """The addresses of `names`, and what unloads the code: our own linker on x86-64, LLVM's elsewhere."""
    if os.uname().machine == "x86_64":
        from .link import free, link

        code = link(objects, external)
        return code.addresses, functools.partial(free, code.address, code.size)
    from .jit_link import jit_link

    return jit_link([o.data for o in objects], names, external)


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
    found = {n: imports.get(n) or _address(n) for n in names}
    missing = sorted(name for name, address in found.items() if not address)
    if missing:
        raise CodegenError(
            f"the code needs symbols that this process does not have: {', '.join(missing)}",
            remedy="emit a function of libm or an inline expansion instead",
        )
    return {name: address for name, address in found.items() if address}


def _address(name: str) -> int | None:
    """The address of a symbol of a library or of this process; None if there is none."""
    found = library_address(name)
    for library in () if found else _libraries():
        try:
            return ctypes.cast(library[name], ctypes.c_void_p).value
        except (AttributeError, ValueError):  # a name with a zero byte is no symbol
            continue
    return found


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    found = []
    for name in LIBRARIES.get(sys.platform, (None,)):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue  # symbols that only this library defines are then reported by name
    return tuple(found)
