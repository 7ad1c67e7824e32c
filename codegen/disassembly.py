"""Machine code of an object → its instructions, by the disassembler of libLLVM, which comes with the MLIR wheels.

`assembly` is for readers; `lacks` says what code needs that a machine does not have, where no metadata says it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..hlo.records import dataclass
from .elf import SHF_EXECINSTR, SHN_UNDEF, ElfObject, read_object
from .errors import CodegenError
from .options import Target

MACHINES = {62: ("x86_64", "X86"), 183: ("aarch64", "AArch64"), 243: ("riscv64", "RISCV"), 21: ("ppc64le", "PowerPC")}
"""Number of a machine in an ELF object → its architecture in a triple, and its name in LLVM."""

PARTS = ("TargetInfo", "TargetMC", "Disassembler")
"""What of a target libLLVM has to start."""

LONGEST = 512
"""Bytes of the text of an instruction."""

_PREFIXES = frozenset({0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3, *range(0x40, 0x50)})
_EVEX, _VEX = 0x62, frozenset({0xC4, 0xC5})


@dataclass(frozen=True, slots=True)
class Code:
    """One instruction. at: its place in its section; text: in AT&T's syntax, '' if the bytes are none."""

    section: int
    at: int
    data: bytes
    text: str


def disassembled(read: ElfObject) -> Iterator[Code]:
    """The instructions of an object, section by section. Raises CodegenError for a machine that LLVM does not know."""
    with_bits = _Disassembler(_architecture(read.machine))
    for number, section in enumerate(read.sections):
        if section.flags & SHF_EXECINSTR:
            data = read.data[section.offset : section.offset + section.size]
            for at, size, text in with_bits.instructions(data):
                yield Code(number, at, data[at : at + size], text)


def assembly(data: bytes) -> str:
    """The code of an object as text: labels, instructions, and the symbols that they refer to behind them.

    Raises CodegenError for what is no ELF object, or of a machine that LLVM does not know.
    """
    read = read_object(data)
    labels = {(s.section, s.value): read.names[n] for n, s in enumerate(read.symbols)
              if n in read.names and s.section != SHN_UNDEF}  # fmt: skip
    lines = []
    for code in disassembled(read):
        if (name := labels.get((code.section, code.at))) is not None:
            lines.append(f"{name}:")
        places = range(code.at, code.at + len(code.data))
        rows = [row for row in read.relocations_of(code.section) if row.offset in places]
        note = ", ".join(_named(read, row.symbol, row.addend) for row in rows)
        lines.append(f"{code.at:6x}:\t{code.text or '(no instruction)'}{f'  # {note}' if note else ''}")
    return "\n".join([*lines, ""])


def lacks(data: bytes, target: Target | None = None) -> str:
    """Why a machine (this one) cannot run the code of an object; '' if it can, as far as encodings show.

    An object does not say what it was compiled for, so its instructions are looked at: their architecture, and on
    x86-64 the encodings of AVX and AVX-512. Raises CodegenError for a damaged object.
    """
    read, target = read_object(data), target or Target.machine()
    architecture = _architecture(read.machine)
    if architecture != target.architecture:
        return f"it is for {architecture}, and this is {target.architecture}"
    needed: set[str] = set()
    for code in disassembled(read):
        if not code.text:
            return f"the bytes at {code.at:#x} of its code are no instruction"
        if architecture == "x86_64":
            needed |= _features(code)
    missing = sorted(needed - {f[1:] for f in target.features.split(",") if f.startswith("+")})
    return f"it has instructions of {', '.join(missing)}, which this machine lacks" if missing else ""


def _features(code: Code) -> frozenset[str]:
    """The features of x86 that an encoding and a mnemonic show."""
    opcode = next((byte for byte in code.data if byte not in _PREFIXES), 0)
    mnemonic = code.text.split(None, 1)[0]
    named = {feature for begins, feature in BY_MNEMONIC if mnemonic.startswith(begins)}
    if opcode == _EVEX:
        lanes = () if "%zmm" in code.text else ("avx512vl",)
        half = ("avx512fp16",) if mnemonic.endswith(("ph", "sh")) and mnemonic != "vcvtps2ph" else ()
        return frozenset({"avx512f", *lanes, *half, *(named - {"avx2", "fma", "f16c"})})
    if opcode in _VEX and mnemonic.startswith("k"):
        return frozenset({"avx512f"})
    if opcode in _VEX and mnemonic.startswith("v"):
        wide = mnemonic.startswith("vp") and not mnemonic.startswith(_OF_AVX) and "%ymm" in code.text
        return frozenset({"avx", *(["avx2"] if wide else []), *named})
    return frozenset(named)


_OF_AVX = ("vperm2f128", "vpermil", "vptest")
"""Instructions on packed values in 256 bits that AVX has already."""

BY_MNEMONIC = (
    (("vfmadd", "vfmsub", "vfnmadd", "vfnmsub"), "fma"),
    (("vcvtph2ps", "vcvtps2ph"), "f16c"),
    (("vpbroadcast", "vpgather", "vgather", "vpsllv", "vpsrlv", "vpsrav", "vinserti128", "vextracti128"), "avx2"),
    (("andn", "bextr", "blsi", "blsr", "blsmsk", "tzcnt"), "bmi"),
    (("bzhi", "mulx", "pdep", "pext", "rorx", "sarx", "shlx", "shrx"), "bmi2"),
    (("popcnt",), "popcnt"),
    (("lzcnt",), "lzcnt"),
    (("movbe",), "movbe"),
    (("vpermb", "vpermi2b", "vpermt2b"), "avx512vbmi"),
    (("vpcompressb", "vpcompressw", "vpexpandb", "vpexpandw", "vpshld", "vpshrd"), "avx512vbmi2"),
    (("vpmadd52",), "avx512ifma"),
    (("vdpbf16", "vcvtne"), "avx512bf16"),
    (("vpopcntb", "vpopcntw"), "avx512bitalg"),
    (("vpopcntd", "vpopcntq"), "avx512vpopcntdq"),
    (("tdp", "tileload", "tilestore", "tilezero"), "amx-tile"),
)
"""How mnemonics begin → the feature of x86 that has them."""


def _named(read: ElfObject, symbol: int, addend: int) -> str:
    section = read.symbols[symbol].section
    name = read.names.get(symbol) or f"section {section}"
    return f"{name}{addend:+d}" if addend else name


def _architecture(machine: int) -> str:
    if machine not in MACHINES:
        raise CodegenError(f"an object of a machine with the number {machine}", remedy="take one of x86-64 or AArch64")
    return MACHINES[machine][0]


# -- libLLVM by its C interface ----------------------------------------------------------------------------------------
@functools.cache
def _library() -> Any:
    """libLLVM, as llvm-c/Disassembler.h declares it. Raises CodegenError if it is absent."""
    spec = find_spec("llvm")
    places = [Path(folder) / "lib" / "libLLVM.so" for folder in (spec.submodule_search_locations or ())] if spec else []
    try:
        library = ctypes.CDLL(str(next(path for path in places if path.is_file())))
    except (StopIteration, OSError) as error:
        why = str(error) or "it is in no folder of the package llvm"
        raise CodegenError(f"no libLLVM.so: {why}", remedy="run ./testbed setup") from None
    library.LLVMCreateDisasm.restype = ctypes.c_void_p
    library.LLVMCreateDisasm.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 2]
    library.LLVMDisasmInstruction.restype = ctypes.c_size_t
    library.LLVMDisasmInstruction.argtypes = [
        *[ctypes.c_void_p] * 2, *[ctypes.c_uint64] * 2, ctypes.c_char_p, ctypes.c_size_t
    ]  # fmt: skip
    library.LLVMDisasmDispose.argtypes = [ctypes.c_void_p]
    return library


class _Disassembler:
    """Disassembles code of an architecture."""

    def __init__(self, architecture: str):
        self._library = _library()
        name = dict(MACHINES.values())[architecture]
        for part in PARTS:
            getattr(self._library, f"LLVMInitialize{name}{part}")()
        self._made = self._library.LLVMCreateDisasm(f"{architecture}-unknown-linux-gnu".encode(), None, 0, None, None)
        if not self._made:
            raise CodegenError(f"libLLVM disassembles no code of {architecture}", remedy="run ./testbed setup")
        self._step = 1 if architecture == "x86_64" else 4

    def instructions(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """(place, size, text) of each instruction; text '' for bytes that are none."""
        code = (ctypes.c_uint8 * max(len(data), 1)).from_buffer_copy(data or b"\0")
        text, at = ctypes.create_string_buffer(LONGEST), 0
        while at < len(data):
            left = len(data) - at
            size = self._library.LLVMDisasmInstruction(self._made, ctypes.addressof(code) + at, left, at, text, LONGEST)
            yield at, size or min(self._step, left), text.value.decode() if size else ""
            at += size or min(self._step, left)

    def __del__(self) -> None:
        if getattr(self, "_made", None):
            self._library.LLVMDisasmDispose(self._made)
