"""What families of processors have, as a table: vector registers, masks, instructions, caches. These are facts; what a
kernel makes of them, each stack decides for itself.

Code is made for a family, not for one processor of it, so that sizes of caches are those of a typical one.
"""

from __future__ import annotations

import functools

from ..hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Processor:
    """A family of processors. The defaults are what is assumed of one that nothing is known about."""

    vector_registers: int = 16
    """The number of vector registers."""

    masks: bool = False
    """Whether masks let loads, stores and operations on whole vectors leave lanes out, of any width from 8 bits on."""

    gathers: bool = False
    """Whether LLVM makes gathers and scatters of loops that it vectorises. It makes none with AVX2, whose gathers are
    slow on many processors.
    """

    narrow_shuffle_bytes: int = 16
    """Bytes of a vector within which one instruction moves lanes of 8 and 16 bits to any place, at most the vector's.
    Wider lanes move within a whole vector everywhere.
    """

    long_conversions: bool = False
    """Whether instructions convert vectors of 64-bit integers to f64, and back."""

    long_products: bool = False
    """Whether an instruction multiplies vectors of 64-bit integers."""

    line_bytes: int = 64
    """Bytes of a line of the caches. Where lines are longer, some are fetched twice."""

    first_cache_bytes: int = 32 << 10
    """Bytes of the first cache for data."""

    first_cache_ways: int = 8
    """Lines of each set of the first cache."""

    second_cache_bytes: int = 1 << 20
    """Bytes of the second cache, the last one that a processor does not share. The smallest ones have a quarter."""

    last_cache_bytes: int = 16 << 20
    """Bytes of the last cache, which processors share."""

    page_bytes: int = 4 << 10
    """Bytes of a page of memory: a processor does not foresee accesses in the next one."""

    @property
    def way_bytes(self) -> int:
        """Bytes at whose multiples lines are in the same set of the first cache."""
        return self.first_cache_bytes // self.first_cache_ways


@dataclass(frozen=True, slots=True)
class Family:
    """feature: one that all of a family's processors have, in LLVM's name; vector_bits: of their widest vectors."""

    feature: str
    vector_bits: int
    processor: Processor


FAMILIES = (
    Family(
        "avx512f",
        512,
        Processor(
            vector_registers=32,
            masks=True,
            gathers=True,
            narrow_shuffle_bytes=64,
            long_conversions=True,
            long_products=True,
        ),
    ),
    Family("avx", 256, Processor()),
    Family("sse2", 128, Processor()),
    Family("neon", 128, Processor(vector_registers=32, long_conversions=True)),
    Family(
        "v",
        128,
        Processor(vector_registers=32, masks=True, gathers=True, long_conversions=True, long_products=True),
    ),
    Family("altivec", 128, Processor(vector_registers=32)),
)
"""A target is of the first of these families whose feature it has. x86-64-v2, v3 and v4 are those of sse2, avx and
avx512f. That a processor with AVX-512 has masks of bytes, and instructions for 64-bit integers, is true of all but the
first one, which LLVM no longer has code for.
"""

BY_ARCHITECTURE = {
    "aarch64": Processor(vector_registers=32, long_conversions=True),
    "riscv64": Processor(vector_registers=32),
}
"""Architecture → its processors, where no feature names a family: RISC-V without V has registers of floats only."""

SCALAR_BITS = 64
"""Bits of what a processor without vectors computes with."""


@functools.cache
def present_features(features: str) -> frozenset[str]:
    """Names of the features that LLVM's '+avx2,-sse4a' form switches on, and nowhere off."""
    parts = features.split(",")
    off = {part[1:] for part in parts if part.startswith("-")}
    return frozenset(part[1:] for part in parts if part.startswith("+")) - off


@functools.cache
def processor_of(architecture: str, features: str) -> Processor:
    """What a target with these features has."""
    family = _family(features)
    return BY_ARCHITECTURE.get(architecture, Processor()) if family is None else family.processor


def vector_bits_of(features: str) -> int:
    """The width in bits of the widest vector register in a feature string; SCALAR_BITS if it names none."""
    family = _family(features)
    return SCALAR_BITS if family is None else family.vector_bits


def _family(features: str) -> Family | None:
    present = present_features(features)
    return next((family for family in FAMILIES if family.feature in present), None)
