"""Module → host executable: verify, plan, emit by the flags, load."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..backends.base import CompileOptions, EmitFor
from ..backends.host.compiler import HostCompiler, Stopwatch
from ..formats.program import Program
from ..formats.text.printer import print_module
from ..hlo.ir import Module
from ..planning.plan import Plan
from .choose import emit_for
from .flags import LEDGER, OTHERS, Flags
from .programs import plan_of

if TYPE_CHECKING:
    from ..backends.host.ahead import AheadOptions
    from ..backends.host.executable import HostExecutable


class Plans:
    """Plans of the host's compiler, each made once for all stacks that run it; none of them changes it. spared: seconds
    that were not spent a second time.
    """

    def __init__(self) -> None:
        self.spared = 0.0
        self._made: list[tuple[Module, CompileOptions, Plan, float]] = []

    def plan(self, module: Module, options: CompileOptions) -> Plan:
        """The plan of a verified module."""
        for known, others, plan, seconds in self._made:
            same = others.emit.strict == options.emit.strict and others.devices == options.devices
            if known is module and same:
                self.spared += seconds
                return plan
        start = time.perf_counter()
        plan = HostCompiler().run_hlo_passes(module, options)
        self._made.append((module, options, plan, time.perf_counter() - start))
        return plan


def compile_module(
    module: Module, flags: Flags | None = None, options: CompileOptions | None = None, plans: Plans | None = None
) -> HostExecutable:
    """Compile a module. flags: None for the ledger's; plans: shared with other compilations. Raises VerificationError,
    UnsupportedError (names stack and opcode) or CodegenError.
    """
    from ..hlo.verify.verifier import verify

    flags, options = flags or Flags.parse(LEDGER), options or CompileOptions()
    if flags.xla:
        from .xla_programs import compile_xla

        return compile_xla(Program(module.name, print_module(module), module), flags, options)
    compiler, watch = HostCompiler(), Stopwatch()
    with watch.measure("verify"):
        verify(module)
    with watch.measure("plan"):
        plan = (plans or Plans()).plan(module, options)
    return compiler.compile(plan, emit_for(flags), options, module, watch)


def compile_program(
    program: Program, flags: Flags | None = None, options: CompileOptions | None = None, plans: Plans | None = None
) -> HostExecutable:
    """Compile a loaded program: by its own plan if it has one (LHLO), else as `compile_module` does."""
    flags = flags or Flags.parse(LEDGER)
    if flags.xla:
        from .xla_programs import compile_xla

        return compile_xla(program, flags, options or CompileOptions())
    plan = plan_of(program)
    if plan is None:
        return compile_module(program.module, flags, options, plans)
    return HostCompiler().compile(plan, emit_for(flags), options or CompileOptions())


def emitters_of(program: Program, flags: Flags, options: CompileOptions | None = None) -> EmitFor:
    """The emitters with which `compile_program` compiles a program."""
    if not flags.xla:
        return emit_for(flags)
    from .xla_programs import xla_program

    return xla_program(program, flags.xla, (options or CompileOptions()).cache is not None).emit_for(flags)


def compile_program_ahead(program: Program, flags: Flags, options: AheadOptions) -> dict[str, bytes]:
    """Compile a loaded program ahead of time: files by name, as `backends.host.ahead.compile_ahead`; or one C file."""
    from ..hlo.verify.verifier import verify

    plan = plan_of(program)
    if plan is None:
        verify(program.module)
        plan = HostCompiler().run_hlo_passes(program.module, CompileOptions(options.emit))
    if str(flags) in OTHERS:
        from ..backends.registry import platform

        return platform(str(flags)).compiler().compile_ahead_of_time(plan, None, options)
    return HostCompiler().compile_ahead_of_time(plan, emit_for(flags), options)
