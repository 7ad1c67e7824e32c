"""Whether arrays of two shapes have the same bytes in memory, and which ops therefore move no bytes."""

from __future__ import annotations

from .ir import Instruction
from .opcodes import Op
from .shapes import Shape


def same_bytes(a: Shape, b: Shape) -> bool:
    """Whether arrays of these shapes have each element at the same place: equal type, dimensions and memory order."""
    if a.dtype is not b.dtype or a.dims != b.dims or a.dynamic != b.dynamic:
        return False
    if (a.layout is None or b.layout is None or a.layout == b.layout) and a.minor_to_major == b.minor_to_major:
        return _tiles(a) == _tiles(b)
    return _tiles(a) == _tiles(b) and all(s == t for s, t, d in zip(a.strides, b.strides, a.dims) if d != 1)


def _tiles(shape: Shape) -> tuple[tuple[int, ...], ...]:
    return shape.layout.tiles if shape.layout is not None else ()


def reshape_moves_bytes(source: Shape, target: Shape) -> bool:
    """Whether a reshape, which keeps the logical row-major order, must reorder memory, given both layouts."""
    if source.size == 0 or target.size <= 1:
        return False
    if source.is_row_major and target.is_row_major:
        return False
    return _stride_runs(source) != _stride_runs(target)


def _stride_runs(shape: Shape) -> list[tuple[int, int]]:
    """(elements, stride in elements) of each maximal run of dimensions, major first, that have one common stride."""
    runs: list[tuple[int, int]] = []
    for size, stride in zip(shape.dims, shape.strides):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs


def changes_elements(instruction: Instruction) -> bool:
    """Whether a bitcast changes the number of elements."""
    source, target = instruction.operands[0].shape, instruction.shape
    return source.is_array and target.is_array and source.size != target.size


def is_alias(instruction: Instruction) -> bool:
    """Whether the result is the operand's bytes: a bitcast, or a reshape or transpose that moves nothing.

    An element narrower than a byte takes a whole byte, so a bitcast from or to such elements moves bytes if it changes
    their number.
    """
    if instruction.opcode is Op.BITCAST:
        source, target = instruction.operands[0].shape, instruction.shape
        narrow = changes_elements(instruction) and min(source.dtype.bits, target.dtype.bits) < 8
        return target.is_array and source.bytes == target.bytes and not narrow
    if instruction.opcode is Op.TRANSPOSE:
        return _transpose_moves_nothing(instruction)
    return (
        instruction.opcode is Op.RESHAPE
        and not instruction.shape.is_dynamic
        and not reshape_moves_bytes(instruction.operands[0].shape, instruction.shape)
    )


def _transpose_moves_nothing(instruction: Instruction) -> bool:
    """Whether the transposition of dimensions is also that of the layout, so that no byte moves."""
    source, target = instruction.operands[0].shape, instruction.shape
    strides = source.strides
    return (
        not target.is_dynamic
        and _tiles(source) == _tiles(target)
        and all(s == strides[d] for s, d, n in zip(target.strides, instruction.dimensions, target.dims) if n != 1)
    )
