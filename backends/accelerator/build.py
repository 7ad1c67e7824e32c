"""LLVM IR text of a device → its code: optimised and emitted by LLVM, kept in the cache of objects."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from ...codegen.cache import ObjectCache, cache_key
from ...codegen.llvm import VERSIONS, make_machine, parse
from .targets import DeviceTarget

SETTINGS = "device 3: O2 without vectors and unrolling"
"""The settings in words, a part of every cache key. Change them together."""


def build_device_code(text: str, target: DeviceTarget, cache: ObjectCache | None) -> bytes:
    """SPIR-V, an object file, or assembly as the target says. Raises CodegenError for text that LLVM refuses."""
    key = cache_key(text, target.key, VERSIONS, SETTINGS)
    found = cache.read(key) if cache is not None else None
    if found is not None:
        return found
    from .emitters import emitted_apart

    made = emitted_apart(text, target)
    if cache is not None:
        cache.write(key, made)
    return made


def emit(text: str, target: DeviceTarget) -> bytes:
    """The code, made in this process, which must not have made any before (emitters.py says why)."""
    machine = make_machine(target.target)
    module = _plain(optimized(text, target, machine))
    return machine.emit_assembly(module).encode() if target.assembly else machine.emit_object(module)


def optimized(text: str, target: DeviceTarget, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module after LLVM's passes. Devices make vectors of work items themselves; loops stay as they are."""
    module = parse(text)
    module.triple = target.target.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.slp_vectorization = tuning.loop_vectorization = False
    tuning.loop_interleaving = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


_SCOPES = re.compile(r", !(?:alias\.scope|noalias) !\d+|^.*@llvm\.experimental\.noalias\.scope\.decl.*\n", re.MULTILINE)


def _plain(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """The module without scopes of aliases, which SPIR-V has no use for."""
    text = str(module)
    plain = _SCOPES.sub("", text)
    return module if plain == text else parse(plain)
