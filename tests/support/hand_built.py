"""Hand-built plans, and a fake stack that emits their kernels, for tests of the host back end."""

import numpy as np

from ...backends.base import CompileOptions, Emitter
from ...backends.host.compiler import HostCompiler
from ...codegen.options import EmittedModule
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array, tuple_shape
from ...planning.plan import (
    Allocation,
    AllocationKind,
    BufferAssignment,
    BufferSlice,
    KernelArgument,
    KernelRequest,
    KernelStep,
    Plan,
)

OPTIONS = CompileOptions(cache=None)


class Programs:
    """Builder of plans with one shape. Each kernel computes `out = f(in…)` over whole arrays."""

    def __init__(self, shape, parameters, constants=()):
        self.shape, self.size = shape, shape.bytes
        self.parameters = [
            Instruction(Op.PARAMETER, f"p{i}", s, (), {"parameter_number": i}) for i, s in enumerate(parameters)
        ]
        self.allocations = [
            Allocation(i, AllocationKind.PARAMETER, s.bytes, min(16, s.dtype.bytes), i, s)
            for i, s in enumerate(parameters)
        ]
        for value in constants:
            self.add(AllocationKind.CONSTANT, shape=shape, literal=Literal(shape, value))

    def add(self, kind, number=-1, shape=None, literal=None):
        index = len(self.allocations)
        self.allocations.append(Allocation(index, kind, self.size, 64, number, shape, literal))
        return index

    def whole(self, allocation):
        return BufferSlice(allocation, 0, self.size)

    def kernel(self, name, opcode, reads, writes):
        instruction = Instruction(opcode, name, self.shape, tuple(self.parameters[:1] * len(reads)))
        arguments = [KernelArgument(self.whole(a), self.allocations[a].alignment, False) for a in reads]
        arguments += [KernelArgument(self.whole(a), 64, True) for a in writes]
        request = KernelRequest(name, instruction, tuple(arguments), tuple(range(len(reads))), (len(reads),))
        return KernelStep(instruction, request, tuple(a.slice for a in arguments))

    def plan(self, steps, results, elsewhere=()):
        """Build a plan. elsewhere: (result number, allocation) of results without an allocation of their own."""
        root = Instruction(Op.TUPLE, "root", tuple_shape(*[self.shape] * results), ())
        entry = Computation("main", (*self.parameters, root), root)
        slices = {(root, (n,)): self.whole(a) for n, a in elsewhere}
        kernels = {s.kernel.name: s.kernel for s in steps if isinstance(s, KernelStep)}
        assignment = BufferAssignment(tuple(self.allocations), slices)
        return Plan(Module("m", (entry,), entry), assignment, tuple(steps), tuple(kernels.values()))


INSTRUCTIONS = {Op.ADD: "fadd", Op.MULTIPLY: "fmul", Op.SUBTRACT: "fsub"}


def emit(requests, options):
    """A fake stack for binary f32 ops on row-major arrays."""
    return EmittedModule("\n".join(_kernel_ir(r) for r in requests), (("fake.txt", f"{len(requests)} kernels"),))


def _kernel_ir(r):
    return f"""
define void @{r.name}(ptr noalias %a, ptr noalias %b, ptr noalias align 64 %out) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %po = getelementptr float, ptr %out, i64 %i
  %x = load float, ptr %pa
  %y = load float, ptr %pb
  %z = {INSTRUCTIONS[r.instruction.opcode]} float %x, %y
  store float %z, ptr %po
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, {r.instruction.shape.size}
  br i1 %done, label %exit, label %loop
exit:
  ret void
}}"""


FAKE = Emitter("fake", emit)


def compiled(plan, emit_for=lambda request: FAKE, options=OPTIONS):
    return HostCompiler().compile(plan, emit_for, options)


def add_program(shape, parameters=None):
    p = Programs(shape, parameters or [shape, shape])
    out = p.add(AllocationKind.RESULT, 0, shape)
    return p.plan([p.kernel("add", Op.ADD, [0, 1], [out])], 1)


F32 = array(DType.F32, 3, 4)
X, Y = (np.arange(12, dtype=np.float32).reshape(3, 4) + n for n in range(2))
