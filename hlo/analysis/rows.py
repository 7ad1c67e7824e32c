"""Row kernels: fusions that work row by row, with reductions over rows, elementwise ops and broadcasts of row results.

An array of `count` rows of `length` elements lies row by row in memory. In such a kernel every value is an element of
the current row (FULL), one number per row (ROW), an element of a vector that all rows share (COLUMN), or read at other
places ("elsewhere"); a value read elsewhere must not depend on a reduction. A reduction over at most ELEMENT_REDUCTION
elements may instead produce a FULL value from operands that are read elsewhere, e.g. a squared distance is a sum of
three terms.

This is a contract between the passes, planning/inplace.py and the stacks, each of which finds the form by itself: a
kernel of this form is emitted as one loop over rows, and a FULL result that takes the place of an operand is written in
the last walk over the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from enum import Enum

from ..ir import Computation, Instruction
from ..opclasses import ELEMENTWISE
from ..opcodes import Op
from ..records import dataclass
from ..shapes import Shape
from .kernel_forms import ELEMENT_REDUCTION


class Role(Enum):
    """Which element of a value a row kernel reads at row r and column c."""

    FULL = "full"  # element (r, c)
    ROW = "row"  # element r
    COLUMN = "column"  # element c


COSTLY = frozenset({Op.CONVOLUTION, Op.DOT, Op.DYNAMIC_UPDATE_SLICE, Op.REDUCE_WINDOW, Op.SCATTER, Op.SORT})
"""Opcodes that need loops of their own; a row kernel contains none of them."""

Signature = tuple[int, int]
"""(number of rows, elements per row)."""


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """A row kernel of `count` rows of `length` elements.

    roles: the role of every value (leaves included) that is read in the current row, operands before users.
    elsewhere: leaves that are read at other places, whether or not they also have a role.
    """

    count: int
    length: int
    roles: dict[Instruction, Role]
    elsewhere: frozenset[Instruction]

    @property
    def reduces(self) -> list[Instruction]:
        return [i for i, role in self.roles.items() if role is Role.ROW and i.opcode is Op.REDUCE]


def rows_of(roots: Sequence[Instruction], leaves: Collection[Instruction]) -> Rows | None:
    """The row kernel that computes these roots from leaves in memory; None if they do not form one."""
    inside = _reachable(roots, leaves)
    if any(i.opcode in COSTLY for i in inside):
        return None
    signature = common_signature([i for i in inside if i.opcode is Op.REDUCE])
    return None if signature is None else assign_roles(roots, leaves, signature)


def rows_of_body(body: Computation) -> Rows | None:
    """`rows_of` the results of a fusion's computation; its parameters are the leaves."""
    root = body.root
    roots = [root] if root.opcode is not Op.TUPLE else list(root.operands)
    return rows_of(roots, frozenset(body.parameters))


def common_signature(reduces: Sequence[Instruction]) -> Signature | None:
    """The rows of a kernel with these reductions: each reduces rows or makes an element of one. None if none fit."""
    for signature in dict.fromkeys(map(row_signature, reduces)):
        if signature and all(row_signature(r) == signature or makes_element(r, signature) for r in reduces):
            return signature
    return None


def is_few(reduce: Instruction) -> bool:
    """Whether a reduction is small enough to be computed for each element."""
    taken = math.prod(reduce.operands[0].shape.dims[d] for d in reduce.dimensions)
    return reduce.shape.is_array and 0 < taken <= ELEMENT_REDUCTION


def makes_element(reduce: Instruction, signature: Signature) -> bool:
    """Whether a reduction over few elements makes a FULL value of rows of this signature."""
    return is_few(reduce) and fits(reduce.shape, Role.FULL, signature)


def row_signature(reduce: Instruction) -> Signature | None:
    """Rows of a reduce over the minor dimensions of row-major, non-empty arrays; None for other reductions."""
    shape = reduce.operands[0].shape
    operands = reduce.operands[: len(reduce.operands) // 2]
    if not all(o.shape.is_row_major and not o.shape.is_dynamic for o in operands):
        return None
    kept = [d for d in range(shape.rank) if shape.dims[d] != 1 and d not in reduce.dimensions]
    reduced = [d for d in reduce.dimensions if shape.dims[d] != 1]
    if not reduced or (kept and kept[-1] > min(reduced)) or shape.size == 0:
        return None
    return math.prod(shape.dims[d] for d in kept), math.prod(shape.dims[d] for d in reduced)


def _reachable(roots: Sequence[Instruction], leaves: Collection[Instruction]) -> list[Instruction]:
    found = [r for r in dict.fromkeys(roots) if r not in leaves]
    seen = set(found)
    for i in found:  # the loop body appends to it
        for o in i.operands:
            if o not in seen and o not in leaves:
                seen.add(o)
                found.append(o)
    return found


def fits(shape: Shape, role: Role, signature: Signature) -> bool:
    """Whether an array can have a role: its size is right, and it lies row by row in memory."""
    count, length = signature
    if not shape.is_array or shape.is_dynamic or not shape.is_row_major:
        return False
    if role is Role.FULL:
        return shape.size == count * length and split_at(shape, count) is not None
    return shape.size == (count if role is Role.ROW else length)


def split_at(shape: Shape, count: int) -> int | None:
    """How many of the leading dimensions, not counting those of size 1, make `count` rows.

    None if one dimension would have to be part of both the rows and their elements.
    """
    product, taken = 1, 0
    live = [d for d in shape.dims if d != 1]
    while product < count and taken < len(live):
        product, taken = product * live[taken], taken + 1
    return taken if product == count else None


def assign_roles(roots: Sequence[Instruction], leaves: Collection[Instruction], signature: Signature) -> Rows | None:
    """Assign roles from the roots down; None if a value would have two, or a reduction is not read at its row."""
    roles: dict[Instruction, Role] = {}
    order: list[Instruction] = []  # operands before users
    outside: list[Instruction] = []
    stack: list[tuple[Instruction, Role | None]] = []  # None: the operands of this instruction are done
    for root in roots:
        role = _root_role(root, signature)
        if role is None:
            return None
        stack.append((root, role))
    while stack:
        i, role = stack.pop()
        if role is None:
            order.append(i)
            continue
        known = roles.get(i)
        if known is not None:
            if known is not role:
                return None
            continue
        roles[i] = role
        stack.append((i, None))
        if i in leaves:
            continue
        if i.opcode is Op.REDUCE and not _reduces_here(i, role, signature):
            return None
        for operand, wanted in reads(i, role, signature):
            if wanted is None:
                outside.append(operand)
            else:
                stack.append((operand, wanted))
    elsewhere = _leaves_elsewhere(outside, leaves, roles)
    return None if elsewhere is None else Rows(*signature, {i: roles[i] for i in order}, elsewhere)


def _reduces_here(reduce: Instruction, role: Role, signature: Signature) -> bool:
    """Whether a reduction inside the kernel can have this role."""
    if role is Role.ROW and row_signature(reduce) == signature:
        return True
    return role is Role.FULL and makes_element(reduce, signature)


def _root_role(root: Instruction, signature: Signature) -> Role | None:
    shapes = [shape for _, shape in root.shape.leaves()]
    return next((r for r in (Role.FULL, Role.ROW) if shapes and all(fits(s, r, signature) for s in shapes)), None)


def _leaves_elsewhere(
    outside: Sequence[Instruction], leaves: Collection[Instruction], roles: dict[Instruction, Role]
) -> frozenset[Instruction] | None:
    """The leaves below values that are read elsewhere; None if these depend on a reduction or a value with a role."""
    found, seen, stack = set(), set(outside), list(outside)
    while stack:
        i = stack.pop()
        if i in leaves:
            found.add(i)
        elif i.opcode is Op.REDUCE or (i in roles and i.operands):
            return None
        else:
            fresh = [o for o in i.operands if o not in seen]
            seen.update(fresh)
            stack += fresh
    return frozenset(found)


def reads(i: Instruction, role: Role, signature: Signature) -> list[tuple[Instruction, Role | None]]:
    """Each operand of an instruction that has this role, with the role in which it is read; None means elsewhere."""
    rule = _RULES.get(i.opcode, _elementwise if i.opcode in ELEMENTWISE else _elsewhere)
    return rule(i, role, signature)


Reads = list[tuple[Instruction, Role | None]]


def _elsewhere(i: Instruction, role: Role, signature: Signature) -> Reads:
    return [(o, None) for o in i.operands]


def _elementwise(i: Instruction, role: Role, signature: Signature) -> Reads:
    found: Reads = []
    for o in i.operands:
        wanted = role if o.shape.dims == i.shape.dims else Role.ROW if signature[0] == o.shape.size == 1 else None
        found.append((o, wanted if wanted and fits(o.shape, wanted, signature) else None))
    return found


def _broadcast(i: Instruction, role: Role, signature: Signature) -> Reads:
    operand = i.operands[0]
    live = [d for d in range(i.shape.rank) if i.shape.dims[d] != 1]
    held = [d for d, size in zip(i.dimensions, operand.shape.dims) if size != 1]
    wanted: Role | None = None
    if held == live:
        wanted = role
    elif role is Role.FULL:
        rows = split_at(i.shape, signature[0])
        if rows is not None and held == live[:rows]:
            wanted = Role.ROW
        elif rows is not None and held == live[rows:]:
            wanted = Role.COLUMN
    return [(operand, wanted if wanted and fits(operand.shape, wanted, signature) else None)]


def _same_elements(i: Instruction, role: Role, signature: Signature) -> Reads:
    operand = i.operands[0]
    same = operand.shape.dtype is i.shape.dtype and operand.shape.size == i.shape.size
    return [(operand, role if same and fits(operand.shape, role, signature) else None)]


def _reduce(i: Instruction, role: Role, signature: Signature) -> Reads:
    if role is not Role.ROW or row_signature(i) != signature:
        return _elsewhere(i, role, signature)
    count = len(i.operands) // 2
    return [(o, Role.FULL) for o in i.operands[:count]] + [(o, None) for o in i.operands[count:]]


def _element(i: Instruction, role: Role, signature: Signature) -> Reads:
    operand = i.operands[0]
    return [(operand, role if operand.opcode is Op.REDUCE else None)]


_RULES: dict[Op, Callable[[Instruction, Role, Signature], Reads]] = {
    Op.BITCAST: _same_elements,
    Op.BROADCAST: _broadcast,
    Op.GET_TUPLE_ELEMENT: _element,
    Op.REDUCE: _reduce,
    Op.RESHAPE: _same_elements,
}
"""How an opcode that is not elementwise reads its operands. One without a row reads them elsewhere."""
