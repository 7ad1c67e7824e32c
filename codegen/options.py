"""What both stacks and codegen agree on: the target, the options of an emission, and what an emission returns."""

from __future__ import annotations

import functools
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that code is made for. features: LLVM's '+avx2,-sse4a' form; vector_bits: widest vector register."""

    triple: str
    cpu: str
    features: str
    vector_bits: int

    @staticmethod
    def host() -> Target:
        """The machine that this process runs on."""
        return _host()

    @property
    def architecture(self) -> str:
        """The first word of the triple: 'x86_64', 'aarch64', …"""
        return self.triple.partition("-")[0]


@dataclass(frozen=True, slots=True)
class EmitOptions:
    """Options of an emission; a part of every cache key, but for keep_stages, which changes no code.

    strict: no FP contraction, no reassociation of reductions, no flushing of subnormals. keep_stages: print every IR
    on the way, which takes a quarter of the time that MLIR needs.
    """

    target: Target
    strict: bool = False
    keep_stages: bool = False

    @staticmethod
    def host(strict: bool = False) -> EmitOptions:
        """Options for the machine that this process runs on."""
        return EmitOptions(Target.host(), strict)


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """One LLVM module in text, and every IR before it if asked for: ((file extension, text), …)."""

    llvm_ir: str
    stages: tuple[tuple[str, str], ...] = ()


VECTOR_BITS = (("+avx512f", 512), ("+avx", 256), ("+sse2", 128), ("+neon", 128), ("+v", 128), ("+altivec", 128))
"""The first feature that a host has decides its vector width."""


def vector_bits_of(features: str) -> int:
    """The widest vector register that a feature string promises; 64 (a plain register) where it promises none."""
    present = set(features.split(","))
    return next((bits for feature, bits in VECTOR_BITS if feature in present), 64)


@functools.cache
def _host() -> Target:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, vector_bits_of(features))
