"""Whether two shapes have their elements at the same places in memory, and which ops therefore move no bytes."""

from __future__ import annotations

from .ir import Instruction
from .opcodes import Op
from .shapes import Shape


def same_bytes(a: Shape, b: Shape) -> bool:
    """Arrays of these shapes have the same elements at the same places: same type, dimensions and memory order."""
    if a.dtype is not b.dtype or a.dims != b.dims or a.dynamic != b.dynamic:
        return False
    if (a.layout is None or b.layout is None or a.layout == b.layout) and a.minor_to_major == b.minor_to_major:
        return _tiles(a) == _tiles(b)
    return _tiles(a) == _tiles(b) and all(s == t for s, t, d in zip(a.strides, b.strides, a.dims) if d != 1)


def _tiles(shape: Shape) -> tuple[tuple[int, ...], ...]:
    return shape.layout.tiles if shape.layout is not None else ()


def reshape_moves_bytes(source: Shape, target: Shape) -> bool:
    """Whether a reshape (logical row-major order kept) must reorder memory, given both layouts."""
    if source.size == 0 or target.size <= 1:
        return False
    if source.is_row_major and target.is_row_major:
        return False
    return _stride_runs(source) != _stride_runs(target)


def _stride_runs(shape: Shape) -> list[tuple[int, int]]:
    """(elements, stride) of each maximal run of dimensions, major first, that walks memory evenly."""
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
    """Whether a bitcast of an array sees the bits as more or fewer elements."""
    source, target = instruction.operands[0].shape, instruction.shape
    return source.is_array and target.is_array and source.size != target.size


def is_alias(instruction: Instruction) -> bool:
    """An array op whose result is its operand's bytes: bitcast, and a reshape or transpose that moves nothing.

    Elements narrower than a byte take a byte each, so one that makes other elements of them moves bytes.
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
    """Whether the layout of the result is that of the operand, transposed as the dimensions are."""
    source, target = instruction.operands[0].shape, instruction.shape
    strides = source.strides
    return (
        not target.is_dynamic
        and _tiles(source) == _tiles(target)
        and all(s == strides[d] for s, d, n in zip(target.strides, instruction.dimensions, target.dims) if n != 1)
    )
