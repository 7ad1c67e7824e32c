"""64-bit little-endian ELF objects: the symbols that they define and need, their sections and relocations."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ..hlo.records import dataclass
from .errors import CodegenError

SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 2, 4, 8, 9
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
STB_LOCAL, STT_TLS, STT_IFUNC = 0, 6, 10
SHN_UNDEF, SHN_FIRST_RESERVED, SHN_ABS = 0, 0xFF00, 0xFFF1

SECTION, SYMBOL, RELOCATION = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), struct.Struct("<QIIq")
"""The rows of the tables, which are read without NumPy: a program that is loaded may not need it."""


class SectionRow(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class SymbolRow(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class ObjectSymbols:
    defined: frozenset[str]
    undefined: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class ElfObject:
    """names: those of the symbols that are not local, by number. relocations: number of the section that they change →
    its table.
    """

    data: bytes
    machine: int
    sections: list[SectionRow]
    symbols: list[SymbolRow]
    names: dict[int, str]
    relocations: dict[int, list[Relocation]]

    @property
    def global_symbols(self) -> ObjectSymbols:
        undefined = {name for n, name in self.names.items() if self.symbols[n].section == SHN_UNDEF}
        return ObjectSymbols(frozenset(self.names.values()) - undefined, frozenset(undefined))

    def relocations_of(self, section: int) -> list[Relocation]:
        return self.relocations.get(section, [])

    def needed_by(self, kinds: Collection[int]) -> set[int]:
        """The numbers of the symbols that relocations of these kinds name."""
        return {row.symbol for table in self.relocations.values() for row in table if row.type in kinds}


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
    if entry_size != SECTION.size:
        raise ValueError(f"entries of {entry_size} bytes in its table of sections")
    sections = [SectionRow._make(row) for row in _rows(data, SECTION, place, count)]
    symbols, names, relocations = list[SymbolRow](), dict[int, str](), dict[int, list[Relocation]]()
    for section in sections:
        if section.type == SHT_SYMTAB:
            rows = _rows(data, SYMBOL, section.offset, section.size // SYMBOL.size)
            symbols = [SymbolRow._make(row) for row in rows]
            names = _names(data, symbols, sections[section.link].offset)
        elif section.type == SHT_RELA:
            rows = _rows(data, RELOCATION, section.offset, section.size // RELOCATION.size)
            relocations[section.info] = [Relocation._make(row) for row in rows]
        elif section.type == SHT_REL:
            raise ValueError("relocations without addends")
    return ElfObject(data, machine, sections, symbols, names, relocations)


def _rows(data: bytes, row: struct.Struct, offset: int, count: int) -> Iterator[tuple[int, ...]]:
    end = offset + count * row.size
    if count and end > len(data):
        raise ValueError(f"a table from {offset} to {end} of {len(data)} bytes")
    return row.iter_unpack(data[offset:end] if count else b"")


def _names(data: bytes, symbols: list[SymbolRow], strings: int) -> dict[int, str]:
    names = {}
    for number, symbol in enumerate(symbols):
        if symbol.name and symbol.info >> 4 != STB_LOCAL:
            start = strings + symbol.name
            names[number] = data[start : data.index(b"\0", start)].decode()
    return names
