"""Whether the thunks of a program become a native function, and making it. docs/adr/0032-compiled-host-program.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...codegen.optimize import CompiledObject, assembly, optimize
from ...thunks import ConditionalThunk, CopyThunk, KernelThunk, SequentialThunk, WhileThunk
from ...thunks.host_module import HostModule
from ...thunks.host_program import build_host, host_ir, module_of
from ..base import CompileOptions, HostProgramKind


@dataclass(frozen=True)
class BuiltHost:
    """A host program that is not loaded yet."""

    module: HostModule
    object: CompiledObject


def is_compiled(thunks: SequentialThunk, options: CompileOptions) -> bool:
    """Whether the host program is compiled. What a run is observed by, such as red zones, needs the interpreted one."""
    if options.red_zones:
        return False
    if options.host_program != HostProgramKind.AUTO:
        return options.host_program == HostProgramKind.COMPILED
    kinds = [type(t) for t in thunks.walk()]
    straight = kinds.count(KernelThunk) + kinds.count(CopyThunk)
    return straight >= WORTH or WhileThunk in kinds or ConditionalThunk in kinds


WORTH = 32
"""Kernels and copies from which the compiled host program is the default, if there is no control flow."""


def build(thunks: SequentialThunk, seconds: Mapping[str, float], options: CompileOptions) -> BuiltHost:
    """Compile the host program. seconds: an upper estimate of each kernel's run time, by symbol."""
    module = module_of(thunks, options.emit, seconds)
    return BuiltHost(module, build_host(module, options.emit, options.cache))


def stages(host: BuiltHost, options: CompileOptions) -> Iterator[tuple[str, str]]:
    """File names and texts of the host program's IR, in the order of the stages."""
    text = host_ir(host.module)
    yield "host.mlir", host.module.text
    yield "host.ll", text
    yield "host.optimized.ll", optimize(text, options.emit)
    yield "host.s", assembly(text, options.emit)
