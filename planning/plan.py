"""The Plan: a scheduled module with buffers and a partition into kernels, from which both stacks start (docs/adr/0001).

Equal plans give equal thunk sequences: the choice of the stack that emits a kernel changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..hlo.display import Displayed
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import OUTSIDE
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from ..hlo.shapes import Shape, ShapeIndex
from .allocation import Allocation as Allocation
from .allocation import AllocationKind as AllocationKind
from .allocation import BufferSlice as BufferSlice
from .partition import Partition


@dataclass(frozen=True, eq=False)
class BufferAssignment:
    """The place of every array value of a module. Tuples have no buffer, only their leaves do.

    scratch: the scratch memory offered to each kernel that needs some (scratch.py), alive only while it runs.
    """

    allocations: tuple[Allocation, ...]
    slices: Mapping[tuple[Instruction, ShapeIndex], BufferSlice]
    scratch: Mapping[Instruction, BufferSlice] = field(default_factory=dict)

    def slice_of(self, instruction: Instruction, index: ShapeIndex = ()) -> BufferSlice:
        return self.slices[instruction, index]


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One pointer parameter of a kernel. Distinct arguments never overlap, so all are noalias. alignment: bytes."""

    slice: BufferSlice
    alignment: int
    written: bool


@dataclass(frozen=True, eq=False, slots=True)
class KernelRequest:
    """Everything a stack needs to emit `void name(ptr noalias …)`: destination style, static shapes, bare pointers.

    instruction: an unnested op or a fusion (its body: `called()[0]`). Its operands and its result leaves are arrays.
    operands[i]: the number of the argument that holds the i-th operand. results[i]: the number of the argument that
    receives the i-th result leaf.
    A result that shares its operand's argument is computed in place. The plan guarantees that this is safe: either the
    operand is read only at the element written next, by this result or by others of its shape and layout, so that a
    stack computes all of these at an element before it stores one; or it is the array that a dynamic-update-slice or
    scatter at the root updates; or a library routine (hlo/library/calls.py) overwrites it with its result; or it is the
    operand of a sort, which reads each row before it writes that row.
    scratch: the number of the last argument, if that offers scratch memory: `scratch_bytes(instruction)` bytes or more,
    written and 64-byte aligned, for use while the kernel runs. This is an upper bound of what a stack may use. It is -1
    if none is offered; a kernel then uses at most ON_STACK bytes (scratch.py) of its call stack.
    partition: how the kernel may be split over threads, if it may; a stack need not (EmittedModule.ranged).
    """

    name: str
    instruction: Instruction
    arguments: tuple[KernelArgument, ...]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    scratch: int = -1
    partition: Partition | None = None

    @property
    def body(self) -> Computation | None:
        """The fused computation; None for an unnested op."""
        return self.instruction.called()[0] if self.instruction.opcode is Op.FUSION else None

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch memory that the request offers."""
        return self.arguments[self.scratch].slice.size if self.scratch >= 0 else 0

    @property
    def result_shapes(self) -> tuple[Shape, ...]:
        return tuple(shape for _, shape in self.instruction.shape.leaves())


@dataclass(frozen=True, eq=False, slots=True)
class KernelStep:
    """Run a kernel. Steps of equal kernels share one `kernel`; `arguments` are the slices of this step."""

    instruction: Instruction
    kernel: KernelRequest
    arguments: tuple[BufferSlice, ...]


@dataclass(frozen=True, eq=False, slots=True)
class CopyStep:
    """Copy bytes; source and destination do not overlap."""

    instruction: Instruction
    source: BufferSlice
    destination: BufferSlice


@dataclass(frozen=True, eq=False, slots=True)
class WhileStep:
    """Run `condition`, read the pred at `predicate`, and run `body` while it is true. trip_count: None if unknown."""

    instruction: Instruction
    condition: tuple[Step, ...]
    body: tuple[Step, ...]
    predicate: BufferSlice
    trip_count: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ConditionalStep:
    """Run one branch. selector: a pred (true → branch 0, false → 1) or an s32 (out of range → the last branch)."""

    instruction: Instruction
    selector: BufferSlice
    selector_is_pred: bool
    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """Note the time at which what `name` stands for begins or ends. id: a number from 0, its own in the program."""

    name: str
    id: int
    begin: bool


Step = KernelStep | CopyStep | WhileStep | ConditionalStep | ProfileStep


@dataclass(frozen=True, eq=False)
class Plan(Displayed):
    """A program ready for emission. kernels: the distinct requests, in order of first use."""

    module: Module
    assignment: BufferAssignment
    steps: tuple[Step, ...]
    kernels: tuple[KernelRequest, ...]

    @property
    def emitted(self) -> tuple[KernelRequest, ...]:
        """The kernels that a stack emits: all but those of ops of OUTSIDE, which are thunks of their own."""
        return tuple(k for k in self.kernels if k.instruction.opcode not in OUTSIDE)

    def walk(self) -> Iterator[Step]:
        """All steps; a loop or conditional precedes the steps inside it."""
        stack = list(reversed(self.steps))
        while stack:
            step = stack.pop()
            yield step
            if isinstance(step, WhileStep):
                stack.extend(reversed(step.condition + step.body))
            elif isinstance(step, ConditionalStep):
                stack.extend(s for branch in reversed(step.branches) for s in reversed(branch))
