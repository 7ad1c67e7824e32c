"""The symbol table of a 64-bit little-endian ELF object: the global symbols that it defines and those that it needs."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .llvm import CodegenError

SHT_SYMTAB = 2
STB_LOCAL = 0
SHN_UNDEF = 0


@dataclass(frozen=True, slots=True)
class ObjectSymbols:
    defined: frozenset[str]
    undefined: frozenset[str]


def object_symbols(data: bytes) -> ObjectSymbols:
    """Read the symbol table. Raises CodegenError for any other format."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise CodegenError(
            "not a 64-bit little-endian ELF object",
            remedy="the host back end runs on Linux (x86-64, AArch64, RISC-V 64, ppc64le)",
        )
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError) as error:
        raise CodegenError(f"damaged ELF object: {error}") from error


def _read(data: bytes) -> ObjectSymbols:
    (section_table,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count = struct.unpack_from("<HH", data, 0x3A)
    defined, undefined = set[str](), set[str]()
    for i in range(count):
        _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", data, section_table + i * entry_size)
        if kind != SHT_SYMTAB:
            continue
        (names,) = struct.unpack_from("<Q", data, section_table + link * entry_size + 24)
        for name, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", data[offset : offset + size]):
            if name and info >> 4 != STB_LOCAL:
                text = data[names + name : data.index(b"\0", names + name)].decode()
                (undefined if section == SHN_UNDEF else defined).add(text)
    return ObjectSymbols(frozenset(defined), frozenset(undefined))
