"""64-bit little-endian ELF objects: the symbols that they define and need, their sections and relocations."""

from __future__ import annotations

import functools
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from .errors import CodegenError

SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 2, 4, 8, 9
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
STB_LOCAL, STT_TLS, STT_IFUNC = 0, 6, 10
SHN_UNDEF, SHN_FIRST_RESERVED, SHN_ABS = 0, 0xFF00, 0xFFF1

SECTION = np.dtype(
    {
        "names": ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry"),
        "formats": ("<u4", "<u4", "<u8", "<u8", "<u8", "<u8", "<u4", "<u4", "<u8", "<u8"),
    }
)
SYMBOL = np.dtype(
    {
        "names": ("name", "info", "other", "section", "value", "size"),
        "formats": ("<u4", "u1", "u1", "<u2", "<u8", "<u8"),
    }
)
RELOCATION = np.dtype({"names": ("offset", "type", "symbol", "addend"), "formats": ("<u8", "<u4", "<u4", "<i8")})
_NO_RELOCATIONS = np.empty(0, RELOCATION)


@dataclass(frozen=True, slots=True)
class ObjectSymbols:
    defined: frozenset[str]
    undefined: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class ElfObject:
    """sections, symbols: the tables (SECTION, SYMBOL). names: those of the symbols that are not local, by number.

    relocations: number of the section that they change → its table (RELOCATION).
    """

    data: bytes
    machine: int
    sections: np.ndarray
    symbols: np.ndarray
    names: dict[int, str]
    relocations: dict[int, np.ndarray]

    @property
    def global_symbols(self) -> ObjectSymbols:
        places = self.symbols["section"]
        undefined = {name for n, name in self.names.items() if places[n] == SHN_UNDEF}
        return ObjectSymbols(frozenset(self.names.values()) - undefined, frozenset(undefined))

    def relocations_of(self, section: int) -> np.ndarray:
        return self.relocations.get(section, _NO_RELOCATIONS)

    def needed_by(self, kinds: Collection[int]) -> set[int]:
        """The numbers of the symbols that relocations of these kinds name."""
        tables = self.relocations.values()
        return {n for table in tables for n in table["symbol"][is_any(table["type"], kinds)].tolist()}


def is_any(values: np.ndarray, wanted: Iterable[int]) -> np.ndarray:
    """Where `values` are one of the wanted: np.isin for a few, without numpy.ma, whose import it costs."""
    return functools.reduce(np.logical_or, [values == one for one in wanted])


def object_symbols(data: bytes) -> ObjectSymbols:
    """The global symbols. Raises CodegenError for any other format."""
    return read_object(data).global_symbols


def read_object(data: bytes) -> ElfObject:
    """Raises CodegenError for any other format, and for damage."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise CodegenError(
            "not a 64-bit little-endian ELF object",
            remedy="the host back end runs on Linux (x86-64, AArch64, RISC-V 64, ppc64le)",
        )
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise CodegenError(f"damaged ELF object: {error}") from error


def _read(data: bytes) -> ElfObject:
    (machine,) = struct.unpack_from("<H", data, 0x12)
    (place,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count = struct.unpack_from("<HH", data, 0x3A)
    if entry_size != SECTION.itemsize:
        raise ValueError(f"entries of {entry_size} bytes in its table of sections")
    sections = _array(data, SECTION, place, count)
    symbols, names, relocations = np.empty(0, SYMBOL), dict[int, str](), dict[int, np.ndarray]()
    for section in sections:
        kind, offset, size = (int(section[name]) for name in ("type", "offset", "size"))
        if kind == SHT_SYMTAB:
            symbols = _array(data, SYMBOL, offset, size // SYMBOL.itemsize)
            strings = int(sections[int(section["link"])]["offset"])
            names = _names(data, symbols, strings)
        elif kind == SHT_RELA:
            relocations[int(section["info"])] = _array(data, RELOCATION, offset, size // RELOCATION.itemsize)
        elif kind == SHT_REL:
            raise ValueError("relocations without addends")
    return ElfObject(data, machine, sections, symbols, names, relocations)


def _array(data: bytes, kind: np.dtype, offset: int, count: int) -> np.ndarray:
    if count == 0:
        return np.empty(0, kind)
    if offset > len(data):
        raise ValueError(f"a table at {offset} of {len(data)} bytes")
    return np.frombuffer(data, kind, count, offset)


def _names(data: bytes, symbols: np.ndarray, strings: int) -> dict[int, str]:
    names = {}
    for number in np.flatnonzero((symbols["name"] != 0) & (symbols["info"] >> 4 != STB_LOCAL)).tolist():
        start = strings + int(symbols["name"][number])
        names[number] = data[start : data.index(b"\0", start)].decode()
    return names
