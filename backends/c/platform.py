"""The platform `c`: the host's devices, runs and transfers, with kernels that a C compiler builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import ffi
from ...codegen import library
from ...codegen.c_compiler import c_compiler
from ...codegen.errors import CodegenError
from ...hlo.ir import Module
from ...hlo.library.calls import LIBRARY, is_foreign
from ...planning.plan import KernelRequest, Plan
from ..base import AheadOptions, CompileOptions, EmitFor, Emitter
from ..host.compiler import HostCompiler, Stopwatch
from ..host.platform import HostPlatform
from . import LANGUAGE, emit, unsupported

if TYPE_CHECKING:
    from ..host.executable import HostExecutable

EMITTER = Emitter("c", emit, unsupported, language=LANGUAGE)
LIBRARIES = Emitter("library", library.emit, library.unsupported)
HANDLERS = Emitter("ffi", ffi.emit, ffi.unsupported)


def emit_in_c(request: KernelRequest) -> Emitter:
    """C for all but the ops that LAPACK, an FFT or a handler of custom calls computes."""
    if request.instruction.opcode not in LIBRARY:
        return EMITTER
    return HANDLERS if is_foreign(request.instruction) else LIBRARIES


class CPlatformCompiler(HostCompiler):
    """The host's compiler with one stack: `emit_for` is not used."""

    platform_name = "c"

    def compile(
        self,
        program: Plan,
        emit_for: EmitFor | None,
        options: CompileOptions,
        source: Module | None = None,
        watch: Stopwatch | None = None,
    ) -> HostExecutable:
        c_compiler()  # one line if there is none, before any work
        executable = super().compile(program, emit_in_c, options, source, watch)
        executable.platform_name = "c"
        return executable

    def compile_ahead_of_time(self, program: Plan, emit_for: EmitFor | None, options: AheadOptions) -> dict[str, bytes]:
        from .ahead import compile_c_ahead

        return compile_c_ahead(program, options)


class CPlatform(HostPlatform):
    """The host CPU without LLVM. Unavailable where there is no C compiler."""

    name = "c"

    def unavailable(self) -> str | None:
        try:
            c_compiler()
        except CodegenError as error:
            return str(error)
        return None

    def compiler(self) -> CPlatformCompiler:
        return CPlatformCompiler()
