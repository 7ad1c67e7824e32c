"""Which results of a kernel one form computes together, and the products on which they depend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..core.graph import walk
from ..core.view import View
from ..loops.elemental import Elemental, Index, same_order
from ..loops.form import Results, Task, needs
from ..loops.leaf import Leaf, is_whole, write_all
from ..movement.indexing import refuse
from ..movement.update import is_update
from ..numerics.elementwise import EMIT
from . import column_run


def groups_of(view: View, leaves: Sequence[Leaf]) -> list[Results]:
    """Results that one loop nest can write together. A leaf that overwrites what another reads is in its group."""
    groups: list[list[Leaf]] = []
    for leaf in leaves:
        alike = [g for g in groups if _together(g[0], leaf)]
        bound = [g for g in alike if _overwrites(view, g, [leaf]) or _overwrites(view, [leaf], g)]
        group = bound[0] if bound else next((g for g in alike if _of_one_loop(view, g, leaf)), None)
        if group is None:
            groups.append(group := [])
        for other in bound[1:]:
            groups.remove(other)
            group += other
        group.append(leaf)
    return [_results(view, group) for group in groups]


def _overwrites(view: View, written: list[Leaf], computed: list[Leaf]) -> bool:
    """Whether leaves take over the memory of an operand from which others are computed."""
    places = {leaf.argument for leaf in written if leaf.in_place}
    if not places:
        return False
    roots = [leaf.instruction for leaf in computed]
    read = [*roots, *(o for i in walk(roots, view.leaves) for o in i.operands)]
    return any(view.leaves.get(o) in places for o in read)


def _results(view: View, group: list[Leaf]) -> Results:
    root = group[0].instruction
    if group[0].shape.size and is_whole(root) and root not in view.leaves:
        return Results(tuple(_all_leaves(group)), whole=True)
    return Results(tuple(group), tuple(products_of(view, group)))


def _all_leaves(group: list[Leaf]) -> list[Leaf]:
    """The leaves of one instruction in order, each once."""
    leaves = {leaf.path: leaf for leaf in group}
    wanted = [path for path, _ in group[0].instruction.shape.leaves()]
    if len(group) != len(wanted) or set(leaves) != set(wanted):
        refuse(group[0].instruction)
    return [leaves[path] for path in wanted]


def _of_one_loop(view: View, group: list[Leaf], leaf: Leaf) -> bool:
    """Whether blocked emission of a dot, convolution or column reduction survives adding this leaf to the group."""
    alone = products_of(view, group) or products_of(view, [leaf])
    return not alone or bool(products_of(view, [*group, leaf]))


def _together(a: Leaf, b: Leaf) -> bool:
    if is_whole(a.instruction) or is_whole(b.instruction):
        return a.instruction is b.instruction
    if is_update(a.instruction) or is_update(b.instruction):
        return False
    return a.shape.dims == b.shape.dims and same_order(a.shape.dims, a.shape.minor_to_major, b.shape.minor_to_major)


_EXPENSIVE = frozenset({Op.CONVOLUTION, Op.DOT, Op.REDUCE})
"""Opcodes too expensive to recompute per element of a consumer."""

_PASSES = EMIT.keys() | {Op.GET_TUPLE_ELEMENT}


def products_of(view: View, group: Sequence[Leaf]) -> list[Instruction]:
    """The one dot or convolution, or the reductions over the same columns, on which the group depends through
    elementwise ops.

    All have the result's shape. Empty if the group depends on something else that is expensive.
    """
    found = list(walk([leaf.instruction for leaf in group], view.leaves, _PASSES))
    products = [i for i in found if i.opcode in _EXPENSIVE]
    others = [i for i in found if i.opcode not in _EXPENSIVE and i.opcode not in _PASSES]
    if any(i.opcode in _EXPENSIVE for i in walk(others, view.leaves)):
        return []
    if not all(_has_shape(product, group[0].shape) for product in products):
        return []
    if any(product.opcode is Op.REDUCE for product in products):
        return products if _share_columns(view, products) else []
    return products if len(products) == 1 else []


def _has_shape(product: Instruction, result: Shape) -> bool:
    shapes = [shape for _, shape in product.shape.leaves()]
    return all(s.dims == result.dims and s.minor_to_major == result.minor_to_major for s in shapes)


def _share_columns(view: View, products: Sequence[Instruction]) -> bool:
    """Whether all are reductions that one loop over blocks of columns can compute."""
    alike = (column_run.is_column_reduce(view, p) and column_run.same_columns(products[0], p) for p in products)
    return all(p.opcode is Op.REDUCE for p in products) and all(alike)


def products_of_all(task: Task, op: Op | None) -> tuple[Instruction, ...]:
    """The products of an opcode, or none, on which all results of a kernel depend in one loop. Raises Unfit."""
    leaves = task.results.leaves
    needs(all(leaf.shape.size for leaf in leaves), "a result has no elements")
    groups = groups_of(task.view, leaves)
    needs(len(groups) == 1, f"{len(groups)} loops write the results")
    found = groups[0].products[0].opcode if groups[0].products else None
    needs(found is op, f"{'no product' if found is None else found.value} is computed in blocks")
    return groups[0].products


def finishes(e: Elemental, results: Results) -> Callable[[Index], None]:
    """What computes all results at an index, and stores them."""
    return lambda index: write_all(e, results.leaves, index)
