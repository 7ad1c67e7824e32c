"""How a case is run on a stack: everything beside the stack itself that may decide whether it goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from ..backends.base import CompileOptions, EmitFor, HostProgramKind
from ..backends.host.compiler import HostCompiler
from ..codegen.cache import DEFAULT_CACHE
from ..codegen.options import EmitOptions
from ..codegen.threads import on_threads
from ..formats.program import Program, result_leaves
from ..formats.text.printer import print_module
from ..hlo.ir import Module
from ..hlo.shapes import Shape
from ..migration.choose import emit_first, emit_for
from ..migration.flags import STACK_NAMES, XLA_STACKS, Flags
from ..migration.stacks import STACKS, prepare
from ..migration.xla_programs import XlaProgram, read_program, xla_program
from ..passes.pipeline import FUSED, PASSES, PipelineOptions, default_passes
from ..planning.allocation import POOL_ALIGNMENT
from ..planning.plan import Plan
from ..planning.planner import PlanOptions, plan
from ..xla_kernels.folder import one_module


@dataclass(frozen=True)
class Setting:
    """cache: use the cache of objects on disk. red_zones: run kernels between guard bytes. host_program: how kernels
    are called. threads: that may work at a kernel. fusion: False leaves each op a kernel of its own, but for XLA's
    fusions. reuse: False gives every value memory of its own. kernels: the first N are of the stack; the other stack
    emits the rest. optimized: as of EmitOptions. dump: the folder of XLA's kernels that the case came from, with the
    module's name; they are of its module only, so that jaxlib makes those of a changed one.
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

    def options(self) -> CompileOptions:
        """For a compilation in a process with this number of threads."""
        return CompileOptions(
            replace(EmitOptions.host(), optimized=self.optimized),
            cache=DEFAULT_CACHE if self.cache else None,
            red_zones=self.red_zones,
            host_program=self.host_program,
        )


USUAL = Setting()


def execute(
    module: Module,
    inputs: Sequence[np.ndarray],
    stack: str,
    setting: Setting,
    planned: Callable[[], Plan] | None = None,
) -> list[np.ndarray]:
    """The results of a verified module on a stack. Raises whatever the stack does; FlagError for an unknown one.

    planned: its plan by the setting, which several stacks may share; None makes it.
    """
    if not is_compiled(stack):
        text = print_module(module) if stack.startswith("xla") else ""
        return prepare(stack, Program(module.name, text, module)).run(inputs)
    flags = Flags.parse(stack)
    with on_threads(setting.threads):
        if flags.xla:
            plan, emitters = _xla_plan(module, flags, setting)
        else:
            plan = planned() if planned is not None else plan_of_setting(module, setting)
            emitters = _emitters(plan, flags, setting)
        executable = HostCompiler().compile(plan, emitters, setting.options())
        executable.program = module
        return executable.execute(inputs, _spoiled(module))


SPOILED = 0xCB
"""Each byte of a result before the run, so that an element that is not written shows each time."""


def _spoiled(module: Module) -> list[np.ndarray | None] | None:
    """Memory for the results; None for the stack's own, where results are dynamic, strided or an input's memory."""
    leaves = result_leaves(module)
    if "input_output_alias" in module.attributes or any(s.is_dynamic for s in leaves):
        return None
    return [_spoiled_array(s) if s.is_row_major and s.size else None for s in leaves]


def _spoiled_array(shape: Shape) -> np.ndarray:
    block = np.full(shape.bytes + POOL_ALIGNMENT, SPOILED, np.uint8)
    start = -block.ctypes.data % POOL_ALIGNMENT
    return block[start : start + shape.bytes].view(shape.dtype.numpy).reshape(shape.dims)


def plan_of_setting(module: Module, setting: Setting) -> Plan:
    """The plan of a verified module."""
    names = default_passes(module)
    passes = names if setting.fusion else tuple(n for n in names if n != "fuse" and FUSED not in PASSES[n].requires)
    return plan(module, PlanOptions(PipelineOptions(passes), reuse=setting.reuse))


def planned_once(module: Module, setting: Setting) -> Callable[[], Plan]:
    """What makes the plan of a verified module when it is first asked, for all stacks: none of them changes it."""
    return cache(lambda: plan_of_setting(module, setting))


def _emitters(made: Plan, flags: Flags, setting: Setting) -> EmitFor:
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


def _xla_plan(module: Module, flags: Flags, setting: Setting) -> tuple[Plan, EmitFor]:
    """XLA's plan. The first N kernels are those of the first N instructions of XLA's program."""
    xla = xla_of_setting(module, flags, setting)
    if setting.kernels is None:
        return xla.plan(flags, setting.options(), reuse=setting.reuse), xla.emit_for(flags)
    names = {i.name for i in list(xla.instructions)[: setting.kernels]}
    first, rest = xla.emit_for(flags), emit_for(Flags.parse(other_stack(str(flags))))
    made = xla.plan(flags, setting.options(), names, setting.reuse)
    return made, lambda request: (first if xla.name_of(request.instruction) in names else rest)(request)


def is_compiled(stack: str) -> bool:
    """Whether a stack is flags of a compiled run."""
    return stack in (*STACK_NAMES, *XLA_STACKS) or stack not in STACKS


def other_stack(flags: str) -> str:
    """The stack to compare flags with: the one that is not their default."""
    return next(name for name in STACK_NAMES if name != Flags.parse(flags).default)
