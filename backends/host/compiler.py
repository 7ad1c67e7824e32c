"""HLO → host executable: plan, emit with the chosen stacks, one object a stack, load, thunks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...codegen.load import load
from ...codegen.optimize import CompiledObject, assembly, build_object, optimize
from ...codegen.options import EmittedModule
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Module
from ...hlo.plan import KernelRequest, Plan
from ...hlo.planning import plan
from ...thunks import from_plan, to_text
from ..base import CompileOptions, Compiler, EmitFor, Emitter
from .executable import HostExecutable


@dataclass
class Stopwatch:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class _Part:
    """The kernels of one stack."""

    emitter: Emitter
    requests: tuple[KernelRequest, ...]


class HostCompiler(Compiler[Plan]):
    def run_hlo_passes(self, module: Module, options: CompileOptions) -> Plan:
        """Passes, schedule, buffers, kernels. The module must be verified."""
        return plan(module)

    def compile(self, program: Plan, emit_for: EmitFor, options: CompileOptions) -> HostExecutable:
        """A kernel that its stack does not support raises UnsupportedError; its remedy lists the others that miss."""
        parts = _by_stack(program.kernels, emit_for)
        _refuse_unsupported(parts)
        watch = Stopwatch()
        with watch.measure("emit"):
            emitted = [part.emitter.emit(part.requests, options.emit) for part in parts]
        objects = _build(emitted, options)
        watch.seconds["optimize"] = sum(o.optimize_seconds for o in objects)
        watch.seconds["codegen"] = sum(o.codegen_seconds for o in objects)
        with watch.measure("load"):
            code = load([o.data for o in objects])
            thunks = from_plan(program)
            stages = tuple(_stages(parts, emitted, options)) if options.keep_stages else ()
            if options.keep_stages:
                stages = (("thunks.txt", to_text(thunks)), *stages)
            chosen = {request.name: part.emitter.name for part in parts for request in part.requests}
            kernels = tuple((request.name, chosen[request.name]) for request in program.kernels)
            strict, guarded = options.emit.strict, options.red_zones
            return HostExecutable(
                program, thunks, code, kernels, watch.seconds, stages, options.cache, not strict, guarded
            )


def _by_stack(kernels: Sequence[KernelRequest], emit_for: EmitFor) -> list[_Part]:
    parts: dict[str, tuple[Emitter, list[KernelRequest]]] = {}
    for request in kernels:
        emitter = emit_for(request)
        parts.setdefault(emitter.name, (emitter, []))[1].append(request)
    return [_Part(emitter, tuple(requests)) for emitter, requests in parts.values()]


def _refuse_unsupported(parts: Sequence[_Part]) -> None:
    missing = [error for part in parts for error in part.emitter.unsupported(part.requests)]
    if not missing:
        return
    first, others = missing[0], sorted({str(e.message) for e in missing} - {missing[0].message})
    if isinstance(first, UnsupportedError) and others:
        remedy = f"{first.remedy or 'add it'}; also missing: {', '.join(others)}"
        raise UnsupportedError(first.stage, first.what, remedy=remedy, location=first.location)
    raise first


def _build(emitted: Sequence[EmittedModule], options: CompileOptions) -> list[CompiledObject]:
    """One object a module; LLVM works on them at once."""
    if len(emitted) == 1:
        return [build_object(emitted[0].llvm_ir, options.emit, options.cache)]
    with ThreadPoolExecutor(max(1, len(emitted))) as pool:
        return list(pool.map(lambda e: build_object(e.llvm_ir, options.emit, options.cache), emitted))


def _stages(
    parts: Sequence[_Part], emitted: Sequence[EmittedModule], options: CompileOptions
) -> Iterator[tuple[str, str]]:
    """File names in the order of the stages: legacy.1.ll, legacy.2.optimized.ll, …"""
    for part, module in zip(parts, emitted):
        named = [*((f"{name}", text) for name, text in module.stages), ("ll", module.llvm_ir)]
        named.append(("optimized.ll", optimize(module.llvm_ir, options.emit)))
        named.append(("s", assembly(module.llvm_ir, options.emit)))
        for number, (name, text) in enumerate(named, 1):
            yield f"{part.emitter.name}.{number}.{name}", text
