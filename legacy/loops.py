"""Loop nests over the elements of an array: in memory order, or in tiles where an operand is read across that order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from .elemental import Elemental
from .elementwise import EMIT as ELEMENTWISE
from .function import IndexValue
from .reduce import parts

Body = Callable[[list[IndexValue]], None]

TILE = 64
"""Elements along each side of a tile: 16 KiB of floats."""


def nest(e: Elemental, shape: Shape, body: Body) -> None:
    """body(positions) for all elements in memory order."""
    _nest(e, shape.dims, tuple(reversed(shape.minor_to_major)), [0] * shape.rank, body)


def _nest(e: Elemental, dims: Sequence[int], order: Sequence[int], positions: list[IndexValue], body: Body) -> None:
    loops = []
    for d in order:
        loops.append(e.code.loop(dims[d]))
        positions[d] = loops[-1].index
    body(positions)
    for loop in reversed(loops):
        loop.close()


def nest_for(e: Elemental, roots: Sequence[Instruction], shape: Shape, body: Body) -> None:
    """As `nest`, in tiles of two dimensions if something below the roots is read across the order of `shape`."""
    fast = fastest_dimension(shape)
    across = next((d for root in roots for d in _fast_dimensions(e, root) if d != fast and shape.dims[d] >= 8), None)
    if fast is None or across is None or shape.dims[fast] < 8:
        nest(e, shape, body)
        return
    code = e.code
    positions: list[IndexValue] = [0] * shape.rank

    def tiles(_: list[IndexValue]) -> None:
        for a_start, a_end, a_step in parts(shape.dims[across], TILE):
            for f_start, f_end, f_step in parts(shape.dims[fast], TILE):
                outer = code.loop(a_end - a_start, start=a_start, step=a_step)
                inner = code.loop(f_end - f_start, start=f_start, step=f_step)
                row = code.loop(a_step)
                positions[across] = code.add(outer.index, row.index)
                column = code.loop(f_step)
                positions[fast] = code.add(inner.index, column.index)
                body(positions)
                for loop in (column, row, inner, outer):
                    loop.close()

    order = [d for d in reversed(shape.minor_to_major) if d not in (fast, across)]
    _nest(e, shape.dims, order, positions, tiles)


def fastest_dimension(shape: Shape) -> int | None:
    """The dimension along which neighbours in memory lie; None for a single element."""
    return next((d for d in shape.minor_to_major if shape.dims[d] != 1), None)


def _fast_dimensions(e: Elemental, root: Instruction) -> list[int]:
    """Dimensions of the root along which leaves below it are adjacent in memory, as far as they can be followed."""
    found: list[int] = []
    identity = tuple(range(root.shape.rank))
    stack = [(root, identity)]
    seen = {(root, identity)}
    while stack:
        instruction, roles = stack.pop()
        if instruction in e.leaves:
            fast = fastest_dimension(instruction.shape)
            if fast is not None and roles[fast] >= 0 and instruction.shape.size >= TILE * TILE:
                found.append(roles[fast])
            continue
        for operand, operand_roles in _follow(instruction, roles):
            if (operand, operand_roles) not in seen:
                seen.add((operand, operand_roles))
                stack.append((operand, operand_roles))
    return found


def _follow(instruction: Instruction, roles: tuple[int, ...]) -> list[tuple[Instruction, tuple[int, ...]]]:
    """Operands with the root's dimension that each of their dimensions follows; -1 for none."""
    if instruction.opcode in ELEMENTWISE:
        return [(o, roles) for o in instruction.operands if o.shape.dims == instruction.shape.dims]
    if not instruction.operands:
        return []
    operand = instruction.operands[0]
    inner = [-1] * operand.shape.rank
    if instruction.opcode is Op.TRANSPOSE:
        for position, d in enumerate(instruction.dimensions):
            inner[d] = roles[position]
    elif instruction.opcode is Op.BROADCAST:
        for d, position in enumerate(instruction.dimensions):
            inner[d] = roles[position]
    elif instruction.opcode in (Op.SLICE, Op.REVERSE, Op.DYNAMIC_SLICE, Op.PAD):
        inner = list(roles)
    else:
        return []
    return [(operand, tuple(inner))]
