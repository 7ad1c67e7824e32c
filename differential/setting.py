"""How a case is run on a stack: everything besides the stack itself that may decide whether it goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ..backends.base import CompileOptions, DebugKind, EmitFor, HostProgramKind
from ..codegen.cache import DEFAULT_CACHE
from ..codegen.options import EmitOptions
from ..formats.program import Program
from ..formats.text.printer import print_module
from ..hlo.ir import Module
from ..migration.choose import emit_first, emit_for
from ..migration.flags import STACK_NAMES, XLA_STACKS, Flags
from ..migration.stacks import STACKS
from ..migration.xla_programs import XlaProgram, read_program, xla_program
from ..passes.pipeline import FUSED, PASSES, PipelineOptions, default_passes
from ..planning.plan import Plan
from ..planning.planner import PlanOptions, plan
from ..xla_kernels.folder import one_module
from .permitted import BUDGET


@dataclass(frozen=True)
class Setting:
    """cache: use the cache of objects on disk. red_zones: run kernels between guard bytes. memory: run them in the
    checking mode, with junk around their arguments and in memory that was not written. host_program: how kernels are
    called. threads: that may work at a kernel. fusion: False leaves each op a kernel of its own, but for XLA's fusions.
    reuse: False gives every value memory of its own, also results to which the module's header gives that of
    parameters. kernels: the first N are of the stack; the other stack emits the rest. optimized: as of EmitOptions.
    dump: the folder of XLA's kernels that the case came from, with the module's name; they are of its module only, so
    that jaxlib makes those of a changed one. without_forms: as of EmitOptions. without_rewrites: what passes leave out,
    by names of passes/rewrites.py. budget: seconds to find out what else the float rules permit. exact: compare over
    finite fields (docs/exact.md) in place of runs on the inputs.
    """

    cache: bool = True
    red_zones: bool = False
    host_program: HostProgramKind | str = HostProgramKind.AUTO
    threads: int = 1
    fusion: bool = True
    reuse: bool = True
    kernels: int | None = None
    optimized: bool = True
    dump: str = ""
    budget: float = BUDGET
    memory: bool = False
    exact: bool = False
    without_forms: tuple[str, ...] = ()
    without_rewrites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("without_forms", "without_rewrites"):  # of a file they come as lists
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def without(self) -> frozenset[str]:
        """The rewrites that passes leave out."""
        return frozenset(self.without_rewrites)

    def options(self) -> CompileOptions:
        """For a compilation in a process with this number of threads."""
        return CompileOptions(
            replace(EmitOptions.host(), optimized=self.optimized, without_forms=self.without_forms),
            cache=DEFAULT_CACHE if self.cache else None,
            red_zones=self.red_zones,
            debug=DebugKind.MEMORY if self.memory else "",
            host_program=self.host_program,
            threads=None if self.cache else 1,  # runs without it are many, in a process for each processor
        )


USUAL = Setting()


def plan_of_setting(module: Module, setting: Setting) -> Plan:
    """The plan of a verified module."""
    names = default_passes(module)
    passes = names if setting.fusion else tuple(n for n in names if n != "fuse" and FUSED not in PASSES[n].requires)
    if not setting.reuse:
        own = {k: v for k, v in module.attributes.items() if k not in ("input_output_alias", "buffer_donor")}
        module = replace(module, attributes=MappingProxyType(own))
    return plan(module, PlanOptions(PipelineOptions(passes, without=setting.without), reuse=setting.reuse))


def emitters_of(made: Plan, flags: Flags, setting: Setting) -> EmitFor:
    """The emitters of a plan's kernels by flags and a setting."""
    if setting.kernels is None:
        return emit_for(flags)
    names = {kernel.name for kernel in made.kernels[: setting.kernels]}
    return emit_first(flags, names, Flags.parse(other_stack(str(flags))))


def xla_of_setting(module: Module, flags: Flags, setting: Setting) -> XlaProgram:
    """The module as XLA schedules it, with the kernels of the stack of XLA's that the flags name: those of the
    setting's folder, if they are of this module and this generation, else jaxlib's.
    """
    text = print_module(module)
    if setting.dump:
        given = read_program(one_module(Path(setting.dump)))
        if given.generation in ("", flags.xla.split("-")[1]) and print_module(given.module) == text:
            return given
    return xla_program(Program(module.name, text, module), flags.xla, setting.cache)


def is_compiled(stack: str) -> bool:
    """Whether a stack is flags of a compiled run."""
    return stack in (*STACK_NAMES, *XLA_STACKS) or stack not in STACKS


def other_stack(flags: str) -> str:
    """The stack to compare flags with: the one that is not their default."""
    return next(name for name in STACK_NAMES if name != Flags.parse(flags).default)
