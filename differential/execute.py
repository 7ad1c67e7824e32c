"""Runs a case on one stack: compiles it as the setting says, with what its other runs share, and calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..backends.base import EmitFor
from ..backends.host.compiler import HostCompiler
from ..codegen.threads import on_threads
from ..formats.program import Program, result_leaves
from ..formats.text.printer import print_module
from ..hlo.ir import Module
from ..hlo.shapes import Shape
from ..migration.choose import emit_for
from ..migration.flags import Flags
from ..migration.stacks import prepare
from ..passes.fuel import without
from ..planning.allocation import POOL_ALIGNMENT
from ..planning.plan import Plan
from .setting import Setting, is_compiled, other_stack, xla_of_setting
from .shared import Shared


def execute(
    module: Module,
    inputs: Sequence[np.ndarray],
    stack: str,
    setting: Setting,
    shared: Shared | None = None,
    on_run: Callable[[], object] = lambda: None,
) -> list[np.ndarray]:
    """The results of a verified module on a stack. Raises whatever the stack does; FlagError for an unknown one.

    shared: with the other runs of the module by the setting; None: nothing. on_run: called when it is compiled.
    """
    run = ready(module, stack, setting, shared)
    on_run()
    return run(inputs)


def ready(
    module: Module, stack: str, setting: Setting, shared: Shared | None = None
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Compile a verified module: what runs it, any number of times. Arguments and errors are those of `execute`."""
    if not is_compiled(stack):
        text = print_module(module) if stack.startswith("xla") else ""
        with without(setting.without_rewrites):  # of the optimised module
            prepared = prepare(stack, Program(module.name, text, module))

        def evaluated(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            with without(setting.without_rewrites):
                return prepared.run(inputs)

        return evaluated
    flags = Flags.parse(stack)
    with on_threads(setting.threads):
        if flags.xla:
            plan, emitters = _xla_plan(module, flags, setting)
            options = setting.options()
        else:
            shared = shared or Shared(module, setting)
            plan, emitters, options = shared.plan, shared.emitters(flags), shared.options()
        executable = HostCompiler().compile(plan, emitters, options, module)

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        with on_threads(setting.threads):
            executable.fill_temporaries(SPOILED_TEMPORARY)
            return executable.execute(inputs, _spoiled(module))

    return run


SPOILED = 0xCB
"""Each byte of a result before the run, so that an element that is not written shows each time."""


SPOILED_TEMPORARY = 0x4B
"""Each byte of temporary memory before the run: what reads it too early or too late gives the same result each time. As
a number it is positive, so that a loop that counts up from it ends.
"""


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


def _xla_plan(module: Module, flags: Flags, setting: Setting) -> tuple[Plan, EmitFor]:
    """XLA's plan. The first N kernels are those of the first N instructions of XLA's program."""
    xla = xla_of_setting(module, flags, setting)
    if setting.kernels is None:
        return xla.plan(flags, setting.options(), reuse=setting.reuse), xla.emit_for(flags)
    names = {i.name for i in list(xla.instructions)[: setting.kernels]}
    first, rest = xla.emit_for(flags), emit_for(Flags.parse(other_stack(str(flags))))
    made = xla.plan(flags, setting.options(), names, setting.reuse)
    return made, lambda request: (first if xla.name_of(request.instruction) in names else rest)(request)
