"""A kernel as a module of its own: the body of a fusion, or an unnested op on parameters."""

from __future__ import annotations

from ..hlo.ir import CONTROL_PREDECESSORS, Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..passes.rewriting import callees_first

TIES = frozenset({CONTROL_PREDECESSORS, "control-successors"})


def module_of(computation: Computation) -> Module:
    """The computation as the entry of a module of its own."""
    return Module(computation.name, callees_first(computation), computation)


def kernel_module(instruction: Instruction) -> Module:
    """The program that a kernel's instruction computes."""
    if instruction.opcode is Op.FUSION:
        return module_of(instruction.called()[0])
    parameters = {
        operand: Instruction(Op.PARAMETER, f"p{n}", operand.shape, (), {"parameter_number": n})
        for n, operand in enumerate(dict.fromkeys(instruction.operands))
    }
    # What must run before it is not in this module.
    attributes = {key: value for key, value in instruction.attributes.items() if key not in TIES}
    root = instruction.replace(operands=tuple(parameters[o] for o in instruction.operands), attributes=attributes)
    return module_of(Computation("kernel", (*parameters.values(), root), root))
