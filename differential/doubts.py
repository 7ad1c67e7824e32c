"""Stacks that are no oracle for a program, and why: a version of jaxlib whose faults are known."""

from __future__ import annotations

from collections.abc import Iterable

from ..backends.xla.dump import version
from ..backends.xla.flags import parse_xla_flags
from ..hlo.ir import Module
from ..hlo.opcodes import Op

SUMS = frozenset({Op.DOT, Op.REDUCE, Op.REDUCE_WINDOW})
"""Opcodes that XLA gives to its library YNN."""

WRONG_SUMS = ("0.10.2",)
"""Versions of jaxlib whose YNN makes wrong sums of the last elements of long arrays (jax#39103)."""

WITHOUT_YNN = "xla_cpu_experimental_ynn_fusion_type"
"""The flag, with no value, that keeps sums from that library."""


def doubted_stacks(module: Module, stacks: Iterable[str], xla_flags: str | None = None) -> dict[str, str]:
    """Stack → why its results count for nothing where stacks differ. xla_flags: those of the stack xla.

    XLA's own kernels as stacks (xla-old, xla-new) are made without the library.
    """
    without = (WITHOUT_YNN, "") in parse_xla_flags(xla_flags)
    if "xla" not in stacks or without or version() not in WRONG_SUMS:
        return {}
    if not any(i.opcode in SUMS for i in module.instructions()):
        return {}
    return {"xla": f"jaxlib {version()} with YNN is no oracle for sums (jax#39103)"}
