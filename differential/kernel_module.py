"""A kernel as a module of its own: the body of a fusion, or an unnested op on parameters."""

from __future__ import annotations

from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op


def module_of(computation: Computation) -> Module:
    """The computation as the entry of a module of its own."""
    done: dict[Computation, None] = {}

    def visit(one: Computation) -> None:
        for i in one.calling:
            for callee in i.called():
                if callee not in done:
                    visit(callee)
        done[one] = None

    visit(computation)
    return Module(computation.name, tuple(done), computation)


def kernel_module(instruction: Instruction) -> Module:
    """The program that a kernel's instruction computes."""
    if instruction.opcode is Op.FUSION:
        return module_of(instruction.called()[0])
    parameters = tuple(
        Instruction(Op.PARAMETER, f"p{n}", operand.shape, (), {"parameter_number": n})
        for n, operand in enumerate(instruction.operands)
    )
    root = instruction.replace(operands=parameters)
    return module_of(Computation("kernel", (*parameters, root), root))
