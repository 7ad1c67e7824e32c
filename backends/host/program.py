"""Whether the thunks of a program become a native function, and making it. docs/adr/0032-compiled-host-program.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...codegen.contract import ARCHITECTURES
from ...codegen.optimize import CompiledObject, optimize
from ...codegen.options import EmitOptions
from ...hlo.records import dataclass
from ...thunks import ConditionalThunk, CopyThunk, KernelThunk, ProfileThunk, SequentialThunk, WhileThunk
from ..base import CompileOptions, HostProgramKind

if TYPE_CHECKING:
    from ...thunks.host_build import Inlining
    from ...thunks.host_module import HostModule


@dataclass(frozen=True)
class BuiltHost:
    """A host program that is not loaded yet."""

    module: HostModule
    object: CompiledObject
    inlining: Inlining | None = None

    def text(self, emit: EmitOptions) -> str:
        """MLIR of what was compiled."""
        return (self.module if self.inlining is None else self.inlining.prepare(emit)[0]).text


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


SMALL = 1e-6
"""Estimated seconds of a kernel that may be inlined: some hundred elements."""

MANY_TRIPS = 256
"""Iterations from which inlining kernels into a loop is worth the time to compile them once more."""


def inlined(thunks: SequentialThunk, seconds: Mapping[str, float], options: CompileOptions) -> frozenset[str]:
    """The symbols of kernels to inline where they are small: those in loops, unless times are noted there."""
    if options.emit.target.architecture not in ARCHITECTURES or not options.emit.optimized:
        return frozenset()
    long = [
        t for t in thunks.walk() if isinstance(t, WhileThunk) and (t.trip_count is None or t.trip_count >= MANY_TRIPS)
    ]
    inside = [list(SequentialThunk((loop,)).walk()) for loop in long]
    loops = [steps for steps in inside if not any(isinstance(t, ProfileThunk) for t in steps)]
    kernels = [t for steps in loops for t in steps if isinstance(t, KernelThunk)]
    return frozenset(t.symbol for t in kernels if t.split is None and seconds.get(t.symbol, SMALL) < SMALL)


def build(
    thunks: SequentialThunk,
    seconds: Mapping[str, float],
    options: CompileOptions,
    kernels: Sequence[str],
    optimized: Callable[[], Sequence[str] | None] | None = None,
) -> BuiltHost:
    """Compile the host program. seconds: an upper estimate of each kernel's run time, by symbol. kernels: LLVM IR of
    those that may be inlined. optimized: gives it after all passes, if somebody has it.
    """
    from ...thunks.host_build import Inlining, build_host, module_of  # it loads another LLVM

    module = module_of(thunks, options.emit, seconds)
    if not kernels:
        return BuiltHost(module, build_host(module, options.emit, options.cache))
    inlining = Inlining(thunks, seconds, module, tuple(kernels))
    return BuiltHost(module, inlining.build(options.emit, options.cache, optimized), inlining)


def stages(host: BuiltHost, options: CompileOptions) -> Iterator[tuple[str, str]]:
    """File names and texts of the host program's IR, in the order of the stages."""
    from ...codegen.inline import with_kernels
    from ...thunks.host_build import effort, host_ir

    module, kernels = (host.module, []) if host.inlining is None else host.inlining.prepare(options.emit)
    text = host_ir(module)
    yield "host.mlir", module.text
    yield "host.ll", text
    whole = with_kernels(text, kernels, options.emit) if kernels else optimize(text, effort(module, options.emit))
    yield "host.optimized.ll", whole
