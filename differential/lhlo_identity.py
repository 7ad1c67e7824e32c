"""Shows that a program written as LHLO and read back is the same program: same IR, same thunks, same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..backends.base import CompileOptions
from ..backends.host.compiler import HostCompiler
from ..codegen.options import EmitOptions, Target
from ..formats.program import Program
from ..hlo.library.calls import LIBRARY
from ..migration.choose import emit_for, emitter
from ..migration.flags import STACK_NAMES, Flags
from ..migration.programs import plan_of
from ..planning.plan import KernelRequest, Plan
from ..planning.planner import plan as plan_module
from ..thunks import from_plan as thunks_of
from ..thunks import to_text
from .executions import same_bits
from .fake_inputs import fake_inputs


def difference(program: Program) -> str | None:
    """What differs once a program has become LHLO, as text and as bytecode; None if nothing does.

    Compared on both stacks: the LLVM IR of each kernel, the thunks, and the bits of the results. Raises
    UnsupportedError if a program cannot be planned, written or emitted.
    """
    from ..lhlo import from_plan, parse_bytecode, parse_text
    from ..lhlo.to_plan import to_plan

    plan = plan_of(program) or plan_module(program.module)
    if (reason := _kernels(plan)) is not None:
        return reason
    written = from_plan(plan)
    text = written.to_text()
    forms = {"text": parse_text(text), "bytecode": parse_bytecode(written.to_bytecode())}
    again = {form: to_plan(lhlo) for form, lhlo in forms.items()}
    for form, other in again.items():
        if to_text(thunks_of(other)) != to_text(thunks_of(plan)):
            return f"the thunks from {form} differ"
        if from_plan(other).to_text() != text:
            return f"the program read from {form} is written differently"
    inputs = list(program.inputs) if program.inputs is not None else fake_inputs(program.module)
    for stack in STACK_NAMES:
        wanted = _run(plan, stack, inputs)
        for form, other in again.items():
            if not same_bits(_run(other, stack, inputs), wanted):
                return f"{stack}: the results of the program from {form} differ"
    return None


def _kernels(plan: Plan) -> str | None:
    """What differs in the LLVM IR of a kernel; library calls have none of a stack's own."""
    from ..lhlo import from_kernels, parse_bytecode, parse_text, to_kernels

    requests = [k for k in plan.kernels if k.instruction.opcode not in LIBRARY]
    if not requests:
        return None
    written = from_kernels(requests)
    read = {"text": parse_text(written.to_text()), "bytecode": parse_bytecode(written.to_bytecode())}
    for stack in STACK_NAMES:
        wanted = list(_ir(stack, requests))
        for form, lhlo in read.items():
            for request, one, other in zip(requests, wanted, _ir(stack, to_kernels(lhlo)), strict=True):
                if one != other:
                    return f"{stack}: the LLVM IR of kernel {request.name} from {form} differs"
    return None


def _ir(stack: str, requests: Sequence[KernelRequest]) -> Iterator[str]:
    room = emitter(stack)
    options = EmitOptions(Target.host())
    for request in requests:
        yield room.emit([request], options).llvm_ir


def _run(plan: Plan, stack: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    compiled = HostCompiler().compile(plan, emit_for(Flags.parse(stack)), CompileOptions())
    return compiled.execute(inputs)
