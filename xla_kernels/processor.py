"""Whether code of XLA's can run on this machine: no instruction that its processor lacks may end the process."""

from __future__ import annotations

import re

from ..codegen.disassembly import lacks
from ..codegen.errors import CodegenError
from ..codegen.options import Target

ELSEWHERE = "make the dump on this machine, or take XLA's LLVM IR: xla-new-ir, xla-old-ir"
NOT_PORTABLE = "make the dump on this machine"

_TRIPLE = re.compile(r'^target triple = "([^"-]+)[^"]*"', re.MULTILINE)
_INTRINSIC = re.compile(r"@llvm\.(x86|aarch64|arm|riscv|ppc)\.(\w+)")
_ARCHITECTURES = {"x86": "x86_64", "aarch64": "aarch64", "arm": "aarch64", "riscv": "riscv64", "ppc": "ppc64le"}
_FEATURES = {"avx512": "avx512f", "avx2": "avx2", "avx": "avx", "fma": "fma", "bmi": "bmi2", "sse42": "sse4.2",
             "sse41": "sse4.1", "ssse3": "ssse3", "sse3": "sse3", "vcvtps2ph": "f16c", "vcvtph2ps": "f16c",
             "tdp": "amx-tile", "tile": "amx-tile"}  # fmt: skip
"""How the names of intrinsics of x86 begin → the feature that they need."""


def refused_object(data: bytes) -> str:
    """Why this machine cannot run an object; '' if it can."""
    try:
        return lacks(data)
    except CodegenError as error:
        return error.message


def refused_ir(text: str, target: Target) -> str:
    """Why code for a target cannot be made of LLVM IR; '' if it can. LLVM ends the process where it has no instruction
    for an intrinsic of a processor.
    """
    triple = _TRIPLE.search(text)
    if triple is not None and triple[1] != target.architecture:
        return f"its IR is for {triple[1]}, and this is {target.architecture}"
    present = {feature[1:] for feature in target.features.split(",") if feature.startswith("+")}
    for family, name in _INTRINSIC.findall(text):
        if _ARCHITECTURES[family] != target.architecture:
            return f"it calls @llvm.{family}.{name}, and this is {target.architecture}"
        needed = next((feature for begin, feature in _FEATURES.items() if name.startswith(begin)), None)
        if needed is not None and needed not in present:
            return f"it calls @llvm.{family}.{name}, and this machine lacks {needed}"
    return ""
