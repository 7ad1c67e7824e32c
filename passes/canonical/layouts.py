"""Layout agreement: ops that forward bytes (tuples, loops, branches) get the layouts of the values they forward, and
fusions read and write those of their computations.

Where the module's text requires another layout, the pass inserts a `copy`, so that later stages may treat forwarding as
an alias. A reshape between layouts becomes one of row-major arrays, and copies: these are transposes, done in blocks,
where the reshape would find each element by divisions.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.ir import Computation, Instruction, Module
from ...hlo.layouts import reshape_moves_bytes, same_bytes
from ...hlo.opclasses import branches
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ...hlo.shapes import Shape
from ..rewriting import Names, relink

Coerce = Callable[[Instruction, Shape], Instruction]
"""A value in the layouts of a shape: itself, or a copy."""


def agree_layouts(module: Module) -> Module:
    """Make forwarding ops agree in layout with their sources, and loops and branches with the called parameters."""
    names = Names.of(module)
    table: dict[Computation, Computation] = {}
    wanted: dict[Computation, Shape] = {}  # the shape that the caller requires of the root
    for computation in module.computations:
        for i in computation.instructions:
            if i.opcode is Op.WHILE:
                wanted[i.attributes["body"]] = i.attributes["body"].parameters[0].shape
            elif i.opcode is Op.CONDITIONAL:
                wanted.update(dict.fromkeys(branches(i), i.shape))
    fused = {c for computation in module.computations for i in computation.instructions for c in _bodies(i)}
    for computation in module.computations:
        table[computation] = _agree(computation, wanted.get(computation), table, names, computation not in fused)
    if all(a is b for a, b in table.items()):
        return module
    return Module(module.name, tuple(table.values()), table[module.entry], module.attributes)


def _bodies(i: Instruction) -> tuple[Computation, ...]:
    return tuple(i.called()) if i.opcode is Op.FUSION else ()


def _agree(
    computation: Computation,
    root_shape: Shape | None,
    table: dict[Computation, Computation],
    names: Names,
    reshapes: bool,
) -> Computation:
    """reshapes: whether they become row-major."""
    new: dict[Instruction, Instruction] = {}
    out: dict[Instruction, None] = {}

    def coerce(value: Instruction, shape: Shape) -> Instruction:
        """`value`, or a copy of it in the layouts of `shape`."""
        if _agrees(value.shape, shape):
            return value
        if not shape.is_tuple:
            copy = Instruction(Op.COPY, names.fresh(f"{value.name}.layout"), shape, (value,))
        else:
            parts = []
            for n, element in enumerate(shape.elements):
                part = Instruction(
                    Op.GET_TUPLE_ELEMENT,
                    names.fresh(f"{value.name}.part"),
                    value.shape.elements[n],
                    (value,),
                    {"index": n},
                )
                out[part] = None
                parts.append(coerce(part, element))
            copy = Instruction(Op.TUPLE, names.fresh(f"{value.name}.layout"), shape, tuple(parts))
        out[copy] = None
        return copy

    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        base = relink(old if operands == old.operands else old.replace(operands=operands), table)
        inner = _as_inside(base, coerce, names) if base.opcode is Op.FUSION else base
        if reshapes and base.opcode is Op.RESHAPE:
            inner = _row_major(base, coerce, names)
        if inner.shape is not base.shape:
            out[inner] = None
        new[old] = coerce(inner, base.shape) if base.opcode in (Op.FUSION, Op.RESHAPE) else _fit(base, coerce)
        out[new[old]] = None
    root = new[computation.root]
    if root_shape is not None:
        root = coerce(root, root_shape)
    if root is computation.root and tuple(out) == computation.instructions:
        return computation
    return Computation(computation.name, tuple(out), root, computation.attributes)


def _as_inside(fusion: Instruction, coerce: Coerce, names: Names) -> Instruction:
    """The fusion in the layouts of its computation; if its result's layout changes, under another name."""
    body = fusion.called()[0]
    pairs = zip(fusion.operands, body.parameters, strict=True)
    operands = tuple(coerce(o, p.shape) if o.shape.dtype is p.shape.dtype else o for o, p in pairs)
    if not _agrees(body.root.shape, fusion.shape):
        return fusion.replace(name=names.fresh(f"{fusion.name}.inside"), shape=body.root.shape, operands=operands)
    return fusion if operands == fusion.operands else fusion.replace(operands=operands)


def _row_major(reshape: Instruction, coerce: Coerce, names: Names) -> Instruction:
    """The reshape of a row-major operand; if its own layout is another one, with a row-major result of another name."""
    source, shape = reshape.operands[0].shape, reshape.shape
    if source.is_dynamic or shape.is_dynamic or not reshape_moves_bytes(source, shape):
        return reshape
    operands = (coerce(reshape.operands[0], source.without_layout()),)
    if shape.is_row_major:
        return reshape.replace(operands=operands)
    name = names.fresh(f"{reshape.name}.rows")
    return reshape.replace(name=name, shape=shape.without_layout(), operands=operands)


def _fit(i: Instruction, coerce: Coerce) -> Instruction:
    shape, operands = i.shape, i.operands
    if i.opcode is Op.TUPLE:
        shape = replace(i.shape, elements=tuple(o.shape for o in operands))
    elif i.opcode is Op.GET_TUPLE_ELEMENT:
        shape = operands[0].shape.elements[i.attributes["index"]]
    elif i.opcode in (Op.OPT_BARRIER, Op.DOMAIN, Op.ADD_DEPENDENCY):
        shape = operands[0].shape
    elif i.opcode is Op.WHILE:
        shape = i.attributes["body"].parameters[0].shape
        operands = (coerce(operands[0], shape),)
    elif i.opcode is Op.CONDITIONAL:
        operands = operands[:1] + tuple(coerce(o, b.parameters[0].shape) for o, b in zip(operands[1:], branches(i)))
    if _agrees(shape, i.shape) and operands == i.operands:
        return i
    return i.replace(shape=shape, operands=operands)


def _agrees(a: Shape, b: Shape) -> bool:
    if a is b or a == b:
        return True
    if a.is_tuple:
        return len(a.elements) == len(b.elements) and all(_agrees(x, y) for x, y in zip(a.elements, b.elements))
    return not a.is_array or same_bytes(a, b)
