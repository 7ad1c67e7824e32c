"""concatenate, three ways: one element, by selecting its operand; a rotation, as one read at a selected position; a
whole array, operand by operand.
"""

from __future__ import annotations

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from ..planning.partition import Partition
from .builder import Code, IndexValue
from .elemental import Elemental, Index, Reads
from .leaf import Leaf
from .loops import nest
from .ranges import Steps
from .registers import I64


def concatenate(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    axis = instruction.dimensions[0]
    if _is_rotation(instruction, axis) and not _is_decided(e.code, instruction, index.multi[axis]):
        return (yield from _rotated(e, instruction, index, axis))
    pieces, start = [], 0
    for operand in instruction.operands:
        if operand.shape.size:
            pieces.append((start, operand))
            start += operand.shape.dims[axis]
    return (yield from _choose(e, pieces, index, axis))


def _is_rotation(instruction: Instruction, axis: int) -> bool:
    """Whether the operands are two stride-1 slices of one array that differ only along the axis."""
    first, *others = instruction.operands
    if len(others) != 1 or any(o.opcode is not Op.SLICE for o in instruction.operands):
        return False
    bounds = [list(o.attributes["slice"]) for o in instruction.operands]
    steps = all(b.pop(axis).stride == 1 for b in bounds)
    return steps and bounds[0] == bounds[1] and first.operands == others[0].operands


def _is_decided(code: Code, rotation: Instruction, position: IndexValue) -> bool:
    """Whether all places where the position may be are in the same of two operands."""
    limits, middle = code.limits.of(position), rotation.operands[0].shape.dims[rotation.dimensions[0]]
    return limits is not None and (limits[1] <= middle or limits[0] >= middle)


def _rotated(e: Elemental, instruction: Instruction, index: Index, axis: int) -> Reads:
    """One read at a selected position: branches would prevent vectorisation."""
    code, (first, second) = e.code, instruction.operands
    middle = first.shape.dims[axis]
    low = first.attributes["slice"][axis].start
    high = second.attributes["slice"][axis].start - middle
    position = index.multi[axis]
    home = code.home([position])
    below = home.builder.icmp_unsigned("<", position, I64(middle))
    shift = home.builder.select(below, I64(low), I64(high))
    code.define(shift, home)
    moved = [code.add(code.multiply(i, d.stride), d.start) for i, d in zip(index.multi, first.attributes["slice"])]
    moved[axis] = code.add(position, shift)
    return (yield first.operands[0], Index.at(code, first.operands[0].shape, moved))


def _choose(e: Elemental, pieces: list[tuple[int, Instruction]], index: Index, axis: int) -> Reads:
    """The element of the piece that contains the index, found by bisection."""
    code, multi = e.code, index.multi
    position = multi[axis]
    limits = code.limits.of(position)
    if limits is not None:
        least, most = (max(0, sum(p[0] <= at for p in pieces) - 1) for at in (limits[0], limits[1] - 1))
        pieces = pieces[least : most + 1]
    if len(pieces) == 1:
        ((start, piece),) = pieces
        moved = [code.subtract(i, start) if d == axis else i for d, i in enumerate(multi)]
        return (yield piece, Index.at(code, piece.shape, moved))
    middle = len(pieces) // 2
    below = code.b.icmp_unsigned("<", position, I64(pieces[middle][0]))
    branch = code.branch(below)
    first = yield from _choose(e, pieces[:middle], index, axis)
    branch.otherwise()
    second = yield from _choose(e, pieces[middle:], index, axis)
    return branch.join(first, second)


def takes_steps(leaf: Leaf, partition: Partition) -> bool:
    """Whether `write_concatenated` can compute some of the steps: of dimensions that all operands share."""
    return leaf.instruction.dimensions[0] not in partition.dimensions


def write_concatenated(e: Elemental, leaf: Leaf, steps: Steps | None = None) -> None:
    """Write each operand, or some steps of each, to its part of the result."""
    axis, start = leaf.instruction.dimensions[0], 0
    for operand in leaf.instruction.operands:
        if operand.shape.size == 0:
            continue
        source = Shape(operand.shape.dtype, operand.shape.dims, leaf.shape.layout)
        offset = start

        def copy(positions: list[IndexValue], operand: Instruction = operand, offset: int = offset) -> None:
            value = e.value(operand, Index.at(e.code, operand.shape, positions))
            moved = [e.code.add(p, offset) if d == axis else p for d, p in enumerate(positions)]
            leaf.write(e, Index.at(e.code, leaf.shape, moved), value)

        nest(e, source, copy, steps)
        start += operand.shape.dims[axis]
