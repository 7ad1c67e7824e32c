"""Remove unused arrays from a variadic sort, reduce, reduce-window, scatter or opt-barrier."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ...hlo.analysis.effects import has_side_effect
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, tuple_shape
from ..fuel import spend
from ..rewriting import Names, callees_first, rebuild, with_attributes

Numbers = Callable[[int, list[int]], list[int]]
"""(number of arrays, those that stay) → numbers of the operands, or of the region's parameters, that stay."""


def _pairs(count: int, kept: list[int]) -> list[int]:
    return [*kept, *(count + k for k in kept)]


OPERANDS: dict[Op, Numbers] = {
    Op.SORT: lambda count, kept: kept,
    Op.REDUCE: _pairs,
    Op.REDUCE_WINDOW: _pairs,
    Op.SCATTER: lambda count, kept: [*kept, count, *(count + 1 + k for k in kept)],
}


def prune(module: Module) -> Module:
    """Remove unused arrays from variadic sorts, reduces, reduce-windows, scatters, and from opt-barriers."""
    if module.opcodes.isdisjoint(OPERANDS.keys() | {Op.OPT_BARRIER}):
        return module
    names = Names.of(module)
    done = rebuild(module, lambda c: _prune(c, names))
    return done if done is module else Module(done.name, callees_first(done.entry), done.entry, done.attributes)


def _prune(computation: Computation, names: Names) -> Computation:
    kept: dict[Instruction, list[int]] = {}
    for i in computation.instructions:
        if i.shape.is_tuple and _is_free(i, computation):
            needed = sorted(_needed(i, {u.attributes["index"] for u in computation.users[i]}))
            if len(needed) < len(i.shape.elements) and not _rounds(i, needed) and spend():
                kept[i] = needed
    if not kept:
        return computation
    new: dict[Instruction, Instruction] = {}
    out: dict[Instruction, None] = {}
    for i in computation.instructions:
        operands = tuple(new[o] for o in i.operands)
        if i in kept and i.opcode is Op.OPT_BARRIER:
            source, shape = _elements(operands[0], kept[i], names), _shape([i.shape.elements[k] for k in kept[i]])
            out[source] = None
            new[i] = i.replace(shape=shape, operands=(source,))
        elif i in kept:
            new[i] = _pruned(i, operands, kept[i])
        elif operands and i.operands[0] in kept:  # an element
            whole, place = operands[0], kept[i.operands[0]].index(i.attributes["index"])
            new[i] = with_attributes(i, index=place).replace(operands=(whole,)) if whole.shape.is_tuple else whole
        else:
            new[i] = i if operands == i.operands else i.replace(operands=operands)
        out[new[i]] = None
    return Computation(computation.name, tuple(out), new[computation.root], computation.attributes)


def _elements(whole: Instruction, kept: list[int], names: Names) -> Instruction:
    """Some elements of a tuple: another tuple, or the element itself if it is one."""
    if len(kept) == 1:
        return whole.operands[kept[0]]
    parts = tuple(whole.operands[k] for k in kept)
    shape = tuple_shape(*(whole.shape.elements[k] for k in kept))
    return whole.replace(name=names.fresh(whole.name), shape=shape, operands=parts)


def _is_free(i: Instruction, computation: Computation) -> bool:
    """Whether an op can be pruned: only elements of its result are read, and its region has no effects."""
    users = computation.users[i]
    if i is computation.root or not users or any(u.opcode is not Op.GET_TUPLE_ELEMENT for u in users):
        return False
    if any(u.name in computation.pinned or CONTROL_PREDECESSORS in u.attributes for u in (i, *users)):
        return False
    if i.opcode is Op.OPT_BARRIER:
        return i.operands[0].opcode is Op.TUPLE
    if i.opcode not in OPERANDS:
        return False
    region = i.attributes["to_apply"]
    if i.opcode is not Op.SORT and region.root.opcode is not Op.TUPLE:
        return False
    return not any(has_side_effect(k) or CONTROL_PREDECESSORS in k.attributes for k in region.instructions)


def _rounds(i: Instruction, kept: list[int]) -> bool:
    """Whether pruning leaves one array of narrow floats.

    A reduction of one array may keep wider sums, while a reduction of several arrays rounds at each step, so pruning
    would change the result.
    """
    if i.opcode not in (Op.REDUCE, Op.REDUCE_WINDOW) or len(kept) != 1:
        return False
    dtype = i.shape.elements[kept[0]].dtype
    return dtype.is_float and dtype.bits < 32


def _needed(i: Instruction, used: set[int]) -> set[int]:
    """The arrays that are read, and those that the region needs to compute them."""
    if i.opcode is Op.OPT_BARRIER:
        return used
    root, count = i.attributes["to_apply"].root, len(i.shape.elements)
    if i.opcode is Op.SORT:
        return used | {p // 2 for p in parameters_of([root])}
    while True:
        more = used | {p % count for p in parameters_of(root.operands[k] for k in used)}
        if more == used:
            return used
        used = more


def parameters_of(roots: Iterable[Instruction]) -> set[int]:
    """The numbers of the parameters that some values of a region depend on."""
    return {i.parameter_number for i in _reached(roots) if i.opcode is Op.PARAMETER}


def _reached(roots: Iterable[Instruction]) -> Collection[Instruction]:
    found = dict.fromkeys(roots)
    stack = list(found)
    while stack:
        for o in stack.pop().operands:
            if o not in found:
                found[o] = None
                stack.append(o)
    return found


def _pruned(i: Instruction, operands: tuple[Instruction, ...], kept: list[int]) -> Instruction:
    count, region = len(i.shape.elements), i.attributes["to_apply"]
    if i.opcode is Op.SORT:
        numbers, roots = [2 * k + side for k in kept for side in (0, 1)], [region.root]
    else:
        numbers, roots = _pairs(count, kept), [region.root.operands[k] for k in kept]
    made = region_of(region, numbers, roots)
    shape = _shape([i.shape.elements[k] for k in kept])
    left = tuple(operands[n] for n in OPERANDS[i.opcode](count, kept))
    return with_attributes(i, to_apply=made).replace(shape=shape, operands=left)


def _shape(leaves: list[Shape]) -> Shape:
    return leaves[0] if len(leaves) == 1 else tuple_shape(*leaves)


def region_of(region: Computation, numbers: list[int], roots: list[Instruction]) -> Computation:
    """A region restricted to the parameters `numbers`, with the results `roots`, which read no others."""
    places = {number: place for place, number in enumerate(numbers)}
    reached, new = _reached(roots), {}
    for i in region.instructions:
        if i.opcode is Op.PARAMETER and i.parameter_number in places:
            new[i] = with_attributes(i, parameter_number=places[i.parameter_number])
        elif i in reached:
            operands = tuple(new[o] for o in i.operands)
            new[i] = i if operands == i.operands else i.replace(operands=operands)
    root = new[roots[0]]
    if region.root not in reached and len(roots) > 1:
        values = tuple(new[r] for r in roots)
        root = region.root.replace(shape=tuple_shape(*(v.shape for v in values)), operands=values)
        new[region.root] = root
    return Computation(region.name, tuple(new.values()), root, region.attributes)
