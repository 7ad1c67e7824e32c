"""What machine code needs of a processor, so that code made elsewhere is refused by name where it could not run."""

from __future__ import annotations

from collections.abc import Collection

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


def lacking(triple: str, features: Collection[str], machine: Target) -> str:
    """Why a machine cannot run code for a triple with these features; empty if it can."""
    if _system(triple) != _system(machine.triple):
        return f"it is for {triple}, and this is {machine.triple}"
    missing = sorted(set(features) - set(needed_features(machine)))
    return f"this machine lacks {', '.join(missing)}" if missing else ""


def _system(triple: str) -> tuple[str, str]:
    """(architecture, the rest but for the vendor) of a triple."""
    architecture, _, rest = triple.partition("-")
    return architecture, rest.partition("-")[2] or rest
