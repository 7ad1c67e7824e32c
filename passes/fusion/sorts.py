"""Sorts of which only a slice is read: the sort's kernel writes the slice only (see hlo/analysis/sorted_parts.py)."""

from __future__ import annotations

from collections.abc import Collection

from ...hlo.analysis.sorted_parts import part_of_sort, sort_of
from ...hlo.ir import Computation, Instruction
from ...hlo.opclasses import CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from ..rewriting import Names


def parts_of_sorts(computation: Computation) -> dict[Instruction, tuple[Instruction, ...]]:
    """The slices of each such sort, or of each fusion that ends in one, in the order of its results."""
    found = {}
    for i in computation.instructions:
        parts = _parts(i, computation) if i.opcode in (Op.SORT, Op.FUSION) and sort_of(i) else None
        if parts:
            found[i] = parts
    return found


def _parts(sort: Instruction, computation: Computation) -> tuple[Instruction, ...] | None:
    users, values = computation.users, [sort]
    if sort.shape.is_tuple:
        values = sorted(users[sort], key=lambda u: u.attributes.get("index", -1))
        if [v.attributes.get("index") for v in values] != list(range(len(sort.shape.elements))):
            return None
    slices = tuple(u for v in values for u in users[v])
    if len(slices) != len(values) or computation.root in values or not _untied((sort, *values, *slices), computation):
        return None
    return slices if all(part_of_sort(s) is not None for s in slices) else None


def _untied(instructions: Collection[Instruction], computation: Computation) -> bool:
    pinned = computation.pinned
    return not any(i.shape.is_dynamic or i.name in pinned or CONTROL_PREDECESSORS in i.attributes for i in instructions)


def cut_sorts(computation: Computation, names: Names) -> Computation:
    """Build one fusion from each such sort and its slices."""
    found = parts_of_sorts(computation)
    if not found:
        return computation
    slices = {s: (sort, n) for sort, parts in found.items() for n, s in enumerate(parts)}
    new: dict[Instruction, Instruction] = {}
    listed: list[Instruction] = []
    for old in computation.instructions:
        if old in slices and slices[old][0].shape.is_tuple:
            sort, number = slices[old]
            made = Instruction(Op.GET_TUPLE_ELEMENT, old.name, old.shape, (new[sort],), {"index": number})
        elif old in slices:
            new[old] = new[slices[old][0]]
            continue
        elif old.opcode is Op.GET_TUPLE_ELEMENT and old.operands[0] in found:
            continue
        else:
            operands = tuple(new[o] for o in old.operands)
            made = old if operands == old.operands else old.replace(operands=operands)
            if old in found:
                made = _cut(made, found[old], names)
        new[old] = made
        listed.append(made)
    return Computation(computation.name, tuple(listed), new[computation.root], computation.attributes)


def _cut(sort: Instruction, slices: tuple[Instruction, ...], names: Names) -> Instruction:
    """The fusion. sort: the sort or fusion, on its new operands."""
    if sort.opcode is Op.FUSION:
        body, root = list(sort.called()[0].instructions), sort.called()[0].root
    else:
        parameters = [
            Instruction(Op.PARAMETER, names.fresh(f"param_{n}"), o.shape, (), {"parameter_number": n})
            for n, o in enumerate(sort.operands)
        ]
        root = sort.replace(name=names.fresh(sort.name), operands=tuple(parameters))
        body = [*parameters, root]
    results = []
    for number, part in enumerate(slices):
        value = root
        if root.shape.is_tuple:
            shape, name = root.shape.elements[number], names.fresh("sorted")
            value = Instruction(Op.GET_TUPLE_ELEMENT, name, shape, (root,), {"index": number})
            body.append(value)
        results.append(part.replace(name=names.fresh(part.name), operands=(value,)))
        body.append(results[-1])
    end = results[0]
    if root.shape.is_tuple:
        end = Instruction(Op.TUPLE, names.fresh("tuple"), tuple_shape(*(r.shape for r in results)), tuple(results))
        body.append(end)
    name = names.fresh("sort_slice_fusion")
    called = Computation(names.fresh(f"{name}_computation"), tuple(body), end)
    return Instruction(Op.FUSION, name, end.shape, sort.operands, {"kind": "kLoop", "calls": called}, sort.location)
