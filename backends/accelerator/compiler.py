"""HLO → a device's executable: the host's plan, kernels emitted by the stacks for the device, built and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...codegen.cache import ObjectCache, cache_key
from ...codegen.helpers import build_helper
from ...codegen.load import LoadedCode, load
from ...codegen.optimize import build_object
from ...codegen.options import EmitOptions
from ...codegen.threads import processors
from ...hlo.errors import InputError, UnsupportedError
from ...hlo.ir import Module
from ...hlo.library.calls import LIBRARY
from ...hlo.opclasses import OUTSIDE
from ...planning.plan import KernelRequest, Plan
from ...thunks import from_plan
from ..base import BackendError, CompileOptions, Compiler, EmitFor, Emitter
from ..device import Kernel
from ..host.compiler import HostCompiler, Stopwatch
from ..host.image import image_of
from ..host.parts import by_stack, refuse_unsupported
from .build import SETTINGS, build_device_code
from .calls import calls_of, with_layouts
from .device import Device
from .estimate import estimated_nanoseconds
from .executable import HANDLERS, DeviceExecutable
from .files import load_program
from .items import forms, may_be_grouped, work_of
from .steps import Entry
from .targets import DeviceTarget
from .text import Work, device_text, entry_name

BATCH = 4
"""Kernels of one program of the device, which are built together."""


@dataclass(frozen=True, eq=False)
class Emitted:
    """LLVM IR of one kernel for the device, and how it is spread over work items."""

    request: KernelRequest
    work: Work
    text: str


def emitted_for(target: DeviceTarget, emitter: Emitter, request: KernelRequest) -> Emitted:
    """A kernel in the form for groups of items, or else the finest for items alone, that the stack has."""
    options = EmitOptions(target.target, strict=True, by_element=True)
    if target.groups is not None and may_be_grouped(request):
        module = emitter.emit([replace(request, partition=None)], replace(options, group=target.groups))
        found = module.grouped.get(request.name)
        if found is not None:
            work = Work(request.name, len(request.arguments), group=found)
            return Emitted(request, work, device_text(module.llvm_ir, [work], target))
    for form in forms(request):
        module = emitter.emit([form], replace(options, ranges=True))
        if form.partition is None or form.name in module.ranged:
            work = work_of(form, form.name in module.ranged)
            return Emitted(request, work, device_text(module.llvm_ir, [work], target))
    raise AssertionError("a kernel without a range has no form")


def _entry(emitted: Emitted, kernel: Kernel, flush: bool) -> Entry:
    return Entry(kernel, emitted.work, flush, estimated_nanoseconds(emitted.request))


class DeviceCompiler(Compiler[Plan]):
    """For one kind of device. device: that the code is for."""

    def __init__(self, platform_name: str, device: Device):
        self.platform_name, self._device = platform_name, device

    def run_hlo_passes(self, module: Module, options: CompileOptions) -> Plan:
        """As the host's: the same Plan, but for copies where a handler on the device wants another layout."""
        return HostCompiler().run_hlo_passes(with_layouts(module, self.platform_name), options)

    def compile(self, program: Plan, emit_for: EmitFor | None, options: CompileOptions) -> DeviceExecutable:
        """Emit, build and load the kernels. Raises UnsupportedError for the first that is not possible."""
        if emit_for is None:
            raise InputError(
                f"{self.platform_name} needs a stack for each kernel", remedy="give migration.choose.emit_for(flags)"
            )
        self._refuse(program, options)
        calls = {call.symbol: call for call in calls_of(program.emitted, self.platform_name)}
        requests = [request for request in program.emitted if request.name not in calls]
        parts = by_stack(requests, emit_for)
        refuse_unsupported(parts)
        watch = Stopwatch()
        emitters = {request.name: part.emitter for part in parts for request in part.requests}
        on_host = [r for r in requests if r.instruction.opcode in LIBRARY]
        on_device = [r for r in requests if r.instruction.opcode not in LIBRARY]
        with watch.measure("emit"):
            made = [self._emitted(emitters[request.name], request) for request in on_device]
        with watch.measure("build"):
            kernels, flush = self._loaded(made, options), not options.emit.strict
        code = self._host_code(on_host, emitters, options) if on_host else None
        names = {name: emitter.name for name, emitter in emitters.items()} | dict.fromkeys(calls, HANDLERS)
        image = image_of(program, from_plan(program), names, False)
        stages = tuple((f"{n}.{e.request.name}.ll", e.text) for n, e in enumerate(made, 1))
        return DeviceExecutable(
            self.platform_name,
            self._device,
            image,
            program.module,
            {e.request.name: _entry(e, kernels[e.request.name], flush) for e in made},
            code,
            tuple(calls.values()),
            watch.seconds,
            stages if options.keep_stages else (),
            program,
        )

    def load_executable(self, data: bytes, key: bytes | None = None) -> DeviceExecutable:
        """As in Compiler; the code in the bytes must be for this device and its driver."""
        return load_program(data, key, self.platform_name, self._device)

    def _refuse(self, program: Plan, options: CompileOptions) -> None:
        """Refuse what runs on the host only."""
        wanted = {
            "profiles of the host": options.profile,
            "checks in programs": bool(options.debug),
            "red zones": options.red_zones,
            f"programs for {options.devices.count} devices": options.devices.count > 1,
        }
        for what, asked in wanted.items():
            if asked:
                raise BackendError(f"platform {self.platform_name} has no {what}", remedy="use the host")
        for request in program.kernels:
            if request.instruction.opcode in OUTSIDE:
                i = request.instruction
                remedy = "run it on the host, which has feeds and several devices"
                raise UnsupportedError(self.platform_name, i.opcode.value, location=i.location, remedy=remedy)

    def _emitted(self, emitter: Emitter, request: KernelRequest) -> Emitted:
        if emitter.language != "llvm" or emitter.shadow is not None:
            remedy = "choose legacy or mlir for it"
            raise UnsupportedError(self.platform_name, f"stack {emitter.name}", remedy=remedy)
        return emitted_for(self._device.code_target, emitter, request)

    # -- code ----------------------------------------------------------------------------------------------------------
    def _loaded(self, made: Sequence[Emitted], options: CompileOptions) -> dict[str, Kernel]:
        """The kernels by name. LLVM and the device's compiler work on several at once."""
        flush = not options.emit.strict
        with ThreadPoolExecutor(processors(), thread_name_prefix="compile") as pool:
            programs = list(pool.map(partial(self._program, cache=options.cache, flush=flush), made))
        return {
            e.request.name: self._device.kernel(program, entry_name(e.work.name), e.work.arguments)
            for e, program in zip(made, programs, strict=True)
        }

    def _program(self, emitted: Emitted, cache: ObjectCache | None, flush: bool) -> Any:
        """A program of the device, from the cache if it holds its binary."""
        target = self._device.code_target
        key = cache_key(emitted.text, target.key, self._device.identity, SETTINGS, f"binary, flush {flush}")
        binary = cache.read(key) if cache is not None else None
        if binary is not None:
            try:
                return self._device.build(binary, flush)
            except BackendError:
                pass  # of another driver; it is built again below
        program = self._device.build(build_device_code(emitted.text, target, cache), flush)
        if cache is not None and (binary := program.binary()):
            cache.write(key, binary)
        return program

    def _host_code(
        self, requests: Sequence[KernelRequest], emitters: dict[str, Emitter], options: CompileOptions
    ) -> LoadedCode:
        """What a library or a handler computes, for the host."""
        emit = replace(EmitOptions.host(), ranges=False)
        modules = [emitters[request.name].emit([request], emit) for request in requests]
        objects = [build_object(module.llvm_ir, emit, options.cache).data for module in modules]
        helpers = dict.fromkeys(text for module in modules for text in module.helpers)
        objects += [build_helper(text, emit, options.cache).data for text in helpers]
        return load([*objects, *dict.fromkeys(o for module in modules for o in module.objects)])
