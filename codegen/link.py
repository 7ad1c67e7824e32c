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
from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """Code in memory. addresses: of the global symbols. `address` and `size`, of the block, are what `free` takes."""

    addresses: Mapping[str, int]
    address: int
    size: int


def free(address: int, size: int) -> None:
    """Give the memory of linked code back: nothing may run or read it any more."""
    _libc().munmap(address, size)


@dataclass(slots=True, eq=False)
class _Part:
    """An object in the image. Offsets in the image, or NOWHERE: of each section; of the stub of each symbol, and of its
    address in the table. values: the address of each symbol.
    """

    elf: ElfObject
    sections: np.ndarray
    stubs: np.ndarray
    slots: np.ndarray
    values: np.ndarray

    @property
    def loaded(self) -> list[int]:
        """The numbers of the sections that are in the image."""
        return np.flatnonzero(self.sections != NOWHERE).tolist()


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
        memory = np.zeros(size, np.uint8)
        for part in parts:
            _fill(part, memory)
            _connect(part, memory, known)
            for section in part.loaded:
                _relocate(part, section, memory, address)
        ctypes.memmove(address, memory.ctypes.data, size)
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
    kinds, flags = o.sections["type"], o.sections["flags"]
    loaded = (flags & elf.SHF_ALLOC != 0) & (kinds != SHT_UNWIND)
    both = elf.SHF_WRITE | elf.SHF_EXECINSTR
    if (loaded & (flags & both == both)).any():
        raise _unknown("a section of code that can be written")
    if (loaded & (~elf.is_any(kinds, (SHT_PROGBITS, elf.SHT_NOBITS, SHT_NOTE)) | (flags & elf.SHF_TLS != 0))).any():
        raise _unknown("a section that is neither code nor plain data")
    for section in np.flatnonzero(loaded).tolist():
        strange = set(o.relocations_of(section)["type"].tolist()) - set(WIDTHS)
        if strange:
            raise _unknown(f"relocations of type {', '.join(map(str, sorted(strange)))}")
    places, symbols = o.symbols["section"], o.symbols["info"] & 15
    special = (places >= elf.SHN_FIRST_RESERVED) & (places != elf.SHN_ABS)
    if (special | (symbols == elf.STT_TLS) | (symbols == elf.STT_IFUNC)).any():
        raise _unknown("a symbol that is common, thread-local, or chosen at run time")
    nowhere = np.full(len(o.symbols), NOWHERE, np.int64)
    return _Part(o, np.where(loaded, 0, NOWHERE), nowhere, nowhere.copy(), nowhere.copy())


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
                if _segment(int(row["flags"])) == segment:
                    part.sections[section] = place = _round(place, max(1, int(row["align"])))
                    place += int(row["size"])
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
    places = o.symbols["section"]
    return {n for n in o.needed_by((CALL,)) if places[n] == elf.SHN_UNDEF and o.names.get(n) not in inside}


def _segment(flags: int) -> int:
    return CODE if flags & elf.SHF_EXECINSTR else DATA if flags & elf.SHF_WRITE else CONSTANTS


def _round(place: int, align: int) -> int:
    if align & (align - 1) or align > mmap.PAGESIZE:
        raise _unknown(f"an alignment of {align} bytes")
    return place + -place % align


def _spread(places: np.ndarray, symbols: set[int], place: int, size: int) -> int:
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
        sections = part.elf.symbols["section"].astype(np.int64)
        plain = (sections != elf.SHN_UNDEF) & (sections < elf.SHN_FIRST_RESERVED)
        sections = np.where(plain, sections, 0)
        places, values = part.sections[sections], part.elf.symbols["value"].astype(np.int64)
        if (plain & ((values < 0) | (values > part.elf.sections["size"][sections].astype(np.int64)))).any():
            raise ValueError("a symbol outside its section")
        part.values[:] = np.where(plain & (places == NOWHERE), NOWHERE, np.where(plain, address + places, 0) + values)
    return {
        name: int(part.values[number])
        for part in parts
        for number, name in part.elf.names.items()
        if part.elf.symbols["section"][number] != elf.SHN_UNDEF
    }


def _fill(part: _Part, memory: np.ndarray) -> None:
    """Copy the sections."""
    for section in part.loaded:
        row = part.elf.sections[section]
        if row["type"] != elf.SHT_NOBITS:
            place, size = int(part.sections[section]), int(row["size"])
            memory[place : place + size] = np.frombuffer(part.elf.data, np.uint8, size, int(row["offset"]))


def _connect(part: _Part, memory: np.ndarray, known: Mapping[str, int]) -> None:
    """Give symbols of elsewhere their values, and fill stubs and table."""
    for number, name in part.elf.names.items():
        if part.elf.symbols["section"][number] == elf.SHN_UNDEF and name in known:
            part.values[number] = known[name]
    for number in np.flatnonzero(part.slots != NOWHERE).tolist():
        slot = int(part.slots[number])
        memory[slot : slot + WORD] = part.values[number : number + 1].view(np.uint8)
    for number in np.flatnonzero(part.stubs != NOWHERE).tolist():
        stub, slot = int(part.stubs[number]), int(part.slots[number])
        code = STUB[:2] + (slot - stub - 6).to_bytes(4, "little", signed=True) + STUB[6:]
        memory[stub : stub + len(STUB)] = np.frombuffer(code, np.uint8)


def _relocate(part: _Part, section: int, memory: np.ndarray, address: int) -> None:
    """Apply the relocations of a section."""
    table = part.elf.relocations_of(section)
    begin, size = int(part.sections[section]), int(part.elf.sections["size"][section])
    for kind in sorted(set(table["type"].tolist())):
        rows = table[table["type"] == kind]
        offsets, symbols, width = rows["offset"].astype(np.int64), rows["symbol"], WIDTHS[kind]
        targets = part.values[symbols]
        if kind == CALL:
            targets = np.where(part.stubs[symbols] == NOWHERE, targets, address + part.stubs[symbols])
        elif kind in THROUGH_TABLE:
            targets = address + part.slots[symbols]
        if (part.values[symbols] == NOWHERE).any():
            raise ValueError("a relocation against a symbol that is nowhere")
        if offsets.min() < 0 or offsets.max() > size - width:
            raise ValueError("a relocation outside its section")
        values = targets + rows["addend"] - (0 if kind == ABSOLUTE else address + begin + offsets)
        if width == 4 and (values != values.astype(np.int32)).any():
            raise CodegenError("the code needs a symbol that is further away than 2 GB")
        places = begin + offsets[:, None] + np.arange(width)
        memory[places] = values.astype(f"<i{width}").view(np.uint8).reshape(-1, width)


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
