"""Links ELF objects for x86-64 into the memory of this process. Running code needs neither a linker nor LLVM.

It knows what LLVM makes of our modules (position-independent, small code model) and refuses all else. The image is one
block: code and stubs (readable, executable); constants and a table of addresses (readable); data (writable). A stub is
a jump to a function that may be further away than 2 GB. Unwind tables stay behind: no exception passes our code.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from collections.abc import Collection, Mapping, Sequence

from ..hlo.records import dataclass
from . import elf
from .elf import ElfObject
from .errors import CodegenError

EM_X86_64 = 62
SHT_PROGBITS, SHT_NOTE, SHT_UNWIND = 1, 7, 0x70000001

ABSOLUTE, RELATIVE, CALL, RELATIVE_WIDE = 1, 2, 4, 24
"""R_X86_64_64, PC32, PLT32, PC64."""
THROUGH_TABLE = (9, 41, 42)
"""R_X86_64_GOTPCREL, GOTPCRELX, REX_GOTPCRELX."""
WIDTHS = {ABSOLUTE: 8, RELATIVE: 4, CALL: 4, RELATIVE_WIDE: 8} | dict.fromkeys(THROUGH_TABLE, 4)
"""The relocations that are known → the bytes that they change."""

CODE, CONSTANTS, DATA = range(3)
"""The segments of an image, in their order."""
PROTECTION = {
    CODE: mmap.PROT_READ | mmap.PROT_EXEC,
    CONSTANTS: mmap.PROT_READ,
    DATA: mmap.PROT_READ | mmap.PROT_WRITE,
}

STUB = b"\xff\x25\0\0\0\0\x0f\x0b"
"""jmp [rip + …]; ud2"""
WORD = 8
MOST_BYTES = 1 << 31
NOWHERE = -1
LOADED = {SHT_PROGBITS, elf.SHT_NOBITS, SHT_NOTE}
"""Types of sections that may be in an image."""


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """Code in memory. addresses: of the global symbols. `address` and `size`, of the block, are what `free` takes."""

    addresses: Mapping[str, int]
    address: int
    size: int


def free(address: int, size: int) -> None:
    """Give the memory of linked code back: nothing may run or read it any more."""
    _libc().munmap(address, size)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """An object in the image. Offsets in the image, or NOWHERE: of each section; of the stub of each symbol, and of its
    address in the table. values: the address of each symbol.
    """

    elf: ElfObject
    sections: list[int]
    stubs: list[int]
    slots: list[int]
    values: list[int]

    @property
    def loaded(self) -> list[int]:
        """The numbers of the sections that are in the image."""
        return [number for number, place in enumerate(self.sections) if place != NOWHERE]


def link(objects: Sequence[ElfObject], external: Mapping[str, int]) -> Linked:
    """external: the address of each symbol that no object defines. No symbol is defined twice.

    Raises CodegenError for another machine, and a section, a symbol or a relocation of a kind that it does not know.
    """
    try:
        parts = [_part(o) for o in objects]
        ends = _place(parts)
    except (IndexError, ValueError, OverflowError) as error:
        raise CodegenError(f"damaged ELF object: {error}") from error
    size = max(ends[-1], mmap.PAGESIZE)  # of no objects, too
    address = _mapped(size)
    try:
        defined = _defined(parts, address)
        known = {**external, **defined}
        memory = memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")  # of zeros
        for part in parts:
            _fill(part, memory)
            _connect(part, memory, known)
            for section in part.loaded:
                _relocate(part, section, memory, address)
        _protect(address, ends)
    except (IndexError, ValueError, OverflowError) as error:
        free(address, size)
        raise CodegenError(f"damaged ELF object: {error}") from error
    except BaseException:
        free(address, size)
        raise
    return Linked(defined, address, size)


# -- places ------------------------------------------------------------------------------------------------------------
def _part(o: ElfObject) -> _Part:
    """The object, without places. Raises CodegenError for what is not known."""
    if o.machine != EM_X86_64:
        raise CodegenError(f"an object for ELF's machine {o.machine}, not for x86-64 ({EM_X86_64})")
    places = [0 if row.flags & elf.SHF_ALLOC and row.type != SHT_UNWIND else NOWHERE for row in o.sections]
    both = elf.SHF_WRITE | elf.SHF_EXECINSTR
    for section, row in enumerate(o.sections):
        if places[section] == NOWHERE:
            continue
        if row.flags & both == both:
            raise _unknown("a section of code that can be written")
        if row.type not in LOADED or row.flags & elf.SHF_TLS:
            raise _unknown("a section that is neither code nor plain data")
        strange = {relocation.type for relocation in o.relocations_of(section)} - set(WIDTHS)
        if strange:
            raise _unknown(f"relocations of type {', '.join(map(str, sorted(strange)))}")
    for symbol in o.symbols:
        special = symbol.section >= elf.SHN_FIRST_RESERVED and symbol.section != elf.SHN_ABS
        if special or symbol.info & 15 in (elf.STT_TLS, elf.STT_IFUNC):
            raise _unknown("a symbol that is common, thread-local, or chosen at run time")
    nowhere = [NOWHERE] * len(o.symbols)
    return _Part(o, places, nowhere, nowhere.copy(), nowhere.copy())


def _unknown(what: str) -> CodegenError:
    return CodegenError(f"the linker does not know {what}", remedy="codegen/link.py says what it knows")


def _place(parts: Sequence[_Part]) -> list[int]:
    """Give sections, stubs and the table their places. Returns where the segments end."""
    inside = {name for part in parts for name in part.elf.global_symbols.defined}
    distant = [_distant(part.elf, inside) for part in parts]
    place, ends = 0, []
    for segment in PROTECTION:
        for part in parts:
            for section in part.loaded:
                row = part.elf.sections[section]
                if _segment(row.flags) == segment:
                    part.sections[section] = place = _round(place, max(1, row.align))
                    place += row.size
        for part, far in zip(parts, distant, strict=True):
            if segment == CODE:
                place = _spread(part.stubs, far, place, len(STUB))
            elif segment == CONSTANTS:
                place = _spread(part.slots, far | part.elf.needed_by(THROUGH_TABLE), place, WORD)
        place = _round(place, mmap.PAGESIZE)
        ends.append(place)
    if place > MOST_BYTES:
        raise CodegenError(f"{place} bytes of code: the small code model has 2 GB")
    return ends


def _distant(o: ElfObject, inside: Collection[str]) -> set[int]:
    """The numbers of the symbols that are called and that no object of the image defines."""
    called = o.needed_by((CALL,))
    return {n for n in called if o.symbols[n].section == elf.SHN_UNDEF and o.names.get(n) not in inside}


def _segment(flags: int) -> int:
    return CODE if flags & elf.SHF_EXECINSTR else DATA if flags & elf.SHF_WRITE else CONSTANTS


def _round(place: int, align: int) -> int:
    if align & (align - 1) or align > mmap.PAGESIZE:
        raise _unknown(f"an alignment of {align} bytes")
    return place + -place % align


def _spread(places: list[int], symbols: set[int], place: int, size: int) -> int:
    """Give each symbol `size` bytes from `place` on. Returns the end."""
    place = _round(place, WORD)
    for symbol in sorted(symbols):
        places[symbol] = place
        place += size
    return place


# -- contents ----------------------------------------------------------------------------------------------------------
def _defined(parts: Sequence[_Part], address: int) -> dict[str, int]:
    """The addresses of the global symbols of all parts."""
    for part in parts:
        for number, symbol in enumerate(part.elf.symbols):
            part.values[number] = _value(part, symbol, address)
    return {
        name: part.values[number]
        for part in parts
        for number, name in part.elf.names.items()
        if part.elf.symbols[number].section != elf.SHN_UNDEF
    }


def _value(part: _Part, symbol: elf.SymbolRow, address: int) -> int:
    """The address of a symbol, or NOWHERE; the value itself of one that is in no section."""
    if symbol.section == elf.SHN_UNDEF or symbol.section >= elf.SHN_FIRST_RESERVED:
        return symbol.value
    if symbol.value > part.elf.sections[symbol.section].size:
        raise ValueError("a symbol outside its section")
    place = part.sections[symbol.section]
    return NOWHERE if place == NOWHERE else address + place + symbol.value


def _fill(part: _Part, memory: memoryview) -> None:
    """Copy the sections."""
    for section in part.loaded:
        row, place = part.elf.sections[section], part.sections[section]
        if row.type != elf.SHT_NOBITS:
            memory[place : place + row.size] = part.elf.data[row.offset : row.offset + row.size]


def _connect(part: _Part, memory: memoryview, known: Mapping[str, int]) -> None:
    """Give symbols of elsewhere their values, and fill stubs and table."""
    for number, name in part.elf.names.items():
        if part.elf.symbols[number].section == elf.SHN_UNDEF and name in known:
            part.values[number] = known[name]
    for number, (stub, slot) in enumerate(zip(part.stubs, part.slots, strict=True)):
        if slot != NOWHERE:
            memory[slot : slot + WORD] = part.values[number].to_bytes(WORD, "little", signed=part.values[number] < 0)
        if stub != NOWHERE:
            code = STUB[:2] + (slot - stub - 6).to_bytes(4, "little", signed=True) + STUB[6:]
            memory[stub : stub + len(STUB)] = code


def _relocate(part: _Part, section: int, memory: memoryview, address: int) -> None:
    """Apply the relocations of a section."""
    begin, size = part.sections[section], part.elf.sections[section].size
    for offset, kind, symbol, addend in part.elf.relocations_of(section):
        target, width, place = part.values[symbol], WIDTHS[kind], begin + offset
        if target == NOWHERE:
            raise ValueError("a relocation against a symbol that is nowhere")
        if offset > size - width:
            raise ValueError("a relocation outside its section")
        if kind == CALL and part.stubs[symbol] != NOWHERE:
            target = address + part.stubs[symbol]
        elif kind in THROUGH_TABLE:
            target = address + part.slots[symbol]
        value = target + addend - (0 if kind == ABSOLUTE else address + place)
        if width == 4 and not -(1 << 31) <= value < 1 << 31:
            raise CodegenError("the code needs a symbol that is further away than 2 GB")
        memory[place : place + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


# -- memory ------------------------------------------------------------------------------------------------------------
def _mapped(size: int) -> int:
    """The address of new memory that can be written."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    found = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if found in (None, ctypes.c_void_p(-1).value):
        raise CodegenError(f"no memory for {size} bytes of code: {os.strerror(ctypes.get_errno())}")
    return int(found)


def _protect(address: int, ends: Sequence[int]) -> None:
    begin = 0
    for segment, end in enumerate(ends):
        if end > begin and _libc().mprotect(address + begin, end - begin, PROTECTION[segment]):
            raise CodegenError(f"memory cannot hold code: {os.strerror(ctypes.get_errno())}")
        begin = end


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    word, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = [pointer, word, number, number, number, ctypes.c_long]
    libc.mprotect.argtypes = [pointer, word, number]
    libc.munmap.argtypes = [pointer, word]
    return libc
