"""HLO → host executable: plan, emit with the chosen stacks, compile batches of kernels, load, build thunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TypeVar

from ...codegen.cache import ObjectCache
from ...codegen.form_text import forms_text
from ...codegen.forms import ChosenForms
from ...codegen.glue import kernels_of, modules_of
from ...codegen.helpers import build_helper
from ...codegen.load import load
from ...codegen.optimize import CompiledObject, assembly, build_object, optimize
from ...codegen.options import EmitOptions, EmittedModule
from ...codegen.threads import processors
from ...hlo.collector import collector_at_rest
from ...hlo.errors import InputError
from ...hlo.ir import Module
from ...hlo.records import dataclass, field, replace
from ...passes.pipeline import PipelineOptions
from ...planning.plan import KernelRequest, Plan, WhileStep
from ...planning.planner import PlanOptions, plan
from ...profiling.insert import profiled
from ...thunks import SequentialThunk, from_plan, to_text
from ...thunks.insert_checks import Memory
from ..base import AheadOptions, CompileOptions, Compiler, DebugKind, EmitFor, Emitter
from . import program as host_program
from .checks import checked
from .estimate import seconds_by_kernel
from .executable import HostExecutable
from .image import image_of, with_kernels, with_memory
from .parts import Part, by_stack, refuse_queues, refuse_unsupported
from .program import BuiltHost
from .shadows import exactly, shadows_of

BATCH, FEW = 8, 4
"""The most kernels per LLVM module; from FEW + 1 on a program has two, for two threads. Twice as many modules of half
the size took 1.07 (legacy) to 1.1 (MLIR) of the processor time of 21 kernels, and as long on two processors.
"""


T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Made:
    """A batch of kernels: who emitted it, its module, and what waits for its objects."""

    emitter: Emitter
    module: EmittedModule
    objects: Callable[[], list[CompiledObject]]

    @property
    def inlines(self) -> bool:
        """Whether its kernels may be inlined."""
        return _inlines(self.emitter)


@dataclass
class Stopwatch:
    """Seconds by stage. Times of parallel threads add up."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


class HostCompiler(Compiler[Plan]):
    def run_hlo_passes(self, module: Module, options: CompileOptions) -> Plan:
        """Passes, schedule, buffers, kernels. The module must be verified. Strict sums stay one chain."""
        without = frozenset({"copy-dot-operands", "depth-last", "split-reductions"} if options.emit.strict else ())
        return plan(module, PlanOptions(PipelineOptions(devices=options.devices, without=without)))

    def compile(
        self,
        program: Plan,
        emit_for: EmitFor | None,
        options: CompileOptions,
        source: Module | None = None,
        watch: Stopwatch | None = None,
    ) -> HostExecutable:
        """Emit and load the kernels. Raises UnsupportedError for the first kernel that its stack does not support; the
        remedy lists the others.

        source: the module that was planned, which the executable has as its program; by default the planned one. watch:
        has measured the stages before this.
        """
        emit_for = _chosen(emit_for)
        refuse_queues(program.emitted)
        if options.profile:
            program = profiled(program)
        parts = by_stack(program.emitted, emit_for)
        with collector_at_rest():  # it imports the stacks
            refuse_unsupported(parts)
        watch = watch or Stopwatch()
        seconds = dict(seconds_by_kernel(program))
        shadows = shadows_of(program.emitted, emit_for)
        if shadows is not None and shadows.emitter is not None:
            if options.debug or options.profile or options.devices.count > 1:
                raise InputError(
                    "shadow kernels need a program of their own", remedy="leave out the profile, checks and devices"
                )
            parts.append(Part(shadows.emitter, tuple(shadows.requests.values())))
            seconds |= {request.name: seconds[name] for name, request in shadows.requests.items() if name in seconds}
        memory = Memory(len(program.assignment.allocations))
        forms: dict[str, ChosenForms] = {}

        def host_of(made: Sequence[Made]) -> tuple[SequentialThunk, BuiltHost | None]:
            for batch in made:
                forms.update(batch.module.forms)
            ranged = _ranged(made)
            thunks = from_plan(program, ranged=ranged, devices=options.devices)
            if shadows is not None:
                thunks = shadows.rewrite(thunks, ranged, options.tolerances or exactly, memory)
            if options.debug and options.debug != DebugKind.MEMORY:
                thunks = checked(thunks, program, options.debug, memory)
            if not host_program.is_compiled(thunks, options):
                return thunks, None
            with watch.measure("host"):
                small = host_program.inlined(thunks, seconds, options)
                return thunks, host_program.build(
                    thunks, seconds, options, _within(small, made), lambda: _optimized_within(small, made)
                )

        steps = list(program.walk())
        is_long, loops = len(steps) >= host_program.WORTH, any(isinstance(step, WhileStep) for step in steps)
        objects, ranged, (thunks, host) = _build(parts, options, watch, host_of, is_long, loops)
        if host is not None:
            objects.append(host.object)
        watch.seconds["optimize"] = sum(o.optimize_seconds for o in objects)
        watch.seconds["codegen"] = sum(o.codegen_seconds for o in objects)
        with watch.measure("load"):
            code = load([o.data for o in objects])
        stages: tuple[tuple[str, str], ...] = ()
        if options.keep_stages:
            hosts = host_program.stages(host, options) if host else ()
            stages = (("thunks.txt", to_text(thunks)), *hosts, *_stages(parts, options))
        emitters = {request.name: part.emitter.name for part in parts for request in part.requests}
        image = image_of(program, thunks, emitters, not options.emit.strict, ranged, options.devices)
        image = with_memory(image, memory.sizes)
        if shadows is not None and shadows.emitter is not None:
            image = with_kernels(image, tuple(shadows.requests.values()), shadows.emitter.name, ranged)
        return HostExecutable(
            image,
            source or program.module,
            code,
            options.emit.target,
            watch.seconds,
            stages,
            options.cache,
            options.red_zones,
            program,
            shadows=shadows,
            host_text=partial(host.text, options.emit) if host is not None else None,
            built=None if host is None else host.module,
            checks_memory=options.debug == DebugKind.MEMORY,
            forms=forms,
        )

    def compile_ahead_of_time(self, program: Plan, emit_for: EmitFor | None, options: AheadOptions) -> dict[str, bytes]:
        """As `ahead.compile_ahead`: an object file, a C header, and an example that calls it."""
        from .ahead import compile_ahead

        return compile_ahead(program, _chosen(emit_for), options)

    def load_executable(self, data: bytes, key: bytes | None = None) -> HostExecutable:
        from .loader import deserialize_and_load

        return deserialize_and_load(data, key)


def _chosen(emit_for: EmitFor | None) -> EmitFor:
    """Raises InputError where no stack is chosen."""
    if emit_for is None:
        raise InputError("the host needs a stack for each kernel", remedy="give migration.choose.emit_for(flags)")
    return emit_for


def ir_of(names: Collection[str], parts: Sequence[Part], options: CompileOptions) -> list[str]:
    """LLVM IR of some kernels that may be inlined, a module for each stack."""
    chosen = [(part.emitter, [r for r in part.requests if r.name in names]) for part in parts]
    emit = replace(options.emit, keep_stages=False)
    return [by.emit(requests, emit).llvm_ir for by, requests in chosen if requests and _inlines(by)]


def _within(names: Collection[str], made: Sequence[Made]) -> list[str]:
    """LLVM IR of some kernels that may be inlined, from the modules that have them."""
    found = [kernels_of(batch.module.llvm_ir, names) for batch in made if batch.inlines]
    return [text for text in found if text is not None]


def _optimized_within(names: Collection[str], made: Sequence[Made]) -> list[str] | None:
    """The same as it was compiled; None if some of it was not, but found in the cache."""
    objects = [o for batch in made if batch.inlines for o in batch.objects()]
    if any(o.llvm_ir is None for o in objects):
        return None
    found = [kernels_of(o.llvm_ir or "", names) for o in objects]
    return [text for text in found if text is not None]


def _inlines(emitter: Emitter) -> bool:
    return emitter.language == "llvm" and not emitter.alone


def _ranged(made: Sequence[Made]) -> frozenset[str]:
    """The kernels that take ranges."""
    return frozenset[str]().union(*(batch.module.ranged for batch in made))


def _build(
    parts: Sequence[Part],
    options: CompileOptions,
    watch: Stopwatch,
    beside: Callable[[Sequence[Made]], T],
    takes_long: bool,
    keeps_ir: bool,
) -> tuple[list[CompiledObject], frozenset[str], T]:
    """(One object per batch of kernels, in order, and those that these call; the kernels that take ranges; what
    `beside` makes of these). LLVM works on a batch while the next batches are emitted, and then while `beside` runs.
    takes_long: whether that is worth a thread even for one batch. keeps_ir: whether `beside` may use optimised IR.
    """
    made: list[Made] = []
    called: dict[bytes, None] = {}
    helpers: dict[str, None] = {}
    batches = [(part.emitter, batch) for part in parts for batch in _batches(part, options.batches or batches_of)]
    workers = min(len(batches) + takes_long, processors() if options.threads is None else options.threads)
    emit = replace(options.emit, keep_stages=False)

    def emitted(emitter: Emitter, batch: Sequence[KernelRequest]) -> EmittedModule:
        with watch.measure("emit"), collector_at_rest():  # llvmlite's objects have cycles, but a batch is small
            module = emitter.emit(batch, emit)
        called.update(dict.fromkeys(module.objects))
        helpers.update(dict.fromkeys(module.helpers))
        return module

    def compiled(module: EmittedModule) -> list[CompiledObject]:
        return _objects(module, emit, options.cache, keeps_ir)

    if workers <= 1:
        for emitter, requests in batches:
            module = emitted(emitter, requests)
            made.append(Made(emitter, module, partial(list, compiled(module))))
        objects = [o for batch in made for o in batch.objects()]
        objects += [build_helper(text, emit, options.cache) for text in helpers]
        return [*objects, *map(_given, called)], _ranged(made), beside(made)
    from concurrent.futures import ThreadPoolExecutor  # slow to load, and most programs need none

    pool = ThreadPoolExecutor(workers, thread_name_prefix="compile")
    try:
        for emitter, requests in batches:
            module = emitted(emitter, requests)
            made.append(Made(emitter, module, pool.submit(compiled, module).result))
        shared = [pool.submit(build_helper, text, emit, options.cache) for text in helpers]
        other = beside(made)
        objects = [*(o for batch in made for o in batch.objects()), *(future.result() for future in shared)]
        return [*objects, *map(_given, called)], _ranged(made), other
    finally:
        pool.shutdown(cancel_futures=True)


def _given(data: bytes) -> CompiledObject:
    """An object that somebody else compiled."""
    return CompiledObject(data, 0.0, 0.0, cached=True)


def _objects(
    module: EmittedModule, emit: EmitOptions, cache: ObjectCache | None, keeps_ir: bool
) -> list[CompiledObject]:
    if module.language == "llvm":
        return [build_object(text, options, cache, keeps_ir) for text, options in modules_of(module, emit)]
    from ...codegen.c_compiler import build_c_object

    return [build_c_object(module.llvm_ir, emit, cache)]


def _batches(
    part: Part, batches: Callable[[Sequence[KernelRequest]], Sequence[Sequence[KernelRequest]]]
) -> Sequence[Sequence[KernelRequest]]:
    return batches(part.requests) if part.emitter.language == "llvm" else [part.requests]


def batches_of(requests: Sequence[KernelRequest]) -> list[Sequence[KernelRequest]]:
    """Groups of consecutive kernels that share a module, as equal in size as possible.

    They depend only on the number of kernels, so equal programs give equal objects on every machine.
    """
    count = max(-(-len(requests) // BATCH), min(2, -(-len(requests) // FEW)))
    bounds = [len(requests) * n // count for n in range(count + 1)] if count else []
    return [requests[begin:end] for begin, end in pairwise(bounds)]


def _stages(parts: Sequence[Part], options: CompileOptions) -> Iterator[tuple[str, str]]:
    """File names and texts in the order of the stages: legacy.0.forms.txt, legacy.1.ll, legacy.2.optimized.ll, …

    A stage holds all kernels of a stack, not one batch, because that is easier to read.
    """
    emit = replace(options.emit, keep_stages=True)
    for part in parts:
        module = part.emitter.emit(part.requests, emit)
        if module.forms:
            yield f"{part.emitter.name}.0.forms.txt", forms_text(part.emitter.name, module.forms)
        if module.language == "llvm":
            named = [*module.stages, ("ll", module.llvm_ir)]
            texts = modules_of(module, emit)
            named.append(("optimized.ll", "\n".join(optimize(*text) for text in texts)))
            named.append(("s", "\n".join(assembly(*text) for text in texts)))
            for count, text in enumerate(module.helpers, 1):
                named += [(f"helper{count}.ll", text), (f"helper{count}.s", assembly(text, emit))]
        else:
            from ...codegen.c_compiler import c_assembly

            named = [("c", module.llvm_ir), ("s", c_assembly(module.llvm_ir, emit))]
        for number, (name, text) in enumerate(named, 1):
            yield f"{part.emitter.name}.{number}.{name}", text
