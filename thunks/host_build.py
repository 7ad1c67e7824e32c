"""Compiles a host program: its MLIR module (host_module.py) becomes an object. What runs it is host_program.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..codegen import inline
from ..codegen.cache import ObjectCache, cache_key
from ..codegen.inline import build_with_kernels
from ..codegen.mlir import bytecode_of, lower_text, mlir_version
from ..codegen.open_module import versions
from ..codegen.optimize import CompiledObject, build_object
from ..codegen.options import SETTINGS, EmitOptions
from .check_code import CHECK_IR
from .checks import FUNCTIONS
from .events import PROFILE_IR
from .host_module import HostModule, host_module
from .host_parts import FLUSHING
from .kinds import SequentialThunk

PASSES = (
    "builtin.module(convert-scf-to-cf,convert-index-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def module_of(root: SequentialThunk, options: EmitOptions, seconds: Mapping[str, float] | None = None) -> HostModule:
    """The host program of thunks for a target. seconds: as in `host_module`."""
    architecture = options.target.architecture
    return host_module(root, architecture if architecture in FLUSHING and not options.strict else None, seconds)


def build_host(
    module: HostModule, options: EmitOptions, cache: ObjectCache | None, kernels: Sequence[str] = ()
) -> CompiledObject:
    """The object file of a host program. MLIR is imported only if the cache does not have it.

    kernels: LLVM IR of kernels that become a part of it where they are small.
    """
    tools = (PASSES, PROFILE_IR, CHECK_IR, mlir_version(), versions(), SETTINGS, inline.SETTINGS)
    key = cache_key(module.text, *kernels, repr(options.target), repr(options.strict), repr(options.optimized), *tools)
    found = cache.read(key) if cache is not None else None
    if found is not None:
        return CompiledObject(found, 0.0, 0.0, cached=True)
    text = host_ir(module)
    built = build_with_kernels(text, kernels, options) if kernels else build_object(text, options, cache=None)
    if cache is not None:
        cache.write(key, built.data)
    return built


def host_bytecode(text: str, cache: ObjectCache | None) -> bytes:
    """The text of a host module as MLIR's bytecode. MLIR is imported only if the cache does not have it."""
    key = cache_key("bytecode", text, mlir_version())
    found = cache.read(key) if cache is not None else None
    if found is None:
        found = bytecode_of(text)
        if cache is not None:
            cache.write(key, found)
    return found


def host_ir(module: HostModule) -> str:
    """The LLVM IR of a host program."""
    text = lower_text(module.text, PASSES)
    if not module.notes_events:
        return text
    text = text.replace("declare void @testbed_profile(ptr, ptr)\n", PROFILE_IR)
    names = "|".join(FUNCTIONS)
    whole, found = re.subn(rf"^declare void @({names})\([ptr, ]*\)\n", "", text, flags=re.MULTILINE)
    return whole + CHECK_IR if found else text
