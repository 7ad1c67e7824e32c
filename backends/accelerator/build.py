"""LLVM IR text of a device → its code, kept in the cache of objects."""

from __future__ import annotations

from ...codegen.cache import ObjectCache, cache_key
from ...codegen.llvm import VERSIONS
from .device_library import library_key
from .emitters import emitted_apart
from .targets import DeviceTarget

SETTINGS = "device 8: O2, no vectors, no unrolling; products, sums fused; addresses in chains; .rn in PTX; exact frem"
"""The settings in words, a part of every cache key. Change them together."""


def build_device_code(text: str, target: DeviceTarget, cache: ObjectCache | None) -> bytes:
    """SPIR-V, an object file, or assembly as the target says. Raises CodegenError for text that LLVM refuses."""
    key = cache_key(text, target.key, VERSIONS, SETTINGS, library_key(text, target))
    found = cache.read(key) if cache is not None else None
    if found is not None:
        return found
    made = emitted_apart(text, target)
    if cache is not None:
        cache.write(key, made)
    return made
