"""What machine code needs of a processor, so that code made elsewhere is refused by name where it could not run."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .options import Target

BY_INTRINSIC_ONLY = frozenset(
    {
        *("adx", "aes", "amx-bf16", "amx-complex", "amx-fp16", "amx-int8", "amx-tile", "cldemote", "clflushopt"),
        *("clwb", "clzero", "enqcmd", "fsgsbase", "fxsr", "gfni", "hreset", "invpcid", "kl", "lwp", "movdir64b"),
        *("movdiri", "mwaitx", "pclmul", "pconfig", "pku", "prefetchi", "prefetchwt1", "prfchw", "ptwrite", "rdpid"),
        *("rdpru", "rdrnd", "rdseed", "rtm", "serialize", "sgx", "sha", "sha512", "shstk", "sm3", "sm4", "tbm"),
        *("tsxldtrk", "uintr", "usermsr", "vaes", "vpclmulqdq", "waitpkg", "wbnoinvd", "widekl"),
        *("xsave", "xsavec", "xsaveopt", "xsaves"),
    }
)
"""Features of x86 whose instructions LLVM makes only for an intrinsic of theirs; no emitter uses one."""


def needed_features(target: Target) -> tuple[str, ...]:
    """LLVM's names of the features that code for the target may use, sorted."""
    present = (f[1:] for f in target.features.split(",") if f.startswith("+"))
    return tuple(sorted(f for f in present if f not in BY_INTRINSIC_ONLY))


def lacking(triple: str, features: Collection[str]) -> str:
    """Why this machine cannot run code for a triple with these features; empty if it can.

    LLVM is asked only for what Linux does not say.
    """
    if _is_here(triple) and _needed_flags(features) <= _flags():
        return ""
    from .options import Target

    machine = Target.machine()
    if _system(triple) != _system(machine.triple):
        return f"it is for {triple}, and this is {machine.triple}"
    missing = sorted(set(features) - set(needed_features(machine)))
    return f"this machine lacks {', '.join(missing)}" if missing else ""


def _system(triple: str) -> tuple[str, str]:
    """(architecture, the rest but for the vendor) of a triple."""
    architecture, _, rest = triple.partition("-")
    return architecture, rest.partition("-")[2] or rest


# -- what Linux says about an x86-64 processor -------------------------------------------------------------------------
_SAME = (
    *("avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512ifma", "avx512vbmi", "avx512vl"),
    *("bmi2", "cmov", "cx16", "cx8", "f16c", "fma", "fma4", "mmx", "movbe", "popcnt", "sse", "sse2", "sse4a", "ssse3"),
    "xop",
)
_OTHER = {
    "64bit": "lm",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "crc32": "sse4_2",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahf_lm",
    "avxvnni": "avx_vnni",
    "avxifma": "avx_ifma",
    "avx512bf16": "avx512_bf16",
    "avx512bitalg": "avx512_bitalg",
    "avx512fp16": "avx512_fp16",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avx512vpopcntdq": "avx512_vpopcntdq",
}
KNOWN: dict[str, tuple[str, ...]] = {name: (name,) for name in _SAME}
"""LLVM's name of a feature → Linux's names, all of which /proc/cpuinfo must list."""
KNOWN.update({name: (flag,) for name, flag in _OTHER.items()})
KNOWN["avx10.1"] = tuple(
    flag for name, flags in KNOWN.items() for flag in flags if name.startswith("avx512") and "vp2" not in name
)


def _is_here(triple: str) -> bool:
    """Whether it is surely the triple of this system; LLVM knows more of them."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and _system(triple) == ("x86_64", "linux-gnu")


def _needed_flags(features: Collection[str]) -> set[str]:
    """Linux's names of features. What is not known here stays as it is: no flag has a name with a colon."""
    return {flag for name in features for flag in KNOWN.get(name, (f"llvm:{name}",))}


@functools.cache
def _flags() -> frozenset[str]:
    """What Linux found in every processor, as /proc/cpuinfo lists it; nothing where that cannot be read."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lists = {line.partition(":")[2] for line in file if line.startswith("flags")}
    except OSError:
        return frozenset()
    return frozenset.intersection(*(frozenset(words.split()) for words in lists)) if lists else frozenset()
