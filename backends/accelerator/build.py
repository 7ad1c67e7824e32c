"""LLVM IR text of a device → its code: optimised and emitted by LLVM, kept in the cache of objects."""

from __future__ import annotations

import threading

import llvmlite.binding as llvm

from ...codegen.cache import ObjectCache, cache_key
from ...codegen.errors import CodegenError
from ...codegen.llvm import VERSIONS, make_machine, parse
from .targets import DeviceTarget

SETTINGS = "device 1: O2 without vectors and unrolling"
"""The settings in words, a part of every cache key. Change them together."""


_EMITTING = threading.Lock()  # LLVM's SPIR-V back end keeps global state


def build_device_code(text: str, target: DeviceTarget, cache: ObjectCache | None) -> bytes:
    """SPIR-V, an object file, or assembly as the target says. Raises CodegenError for text that LLVM refuses."""
    key = cache_key(text, target.key, VERSIONS, SETTINGS)
    found = cache.read(key) if cache is not None else None
    if found is not None:
        return found
    machine = make_machine(target.target)  # LLVM's SPIR-V back end keeps types of a module in its machine
    module = optimized(text, target, machine)
    try:
        with _EMITTING:
            made = machine.emit_assembly(module).encode() if target.assembly else machine.emit_object(module)
    except RuntimeError as error:
        what = f"LLVM makes no code for {target.name}: {' '.join(str(error).split())}"
        raise CodegenError(what, remedy="this kernel does not run on the device") from None
    if cache is not None:
        cache.write(key, made)
    return made


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
