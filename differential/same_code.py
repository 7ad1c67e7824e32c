"""Whether two stacks make the same machine code of a program, which proves equal results and equal run times."""

from __future__ import annotations

from ..backends.base import CompileOptions
from ..backends.host.compiler import HostCompiler
from ..codegen.optimize import assembly
from ..hlo.ir import Module
from ..hlo.library.calls import LIBRARY
from ..hlo.verify.verifier import verify
from ..migration.choose import emit_for
from ..migration.flags import Flags
from ..migration.names import XLA_STACKS
from ..planning.plan import KernelRequest


def same_code(module: Module, stacks: tuple[str, str]) -> bool:
    """Whether each kernel of a module has the same machine code on both stacks. Raises UnsupportedError.

    XLA's stacks have programs of their own, whose kernels are not compared: False.
    """
    if set(stacks) & set(XLA_STACKS):
        return False
    options = CompileOptions()
    verify(module)
    plan = HostCompiler().run_hlo_passes(module, options)
    kernels = [k for k in plan.kernels if k.instruction.opcode not in LIBRARY]
    return all(_code(kernel, stacks[0], options) == _code(kernel, stacks[1], options) for kernel in kernels)


def _code(kernel: KernelRequest, stack: str, options: CompileOptions) -> str:
    emit = emit_for(Flags.parse(stack))(kernel).emit
    return assembly(emit([kernel], options.emit).llvm_ir, options.emit)
