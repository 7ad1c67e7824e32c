"""Decides which kernels this stack emits row by row, and gives each value of such a kernel a role.

`count` rows of `length` elements are consecutive in memory. A kernel has this form if each of its values is needed at
the current element of a row, at the current row, at the current column, or elsewhere; values needed elsewhere must not
depend on a reduction. One sweep from users to operands collects the requested role of each value; a value with two
different requests has no role.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto

from ...hlo.ir import Instruction
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..loops.form import Unfit, needs
from ..loops.leaf import WHOLE
from ..movement.update import is_update


class Role(Enum):
    """The part of a value that belongs to row r and column c."""

    FULL = auto()  # element (r, c)
    ROW = auto()  # element r
    COLUMN = auto()  # element c


Sources = list[tuple[Instruction, Role | None]]
"""The operands of a value and the role in which each is read; None: elsewhere."""

PASSED = frozenset({Op.BROADCAST, Op.RESHAPE, Op.BITCAST})
"""Opcodes whose element at a row and column is their operand's element there."""

IN_BLOCKS = frozenset({Op.CONVOLUTION, Op.DOT})
"""Opcodes that this stack computes in blocks. Computed one element at a time, they would reread their operands."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of elements."""

    count: int
    length: int

    def holds(self, shape: Shape, role: Role) -> bool:
        """Whether an array has one element per position of a role, in memory order."""
        if not shape.is_array or not shape.is_row_major:
            return False
        if role is Role.ROW:
            return shape.size == self.count
        if role is Role.COLUMN:
            return shape.size == self.length
        return shape.size == self.count * self.length and self.row_dims(shape) is not None

    def row_dims(self, shape: Shape) -> int | None:
        """The number of dimensions other than 1 that count rows; None if one dimension spans rows and columns."""
        live = [size for size in shape.dims if size != 1]
        products = [math.prod(live[:n]) for n in range(len(live) + 1)]
        return products.index(self.count) if self.count in products else None

    def reduces(self, reduction: Instruction, role: Role) -> bool:
        """Whether a reduction computes one value per row, or one element per row and column from values read elsewhere.

        The latter has its own loop per element in any form of kernel, so its length does not matter.
        """
        if role is Role.ROW:
            return grid_of(reduction) == self
        return role is Role.FULL and self.holds(reduction.shape, Role.FULL)


def grid_of(reduction: Instruction) -> Grid | None:
    """The rows that a reduction over the fastest dimensions of row-major operands reduces; None for others."""
    arrays = [o.shape for o in reduction.operands[: len(reduction.operands) // 2]]
    first = arrays[0]
    live = [d for d, size in enumerate(first.dims) if size != 1]
    reduced = [d for d in live if d in reduction.dimensions]
    if not reduced or not first.size or live[-len(reduced) :] != reduced or not all(s.is_row_major for s in arrays):
        return None
    length = math.prod(first.dims[d] for d in reduced)
    return Grid(first.size // length, length)


@dataclass(frozen=True, slots=True)
class RowGraph:
    """A kernel that works row by row. roles: of the values that are read at the current row or column, operands before
    users. sources: of the values that are computed.
    """

    grid: Grid
    roles: dict[Instruction, Role]
    sources: dict[Instruction, Sources]

    @property
    def first_array(self) -> Shape:
        """The operand of a reduction over rows. Its dimensions are those of the loops."""
        reductions = (i for i in self.sources if i.opcode is Op.REDUCE and self.roles[i] is Role.ROW)
        return next(reductions).operands[0].shape

    def here(self, instruction: Instruction) -> list[Instruction]:
        """The operands that a value with a role reads at the current row or column; none for a value in memory."""
        return [operand for operand, role in self.sources.get(instruction, ()) if role is not None]


def row_graph(roots: Sequence[Instruction], leaves: Collection[Instruction], single: bool = False) -> RowGraph:
    """The row form of a kernel that computes these roots from leaves in memory.

    Raises Unfit for other kernels, and for a single reduction, unless `single` asks for its form, too.
    """
    needs(single or len(roots) > 1 or roots[0].opcode is not Op.REDUCE, "a reduction is the only result")
    needs(len(roots) > 1 or roots[0] not in leaves, "the result is in memory")
    order = _operands_first(roots, leaves)
    inside = [i for i in order if i not in leaves]
    for i in inside:
        other = i.opcode in WHOLE or i.opcode in IN_BLOCKS or is_update(i)
        needs(not other, f"{i.opcode.value} has loops of its own")
    reductions = [i for i in inside if i.opcode is Op.REDUCE]
    for grid in dict.fromkeys(map(grid_of, reductions)):
        if grid and all(grid.reduces(r, Role.ROW) or grid.reduces(r, Role.FULL) for r in reductions):
            return _with_roles(grid, order, roots, leaves)
    needs(reductions, "no reduction")
    raise Unfit("not all reductions are over the same rows of row-major arrays")


def _operands_first(roots: Sequence[Instruction], leaves: Collection[Instruction]) -> list[Instruction]:
    order: list[Instruction] = []
    seen: set[Instruction] = set()
    stack = [(root, False) for root in roots]
    while stack:
        instruction, done = stack.pop()
        if done:
            order.append(instruction)
        elif instruction not in seen:
            seen.add(instruction)
            stack.append((instruction, True))
            if instruction not in leaves:
                stack += [(operand, False) for operand in instruction.operands]
    return order


def _with_roles(
    grid: Grid, order: Sequence[Instruction], roots: Sequence[Instruction], leaves: Collection[Instruction]
) -> RowGraph:
    asked: dict[Instruction, set[Role | None]] = {i: set() for i in order}
    for root in roots:
        asked[root].add(_role_of_root(grid, root))
    roles: dict[Instruction, Role] = {}
    sources: dict[Instruction, Sources] = {}
    for i in reversed(order):
        role = _role_of(grid, i, asked[i], i in leaves)
        if role is not None:
            roles[i] = role
        if i in leaves:
            continue
        if role is not None:
            sources[i] = _sources(i, role, grid)
        for operand, wanted in sources.get(i) or [(o, None) for o in i.operands]:
            asked[operand].add(wanted)
    first = [i for i in order if i in roles]
    return RowGraph(grid, {i: roles[i] for i in first}, {i: sources[i] for i in first if i in sources})


def _role_of_root(grid: Grid, root: Instruction) -> Role:
    shapes = [shape for _, shape in root.shape.leaves()]
    for role in (Role.FULL, Role.ROW):
        if shapes and all(grid.holds(shape, role) for shape in shapes):
            return role
    raise Unfit(f"{root.name} has not {grid.count} rows, of {grid.length} elements or one")


def _role_of(grid: Grid, i: Instruction, asked: Collection[Role | None], is_held: bool) -> Role | None:
    """The role of a value of which these are asked. is_held: it is in memory."""
    role, *others = {*asked} - {None} or {None}
    needs(not others, f"{i.name} is read in several roles")
    reduces = i.opcode is Op.REDUCE and not is_held
    elsewhere = None in asked and not is_held and (reduces or (role is not None and i.operands))
    needs(not elsewhere, f"{i.name} is read elsewhere than at the current row and column")
    of_rows = not reduces or role is None or grid.reduces(i, role)
    needs(of_rows, f"{i.name} reduces something else than rows")
    return role


# What each op reads where -------------------------------------------------------------------------------------------


def _sources(i: Instruction, role: Role, grid: Grid) -> Sources:
    rule = _elementwise if i.opcode in ELEMENTWISE else _RULES.get(i.opcode)
    wanted = rule(i, role, grid) if rule else [None] * len(i.operands)
    return [
        (o, r if r and (o.shape.is_tuple or grid.holds(o.shape, r)) else None)
        for o, r in zip(i.operands, wanted, strict=True)
    ]


Wanted = list[Role | None]
"""A role for each operand, if its shape in memory permits it."""


def _elementwise(i: Instruction, role: Role, grid: Grid) -> Wanted:
    single = Role.ROW if grid.count == 1 else None
    return [role if o.shape.dims == i.shape.dims else single if o.shape.size == 1 else None for o in i.operands]


def _broadcast(i: Instruction, role: Role, grid: Grid) -> Wanted:
    live = [d for d, size in enumerate(i.shape.dims) if size != 1]
    held = [d for d, size in zip(i.dimensions, i.operands[0].shape.dims, strict=True) if size != 1]
    if held == live:
        return [role]
    rows = grid.row_dims(i.shape) if role is Role.FULL else None
    if rows is None:
        return [None]
    return [Role.ROW if held == live[:rows] else Role.COLUMN if held == live[rows:] else None]


def _same_elements(i: Instruction, role: Role, grid: Grid) -> Wanted:
    operand = i.operands[0].shape
    return [role if operand.dtype is i.shape.dtype and operand.size == i.shape.size else None]


def _reduce(i: Instruction, role: Role, grid: Grid) -> Wanted:
    many = len(i.operands) // 2
    return [Role.FULL if role is Role.ROW else None] * many + [None] * many


def _element(i: Instruction, role: Role, grid: Grid) -> Wanted:
    return [role if i.operands[0].opcode is Op.REDUCE else None]


_RULES: dict[Op, Callable[[Instruction, Role, Grid], Wanted]] = {
    Op.BITCAST: _same_elements,
    Op.BROADCAST: _broadcast,
    Op.GET_TUPLE_ELEMENT: _element,
    Op.REDUCE: _reduce,
    Op.RESHAPE: _same_elements,
}
"""The reads of opcodes that are not elementwise. Opcodes without a row read elsewhere."""
