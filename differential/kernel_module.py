"""A kernel as a module of its own: the body of a fusion, or an unnested op on parameters."""

from __future__ import annotations

from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..passes.rewriting import alone, callees_first


def module_of(computation: Computation) -> Module:
    """The computation as the entry of a module of its own."""
    return Module(computation.name, callees_first(computation), computation)


def kernel_module(instruction: Instruction) -> Module:
    """The program that a kernel's instruction computes."""
    if instruction.opcode is Op.FUSION:
        return module_of(instruction.called()[0])
    return module_of(alone(instruction, "kernel"))
