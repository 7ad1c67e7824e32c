"""Kernels of programs, each once, with the time that they take and the rows of the ledger that they need."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..backends.base import CompileOptions
from ..formats.program import Program
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Module
from ..migration.choose import needs
from ..migration.compile import compile_program
from ..migration.weights import Weights
from ..planning.plan import KernelStep
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
    executable = compile_program(program, options=CompileOptions(profile=True))
    assert executable.plan is not None
    inputs = program.inputs if program.inputs is not None else filled_inputs(program.module, "random")
    executable.execute(inputs)
    executable.profile(clear=True)
    for _ in range(RUNS):
        executable.execute(inputs)
    steps = {step.instruction.name: step for step in executable.plan.walk() if isinstance(step, KernelStep)}
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


def weights_of(kernels: Harvest) -> Weights:
    """Shares of kernel time by the rows that are needed. Each program counts as much as any other."""
    names = {name for kernel in kernels.values() for name in kernel.programs}
    total = sum(kernel.share for kernel in kernels.values()) or 1.0
    shares: dict[str, float] = {}
    for kernel in kernels.values():
        rows = " ".join(kernel.rows)
        shares[rows] = shares.get(rows, 0.0) + kernel.share / total
    return Weights(len(names), len(kernels), shares)
