"""Give fusions array operands instead of tuples, and distinct results.

A kernel takes arrays only, and writes each result once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ...hlo.ir import Computation, Instruction, Module, expand
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, tuple_shape
from ..rewriting import Names, callees_first, rebuild, with_attributes

Add = Callable[[Instruction], Instruction]


def untuple_fusions(module: Module) -> Module:
    """Replace tuple operands of fusions by their elements, and return each repeated fusion result once.

    The fused computation builds the tuples itself.
    """
    fusions = [i for c in module.computations if Op.FUSION in c.opcodes for i in c.calling if i.opcode is Op.FUSION]
    if not any(_takes_tuple(i) or _repeats(i) for i in fusions):
        return module
    names = Names.of(module)

    def change(i: Instruction, add: Add) -> Instruction | None:
        if i.opcode is not Op.FUSION or not (_takes_tuple(i) or _repeats(i)):
            return None
        repeats, made = _repeats(i), i
        if _takes_tuple(i):
            operands = tuple(leaf for o in i.operands for leaf in _leaves(o, names, add))
            made = with_attributes(i, calls=_untupled(i.called()[0], names)).replace(operands=operands)
        return _given_once(made, names, add) if repeats else made

    changed = rebuild(module, lambda c: expand(c, change))
    return Module(changed.name, callees_first(changed.entry), changed.entry, changed.attributes)


def _takes_tuple(i: Instruction) -> bool:
    return i.opcode is Op.FUSION and any(o.shape.is_tuple for o in i.operands)


def _results(i: Instruction) -> list[Hashable]:
    """One key per result of a fusion: equal for equal arrays of equal layouts."""
    root = i.called()[0].root
    if root.opcode is not Op.TUPLE:
        return []
    found: list[Hashable] = []
    for outer, inner, o in zip(i.shape.elements, root.shape.elements, root.operands, strict=True):
        source = (o.operands[0], o.attributes["index"]) if o.opcode is Op.GET_TUPLE_ELEMENT else o
        found.append((source, outer, inner, o.shape))
    return found


def _repeats(i: Instruction) -> bool:
    results = _results(i)
    return len(set(results)) < len(results)


def _given_once(i: Instruction, names: Names, add: Add) -> Instruction:
    """The result tuple of a fusion, built from a fusion whose results are all distinct."""
    body, results = i.called()[0], _results(i)
    first = sorted({r: n for n, r in reversed(list(enumerate(results)))}.values())
    values = tuple(body.root.operands[n] for n in first)
    kept = tuple(m for m in body.instructions if m is not body.root)
    shape, root = i.shape.elements[first[0]], values[0]
    if len(first) > 1:
        shape = tuple_shape(*(i.shape.elements[n] for n in first))
        root = body.root.replace(shape=tuple_shape(*(body.root.shape.elements[n] for n in first)), operands=values)
        kept = (*kept, root)
    once = Computation(body.name, kept, root, body.attributes)
    fusion = add(with_attributes(i, calls=once).replace(name=names.fresh(i.name), shape=shape))
    parts = {results[n]: _part(fusion, k, names, add) for k, n in enumerate(first)}
    return Instruction(Op.TUPLE, i.name, i.shape, tuple(parts[r] for r in results))


def _part(fusion: Instruction, number: int, names: Names, add: Add) -> Instruction:
    if not fusion.shape.is_tuple:
        return fusion
    name = names.fresh(f"{fusion.name}.{number}")
    return add(Instruction(Op.GET_TUPLE_ELEMENT, name, fusion.shape.elements[number], (fusion,), {"index": number}))


def _leaves(value: Instruction, names: Names, add: Add) -> list[Instruction]:
    """The leaves of a value, read by get-tuple-element."""
    if not value.shape.is_tuple:
        return [value]
    found = []
    for n, shape in enumerate(value.shape.elements):
        name = names.fresh(f"{value.name}.{n}")
        part = add(Instruction(Op.GET_TUPLE_ELEMENT, name, shape, (value,), {"index": n}))
        found += _leaves(part, names, add)
    return found


def _untupled(body: Computation, names: Names) -> Computation:
    """The computation with one parameter for each leaf of its parameters."""
    parameters: list[Instruction] = []
    added: list[Instruction] = []

    def build(shape: Shape, stem: str) -> Instruction:
        if shape.is_tuple:
            parts = tuple(build(s, f"{stem}.{n}") for n, s in enumerate(shape.elements))
            made = Instruction(Op.TUPLE, names.fresh(stem), shape, parts)
            added.append(made)
        else:
            number = {"parameter_number": len(parameters)}
            made = Instruction(Op.PARAMETER, names.fresh(stem), shape, (), number)
            parameters.append(made)
        return made

    new = {p: build(p.shape, p.name) for p in body.parameters}
    for old in body.instructions:
        if old.opcode is not Op.PARAMETER:
            new[old] = old.replace(operands=tuple(new[o] for o in old.operands))
            added.append(new[old])
    return Computation(body.name, (*parameters, *added), new[body.root], body.attributes)
