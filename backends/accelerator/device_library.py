"""Functions of C's library in kernels of a device whose compiler has none: from the library of its maker.

NVIDIA's is libdevice, LLVM bitcode that comes with CUDA's toolkit and with its wheels; XLA:GPU links it as well.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm

from ...codegen.errors import CodegenError
from ...codegen.llvm import parse_bitcode
from .targets import DeviceTarget

FILE = "nvvm/libdevice/libdevice.10.bc"
PREFIX = "__nv_"
"""libdevice has C's functions under their names with this before them."""

_DECLARED = re.compile(r'^declare [^@\n]*@"?([a-z]\w*)"?\(', re.MULTILINE)


def functions_of_c(text: str) -> list[str]:
    """The functions that a module declares, other than LLVM's."""
    return sorted(set(_DECLARED.findall(text)))


def candidates() -> Iterator[Path]:
    """Where libdevice may be: the toolkit whose compiler is on PATH, CUDA's wheels, the toolkit's usual place."""
    if compiler := shutil.which("nvcc"):
        yield Path(compiler).resolve().parent.parent / FILE
    for folder in sys.path:
        yield from sorted(Path(folder, "nvidia").glob(f"*/{FILE}"), reverse=True)
    yield Path("/usr/local/cuda", FILE)


@functools.cache
def libdevice() -> Path | None:
    """The file, if there is one."""
    return next((file for file in candidates() if file.is_file()), None)


def library_key(text: str, target: DeviceTarget) -> str:
    """What the code of a module depends on beyond its text: the library that it is linked with. A part of its key."""
    return _digest(libdevice()) if target.library and functions_of_c(text) else ""


@functools.cache
def _digest(file: Path | None) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file is not None else ""


def link_library(module: llvm.ModuleRef, context: llvm.ContextRef, called: list[str], target: DeviceTarget) -> None:
    """Give a module the library's functions in place of C's. Raises CodegenError where there is none."""
    what = f"the kernel calls {', '.join(called)} of C, which {target.target.cpu} does not have"
    file = libdevice() if target.library else None
    if file is None:
        remedy = "run ./testbed setup --gpu, or install CUDA's toolkit, for libdevice"
        raise CodegenError(what, remedy=remedy if target.library else "use the host for this kernel")
    library = parse_bitcode(file.read_bytes(), context)
    library.triple, library.data_layout = module.triple, module.data_layout
    missing = {PREFIX + name for name in called} - {f.name for f in library.functions if not f.is_declaration}
    if missing:
        raise CodegenError(f"{what}, nor has {file}", remedy="use the host for this kernel")
    module.link_in(library)
    for function in module.functions:
        if function.name.startswith(PREFIX) and not function.is_declaration:
            function.linkage = llvm.Linkage.internal


def with_names_of_library(text: str, called: list[str]) -> str:
    """The module that calls the library's functions."""
    if not called:
        return text
    names = "|".join(map(re.escape, called))
    return re.sub(rf'@(?:"({names})"|({names}))(?=\()', lambda f: f"@{PREFIX}{f.group(1) or f.group(2)}", text)
