"""What holds for each allocation, kernel and step of any plan: checked as the text of a Plan is read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..hlo.dtypes import DType
from ..hlo.fingerprint import instruction_key
from ..hlo.ir import Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.shapes import ShapeIndex
from .allocation import POOL_ALIGNMENT, Allocation, AllocationKind, BufferSlice
from .inplace import reuses
from .partition import partition_of
from .plan import ConditionalStep, CopyStep, KernelRequest, KernelStep, ProfileStep, Step

INTERFACE = (AllocationKind.PARAMETER, AllocationKind.RESULT)


class Interface:
    """The arrays that a module takes and returns. leaves: by kind, in order. numbers: those of a parameter's arrays.

    taken: those whose allocation was seen.
    """

    def __init__(self, module: Module):
        places = [(p, index, s) for p in module.entry.parameters for index, s in p.shape.leaves() if s.is_array]
        self.leaves = {
            AllocationKind.PARAMETER: [shape for _, _, shape in places],
            AllocationKind.RESULT: [s for _, s in module.result_shape.leaves() if s.is_array],
        }
        self.numbers = {(p, index): number for number, (p, index, _) in enumerate(places)}
        self.taken: set[tuple[AllocationKind, int]] = set()


def allocation_error(a: Allocation, expected: int, interface: Interface) -> str | None:
    """What is wrong with an allocation that follows others; None if nothing is. It then takes its place."""
    if a.index != expected:
        return f"expected allocation {expected}, found {a.index}"
    if not 0 < a.alignment <= POOL_ALIGNMENT or a.alignment & (a.alignment - 1):
        return f"the alignment {a.alignment} is no power of two up to {POOL_ALIGNMENT}"
    if (a.literal is not None) != (a.kind is AllocationKind.CONSTANT):
        return "a constant, and nothing else, holds an instruction's literal"
    if a.literal is not None and a.literal.shape.bytes != a.size:
        return f"its literal has {a.literal.shape.bytes} bytes, not {a.size}"
    if a.result >= 0 and a.kind is not AllocationKind.PARAMETER:
        return "only a parameter becomes a result"
    return _interface_error(a, interface)


def _interface_error(a: Allocation, interface: Interface) -> str | None:
    leaves, taken = interface.leaves, interface.taken
    pairs = [(a.kind, a.number)] if a.kind in INTERFACE else []
    pairs += [(AllocationKind.RESULT, a.result)] if a.result >= 0 else []
    for kind, number in pairs:
        if number >= len(leaves[kind]):
            return f"the module has no {kind.value} {number}"
        if (kind, number) in taken:
            return f"{kind.value} {number} has two allocations"
        shape = leaves[kind][number]
        if a.shape is None or a.shape.bytes != a.size or a.shape.bytes != shape.bytes or a.shape.dims != shape.dims:
            return f"{kind.value} {number} is {shape}, of {shape.bytes} bytes"
    taken.update(pairs)
    return None


def value_error(
    i: Instruction, index: ShapeIndex, piece: BufferSlice, allocations: Sequence[Allocation], interface: Interface
) -> str | None:
    """What is wrong with the place of a parameter of the entry, or of a constant; None for other values."""
    held = allocations[piece.allocation]
    if i.opcode is Op.CONSTANT and held.kind is AllocationKind.CONSTANT and held.literal != i.literal:
        return f"allocation {held.index} does not hold the literal of '{i.name}'"
    number = interface.numbers.get((i, index))
    if number is not None and (held.kind is not AllocationKind.PARAMETER or held.number != number):
        return f"this is parameter {number}, which lies in an allocation of its own"
    return None


def request_error(k: KernelRequest, allocations: Sequence[Allocation]) -> str | None:
    """What is wrong with a kernel; None if nothing is."""
    i, count = k.instruction, len(k.arguments)
    for what, numbers, shapes in (
        ("operands", k.operands, [o.shape for o in i.operands]),
        ("results", k.results, [shape for _, shape in i.shape.leaves()]),
    ):
        if len(numbers) != len(shapes) or any(not -1 <= n < count for n in numbers):
            return f"{len(shapes)} {what} need a number of an argument each, not {list(numbers)}"
        for n, shape in zip(numbers, shapes, strict=True):
            if (n >= 0) != shape.is_array or (n >= 0 and k.arguments[n].slice.size != shape.bytes):
                return f"{what} of {shape}: an argument of another size, or a token"
    if k.scratch >= 0 and k.scratch != count - 1:
        return "scratch memory is the last argument"
    if {*k.operands, *k.results, k.scratch} - {-1} != set(range(count)):
        return "an argument is no operand, no result and no scratch memory"
    allowed = set(reuses(i))
    for position, n in enumerate(k.operands):
        if n in k.results and n >= 0 and k.arguments[n].slice.size and (position, k.results.index(n)) not in allowed:
            return f"operand {position} is overwritten while it is read"
    for n, a in enumerate(k.arguments):
        known = a.slice.alignment(allocations[a.slice.allocation].alignment)
        if a.alignment != known:
            return f"argument {n} is {known}-byte aligned, not {a.alignment}"
    partition = partition_of(i)
    if k.partition != partition:
        return f"the kernel's split is: {partition}"
    return None


def step_error(step: Step, allocations: Sequence[Allocation]) -> str | None:
    """What is wrong with a step; None if nothing is."""
    written = next((s for s in _written(step) if s.size and allocations[s.allocation].read_only), None)
    if written is not None:
        return f"allocation {written.allocation}, a {allocations[written.allocation].kind.value}, is read-only"
    if isinstance(step, KernelStep):
        kernel = step.kernel
        for n, (a, declared) in enumerate(zip(step.arguments, kernel.arguments)):
            if a.alignment(allocations[a.allocation].alignment) < declared.alignment:
                return f"argument {n} is not {declared.alignment}-byte aligned"
        if any(a.overlaps(b) for a, b in pairwise(sorted(s for s in step.arguments if s.size))):
            return "arguments overlap"
        if [s.size for s in step.arguments] != [a.slice.size for a in kernel.arguments]:
            return f"the arguments have not the sizes of kernel '{kernel.name}'"
        same = step.instruction is kernel.instruction or _key(step.instruction, kernel) == _key(
            kernel.instruction, kernel
        )
        return None if same else f"'{step.instruction.name}' is not what kernel '{kernel.name}' computes"
    if isinstance(step, CopyStep):
        if step.source.size != step.destination.size or step.source.overlaps(step.destination):
            return "a copy needs two slices of one size that do not overlap"
    elif isinstance(step, ConditionalStep):
        if step.selector.size != (1 if step.selector_is_pred else 4):
            return "a selector has one byte (pred) or four (index)"
        if step.instruction.operands and step.selector_is_pred != (
            step.instruction.operands[0].shape.dtype is DType.PRED
        ):
            return f"the selector of '{step.instruction.name}' is {step.instruction.operands[0].shape}"
    elif not isinstance(step, ProfileStep) and step.predicate.size != 1:
        return "a loop's predicate has one byte"
    return None


def _written(step: Step) -> Sequence[BufferSlice]:
    if isinstance(step, KernelStep):
        return [s for s, a in zip(step.arguments, step.kernel.arguments) if a.written]
    return [step.destination] if isinstance(step, CopyStep) else []


def _key(i: Instruction, kernel: KernelRequest) -> Any:
    if len(i.operands) != len(kernel.operands):
        return None
    return instruction_key(i, tuple((o.shape, n) for o, n in zip(i.operands, kernel.operands, strict=True)))
