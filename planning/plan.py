"""The Plan: a scheduled module with buffers and a partition into kernels, from which both stacks start (docs/adr/0001).

Equal plans give equal thunk sequences: the choice of the stack that emits a kernel changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ..hlo.display import Displayed
from ..hlo.ir import Computation, Instruction, Literal, Module
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape, ShapeIndex

if TYPE_CHECKING:  # a program from a file needs this module, and nothing of passes' analyses
    from .partition import Partition

POOL_ALIGNMENT = 64
"""Alignment in bytes of every block that the program allocates (constants, temporaries, results)."""

USER_ALIGNMENT = 16
"""Maximum alignment in bytes that is assumed for a caller's arrays (numpy gives 16)."""


def slot_alignment(size: int) -> int:
    """Alignment in bytes of a buffer of `size` bytes: its size rounded up to a power of two, 64 at most.

    So a cache line holds many scalars, and no scalar crosses two lines.
    """
    return min(POOL_ALIGNMENT, 1 << max(size - 1, 0).bit_length())


class AllocationKind(Enum):
    PARAMETER = "parameter"  # the caller's array, read-only unless the module gives it to a result
    CONSTANT = "constant"  # filled once, at load
    RESULT = "result"  # returned to the caller
    TEMPORARY = "temporary"  # the one arena, alive during a run


@dataclass(frozen=True, slots=True)
class Allocation:
    """One block of memory of a program.

    size, alignment: bytes. number: of the parameter or result leaf, in flattened order without tokens. shape:
    parameters and results have its layout. result: for a parameter that the module's input_output_alias gives to a
    result, the number of that result; it is then written in place, and the result has no allocation of its own.
    """

    index: int
    kind: AllocationKind
    size: int
    alignment: int
    number: int = -1
    shape: Shape | None = None
    literal: Literal | None = None
    result: int = -1

    @property
    def read_only(self) -> bool:
        return self.kind is AllocationKind.CONSTANT or (self.kind is AllocationKind.PARAMETER and self.result < 0)


@dataclass(frozen=True, slots=True, order=True)
class BufferSlice:
    """Bytes [offset, offset + size) of an allocation."""

    allocation: int
    offset: int
    size: int

    def overlaps(self, other: BufferSlice) -> bool:
        return (
            self.allocation == other.allocation
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )

    def alignment(self, block: int) -> int:
        """Alignment in bytes of the slice's address, if the allocation is aligned to `block` bytes.

        At most `slot_alignment`, which holds for every slice of this size, so that kernels can be shared between
        slices.
        """
        offset = self.offset & -self.offset
        return min(block, offset or block, slot_alignment(self.size))


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
    operand is read only at the element written next; or it is the array that a dynamic-update-slice or scatter at the
    root updates; or a library routine (hlo/library/calls.py) overwrites it with its result; or it is the operand of a
    sort, which reads each row before it writes that row.
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


MOST_MARKS = 1 << 24
"""Ids of profile steps are below this."""


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
