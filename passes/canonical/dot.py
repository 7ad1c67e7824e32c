"""Fold transposes around dots into dimension numbers and layouts, which cost nothing.

A dot reads a transposed operand through its dimension numbers. A transposed result exchanges the operands, reorders the
batch dimensions, or becomes a bitcast of a dot whose result has the transposed layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.ir import Computation, Instruction, Module, rewrite
from ...hlo.opclasses import CONTROL_PREDECESSORS, ELEMENTWISE, control_computations
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ...hlo.shapes import Layout, array
from ..building import Builder
from ..expansion import expand_ops
from ..rewriting import rebuild, with_attributes

SIDES = ("lhs", "rhs")

SHORT = 8
"""Minimum length of a row for which its direction matters."""


def canonicalize_dots(module: Module) -> Module:
    """Fold transposes outside kernels into the dots that produce or consume them."""
    if not {Op.DOT, Op.TRANSPOSE} <= module.opcodes:
        return module
    alone = single_users(module)

    def foldable(i: Instruction) -> bool:
        dot = i.operands[0]
        return dot.opcode is Op.DOT and dot.name in alone and CONTROL_PREDECESSORS not in dot.attributes

    def of_transpose(i: Instruction, b: Builder) -> Instruction | None:
        if not foldable(i):
            return None
        return _regrouped(i, i.operands[0], b) or _relaid(i, i.operands[0], b)

    module = rebuild(module, lambda c: _row_major(c, foldable), control_computations(module))
    return expand_ops(module, {Op.DOT: fold_operands, Op.TRANSPOSE: of_transpose})


def _row_major(computation: Computation, foldable: Callable[[Instruction], bool]) -> Computation:
    """Make transposes of dots that will fold row-major, unless a user requires a layout."""
    if not {Op.DOT, Op.TRANSPOSE} <= computation.opcodes:
        return computation

    def change(i: Instruction) -> Instruction | None:
        if i.shape.is_row_major or i.shape.is_dynamic:
            return None
        plain = i.replace(shape=array(i.shape.dtype, *i.shape.dims))
        if i.opcode is Op.TRANSPOSE and foldable(i):
            folds = bool(_numbers_of(i, i.operands[0]) or _order_of(plain, i.operands[0]))
        else:  # elementwise users take on the new layout, and so can work in place
            follows = i.opcode in FOLLOWERS and i.name not in held
            folds = follows and any(plain_of.get(o) == i.shape.layout for o in i.operands)
        if not folds:
            return None
        plain_of[plain] = i.shape.layout
        return plain

    asked = {o.name for i in computation.instructions if i.opcode not in INDIFFERENT for o in i.operands}
    asked.add(computation.root.name)
    held = set(asked)  # instructions that cannot take on the layout of their operands, because a user requires theirs
    for i in reversed(computation.instructions):
        if i.name in held and i.opcode in FOLLOWERS:
            held.update(o.name for o in i.operands if o.shape.layout == i.shape.layout)
    plain_of: dict[Instruction, Layout | None] = {}  # new row-major instruction → the layout that it had
    return rewrite(computation, lambda i: None if i.name in asked else change(i))


FOLLOWERS = ELEMENTWISE - {Op.COPY}
"""Opcodes that may take on the layout of their operands."""

INDIFFERENT = FOLLOWERS | {Op.DOT, Op.RESHAPE, Op.REDUCE, Op.BROADCAST, Op.SLICE, Op.CONCATENATE}
"""Opcodes that read operands in any layout, whatever their own."""


def single_users(module: Module) -> set[str]:
    """Names of the instructions that are no root and have exactly one use."""
    return {
        i.name
        for c in module.computations
        for i in c.instructions
        if i is not c.root and len(c.users[i]) == 1 and c.users[i][0].operands.count(i) == 1
    }


def numbers(dot: Instruction, side: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(batch, contracting) dimensions of a side."""
    return dot.attributes.get(f"{side}_batch_dims", ()), dot.attributes.get(f"{side}_contracting_dims", ())


def free_dimensions(dot: Instruction, side: str) -> list[int]:
    batch, contracting = numbers(dot, side)
    rank = dot.operands[SIDES.index(side)].shape.rank
    return [d for d in range(rank) if d not in batch and d not in contracting]


def fold_operands(i: Instruction, b: Builder) -> Instruction | None:
    """The dot reading through its operands' transposes, if the free dimensions keep their order; else None."""
    changed = i
    for n, side in enumerate(SIDES):
        source = changed.operands[n]
        if source.opcode is not Op.TRANSPOSE:
            continue
        order = source.dimensions
        free = [order[d] for d in free_dimensions(changed, side)]
        if free != sorted(free):
            continue
        batch, contracting = (tuple(order[d] for d in group) for group in numbers(changed, side))
        operands = list(changed.operands)
        operands[n] = source.operands[0]
        named = {f"{side}_batch_dims": batch or None, f"{side}_contracting_dims": contracting}
        changed = with_attributes(changed, **named).replace(operands=tuple(operands))
    return b.add(sort_contracting_dims(changed)) if changed is not i else None


def sort_contracting_dims(dot: Instruction) -> Instruction:
    """The dot with its contracted dimensions in the left operand's order, so that adjacent ones can be merged."""
    pairs = sorted(zip(numbers(dot, "lhs")[1], numbers(dot, "rhs")[1], strict=True))
    return with_attributes(
        dot, lhs_contracting_dims=tuple(a for a, _ in pairs), rhs_contracting_dims=tuple(c for _, c in pairs)
    )


def _regrouped(i: Instruction, dot: Instruction, b: Builder) -> Instruction | None:
    """The dot with reordered batch dimensions or exchanged operands, if that alone makes the transpose; else None."""
    found = _numbers_of(i, dot)
    if found is None:
        return None
    sides, named = found
    operands = tuple(dot.operands[SIDES.index(side)] for side in sides)
    return b.add(with_attributes(dot, **named).replace(operands=operands, shape=i.shape))


def _numbers_of(i: Instruction, dot: Instruction) -> tuple[tuple[str, ...], dict[str, object]] | None:
    """(sides in their new order, attributes) of a dot that produces the transpose; None if there is none."""
    if len(dot.operands) != 2:
        return None
    batches, lefts = len(numbers(dot, "lhs")[0]), len(free_dimensions(dot, "lhs"))
    rank = dot.shape.rank
    left, right = list(range(batches, batches + lefts)), list(range(batches + lefts, rank))
    order = list(i.dimensions)
    if sorted(order[:batches]) != list(range(batches)) or order[batches:] not in (left + right, right + left):
        return None
    sides = SIDES if order[batches:] == left + right else tuple(reversed(SIDES))
    named: dict[str, object] = {}
    for new, old in zip(SIDES, sides, strict=True):
        batch, contracting = numbers(dot, old)
        named[f"{new}_batch_dims"] = tuple(batch[d] for d in order[:batches]) or None
        named[f"{new}_contracting_dims"] = contracting
    if sides != SIDES and "operand_precision" in dot.attributes:
        named["operand_precision"] = tuple(reversed(dot.attributes["operand_precision"]))
    return sides, named


def _relaid(i: Instruction, dot: Instruction, b: Builder) -> Instruction | None:
    """A bitcast of the dot, whose layout makes its transpose have the required layout; None if that does not help."""
    order = _order_of(i, dot)
    if order is None:
        return None
    laid = replace(dot.shape, layout=Layout(order))
    return b.op(Op.BITCAST, i.shape, b.add(dot.replace(name=b.names.fresh(dot.name), shape=laid)))


def _order_of(i: Instruction, dot: Instruction) -> tuple[int, ...] | None:
    """The dot's dimensions in the memory order of its transpose; None if that does not help."""
    order = tuple(i.dimensions[d] for d in i.shape.minor_to_major)
    return order if order != dot.shape.minor_to_major and _has_rows(dot, order) else None


def _has_rows(dot: Instruction, order: Sequence[int]) -> bool:
    """Whether the last free dimension of a side is long and the fastest in this order."""
    batches, lefts = len(numbers(dot, "lhs")[0]), len(free_dimensions(dot, "lhs"))
    fastest = next((d for d in order if dot.shape.dims[d] != 1), None)
    return (
        fastest in (batches + lefts - 1, dot.shape.rank - 1) and fastest >= batches and dot.shape.dims[fastest] >= SHORT
    )
