"""Kernels of programs, each once, with the time that they take and the rows of the ledger that they need."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from ..backends.base import CompileOptions
from ..backends.host.compiler import HostCompiler
from ..formats.program import Program
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Module
from ..hlo.verify.verifier import verify
from ..migration import Flags, emit_for
from ..migration.choose import needs
from ..migration.programs import plan_of
from ..migration.weights import Weights
from ..planning.plan import ConditionalStep, KernelStep, Step, WhileStep
from .filled_inputs import filled_inputs
from .kernel_module import kernel_module

RUNS = 3
"""Timed runs of a program, after one that is not."""


@dataclass
class Kernel:
    """module: what it computes, by itself. rows: names of rows of the ledger, sorted; none for a library's kernel.

    share: of the time of each program's kernels, added over the programs. programs: their names.
    """

    module: Module
    rows: tuple[str, ...]
    share: float = 0.0
    programs: dict[str, None] = field(default_factory=dict)


Harvest = dict[Hashable, Kernel]
"""Kernels by structure: equal ones, but for names, are one."""


def harvest(program: Program, kernels: Harvest) -> None:
    """Run a program and add its kernels. Raises what compiling and running raise."""
    options, compiler = CompileOptions(profile=True), HostCompiler()
    plan = plan_of(program)
    if plan is None:
        verify(program.module)
        plan = compiler.run_hlo_passes(program.module, options)
    executable = compiler.compile(plan, emit_for(Flags()), options)
    inputs = program.inputs if program.inputs is not None else filled_inputs(program.module, "random")
    executable.execute(inputs)
    executable.profile(clear=True)
    for _ in range(RUNS):
        executable.execute(inputs)
    steps = {step.instruction.name: step for step in _kernels(plan.steps)}
    rows = [row for row in executable.profile().rows if row.what == "kernel" and row.calls and row.name in steps]
    total = sum(row.total for row in rows) or 1.0
    for row in rows:
        step = steps[row.name]
        i = step.instruction
        key = instruction_key(i, tuple(operand.shape for operand in i.operands))
        if key not in kernels:
            kernels[key] = Kernel(kernel_module(i), needs(step.kernel))
        kernels[key].share += row.total / total
        kernels[key].programs[program.name] = None


def _kernels(steps: Sequence[Step]) -> Iterator[KernelStep]:
    """The kernel steps of a program, in loops and branches, too."""
    for step in steps:
        if isinstance(step, KernelStep):
            yield step
        elif isinstance(step, WhileStep):
            yield from _kernels((*step.condition, *step.body))
        elif isinstance(step, ConditionalStep):
            for branch in step.branches:
                yield from _kernels(branch)


def weights_of(kernels: Harvest) -> Weights:
    """Shares of kernel time by the rows that are needed. Each program counts as much as any other."""
    names = {name for kernel in kernels.values() for name in kernel.programs}
    total = sum(kernel.share for kernel in kernels.values()) or 1.0
    shares: dict[str, float] = {}
    for kernel in kernels.values():
        rows = " ".join(kernel.rows)
        shares[rows] = shares.get(rows, 0.0) + kernel.share / total
    return Weights(len(names), len(kernels), shares)
