"""LLVM IR text of a device → its code, in this process, which must not have made any before (emitters.py says why)."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from ...codegen.contract import fused
from ...codegen.llvm import make_machine, parse
from ...codegen.optimize import contractible
from .addresses import with_chains
from .device_library import functions_of_c, link_library, with_names_of_library
from .members import with_members
from .ptx import rounded, with_short_shifts
from .remainders import with_exact_remainders
from .targets import DeviceTarget


def emit(text: str, target: DeviceTarget) -> bytes:
    """SPIR-V, an object file, or assembly as the target says. Raises CodegenError for text that LLVM refuses."""
    machine = make_machine(target.target)
    module = prepared(text, target, machine)
    return rounded(machine.emit_assembly(module)).encode() if target.assembly else machine.emit_object(module)


def prepared(text: str, target: DeviceTarget, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module whose code is emitted."""
    context, called = llvm.create_context(), []
    if not target.libm:
        text = with_exact_remainders(text)
        called = functions_of_c(text)
    module = parse(contractible(with_names_of_library(text, called)), context)
    if called:
        module.triple, module.data_layout = target.target.triple, str(machine.target_data)
        link_library(module, context, called, target)
    module = optimized(module, target, machine)
    plain = _SCOPES.sub("", str(module))
    if target.chains:  # what is the same in each turn of a loop leaves it in the second round, which breaks some chains
        module = optimized(parse(with_chains(with_members(plain))), target, machine)
        module = parse(fused(with_chains(str(module), "at")))
    elif target.assembly:
        module = parse(with_short_shifts(plain), assembly=True)
    elif plain != str(module):
        module = parse(plain)
    return module


def optimized(module: llvm.ModuleRef, target: DeviceTarget, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module after LLVM's passes. Devices make vectors of work items themselves; loops stay as they are."""
    module.triple = target.target.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.slp_vectorization = tuning.loop_vectorization = False
    tuning.loop_interleaving = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


_SCOPES = re.compile(r", !(?:alias\.scope|noalias) !\d+|^.*@llvm\.experimental\.noalias\.scope\.decl.*\n", re.MULTILINE)
"""Scopes of aliases, which SPIR-V has no use for."""
