"""Simplification: read tuple elements directly, and remove or merge data movement that has no effect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...hlo.attributes import SliceDim
from ...hlo.ir import Computation, Instruction, Literal, Module, expand
from ...hlo.layouts import same_bytes
from ...hlo.opclasses import CONTROL_PREDECESSORS, COSMETIC_ATTRIBUTES
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..building import COMMUTATIVE
from ..fuel import spend
from ..rewriting import Names, rebuild, with_attributes

Simplification = Callable[[Instruction], Instruction | None]
"""The value that replaces an instruction; None if it stays."""


def simplify(module: Module) -> Module:
    """Remove tuples, copies and data movement without effect, and merge consecutive data movement."""
    names = Names.of(module)
    return rebuild(module, lambda c: _simplify(c, names))


def _simplify(computation: Computation, names: Names) -> Computation:
    pinned = computation.pinned

    known: set[Instruction] = set()

    def change(instruction: Instruction, add: Callable[[Instruction], Instruction]) -> Instruction | None:
        result = instruction if instruction.opcode not in RULES else better_form(instruction)
        if result is not instruction and any(o not in known for o in result.operands):  # operands that the rule made
            made = {o: o.replace(name=names.fresh(o.name)) for o in result.operands if o not in known}
            known.update(add(o) for o in made.values())
            result = result.replace(operands=tuple(made.get(o, o) for o in result.operands))
        known.add(result)
        return result

    def better_form(instruction: Instruction) -> Instruction:
        if instruction.name in pinned or CONTROL_PREDECESSORS in instruction.attributes:
            return instruction
        result = instruction
        for _ in range(4):  # a rewrite may enable another one
            if result.name in pinned:  # the rule returned a value that control dependencies name, which must not change
                break
            rule = RULES.get(result.opcode)
            better = rule(result) if rule is not None else None
            if better is None or better is result or not spend(f"simplify/{result.opcode.value}"):
                break
            result = better
        return result

    new = expand(computation, change)
    same = len(new.instructions) == len(computation.instructions) and all(
        a is b for a, b in zip(new.instructions, computation.instructions)
    )
    return computation if same else new


def _same(instruction: Instruction, source: Instruction) -> Instruction | None:
    """`source` if it can replace the instruction: same type, dimensions and memory order; else None."""
    return source if same_bytes(instruction.shape, source.shape) else None


def _made(i: Instruction, opcode: Op, *operands: Instruction, **attributes: object) -> Instruction:
    """Another op in place of an instruction, with its name, shape and cosmetic attributes."""
    kept = {k: v for k, v in i.attributes.items() if k in COSMETIC_ATTRIBUTES}
    return Instruction(opcode, i.name, i.shape, operands, kept | attributes, i.location)


def _plain(*shapes: Shape) -> bool:
    return all(s.is_row_major and not s.is_dynamic and not (s.layout and s.layout.tiles) for s in shapes)


def _get_tuple_element(i: Instruction) -> Instruction | None:
    source = i.operands[0]
    if source.opcode is not Op.TUPLE:
        return None
    element = source.operands[i.attributes["index"]]
    return element if element.shape == i.shape or (not i.shape.is_tuple and _same(i, element)) else None


def _tuple(i: Instruction) -> Instruction | None:
    """A tuple of all elements of one tuple, in order, is that tuple."""
    if not i.operands or i.operands[0].opcode is not Op.GET_TUPLE_ELEMENT:
        return None
    whole = i.operands[0].operands[0]
    if whole.shape != i.shape:
        return None
    for n, element in enumerate(i.operands):
        if (
            element.opcode is not Op.GET_TUPLE_ELEMENT
            or element.operands[0] is not whole
            or element.attributes["index"] != n
        ):
            return None
    return whole


def _reshape(i: Instruction) -> Instruction | None:
    source = i.operands[0]
    if i.shape.is_dynamic or source.shape.is_dynamic:
        return None
    if i.shape.dims == source.shape.dims:
        return _same(i, source)
    if source.opcode is Op.RESHAPE and not source.operands[0].shape.is_dynamic:
        return i.replace(operands=source.operands)
    if source.opcode is Op.BROADCAST and source.operands[0].shape.rank == 0:
        return _made(i, Op.BROADCAST, *source.operands, dimensions=())
    return None


def _broadcast(i: Instruction) -> Instruction | None:
    source = i.operands[0]
    if i.shape.is_dynamic or source.shape.is_dynamic:
        return None
    in_order = all(a < b for a, b in zip(i.dimensions, i.dimensions[1:]))
    if in_order and i.shape.size == source.shape.size and source.shape.rank:
        if i.shape.dims == source.shape.dims:
            return _same(i, source)
        if _plain(i.shape, source.shape):
            return _made(i, Op.RESHAPE, source)
    if source.opcode is Op.BROADCAST:
        merged = tuple(i.dimensions[d] for d in source.dimensions)
        return with_attributes(i, dimensions=merged).replace(operands=source.operands)
    return _broadcast_of_padded_rank(i, source)


def _broadcast_of_padded_rank(i: Instruction, source: Instruction) -> Instruction | None:
    """broadcast(reshape(x)) is a broadcast of x if the reshape only adds or drops dimensions of size 1."""
    if source.opcode is not Op.RESHAPE or not _plain(source.shape, source.operands[0].shape):
        return None
    inner = source.operands[0]
    kept = [i.dimensions[n] for n, d in enumerate(source.shape.dims) if d != 1]
    if [d for d in inner.shape.dims if d != 1] != [d for d in source.shape.dims if d != 1] or len(
        kept
    ) != inner.shape.rank:
        return None
    return with_attributes(i, dimensions=tuple(kept)).replace(operands=(inner,))


def _transpose(i: Instruction) -> Instruction | None:
    source, order = i.operands[0], i.dimensions
    if order == tuple(range(len(order))):
        return _same(i, source)
    if source.opcode is Op.TRANSPOSE:
        merged = tuple(source.dimensions[d] for d in order)
        return with_attributes(i, dimensions=merged).replace(operands=source.operands)
    if source.opcode is Op.BROADCAST and source.operands[0].shape.rank == 0:
        return _made(i, Op.BROADCAST, *source.operands, dimensions=())
    moved = [d for d in order if source.shape.dims[d] != 1]
    if moved == sorted(moved) and _plain(i.shape, source.shape):
        return _made(i, Op.RESHAPE, source)
    return None


def _first_operand(i: Instruction) -> Instruction | None:
    return _same(i, i.operands[0])


def _slice(i: Instruction) -> Instruction | None:
    source = i.operands[0]
    if i.shape.dims == source.shape.dims and all(s.stride == 1 for s in i.attributes["slice"]):
        return _same(i, source)
    if source.opcode is Op.SLICE and not source.shape.is_dynamic:
        inner = source.attributes["slice"]
        merged = tuple(
            SliceDim(a.start + b.start * a.stride, a.start + (b.limit - 1) * a.stride + 1, a.stride * b.stride)
            if b.limit > b.start
            else SliceDim(a.start, a.start, 1)
            for a, b in zip(inner, i.attributes["slice"])
        )
        return with_attributes(i, slice=merged).replace(operands=source.operands)
    if source.opcode is Op.BROADCAST and source.operands[0].shape.rank == 0 and not source.shape.is_dynamic:
        return _made(i, Op.BROADCAST, *source.operands, dimensions=())
    return None


def _pad(i: Instruction) -> Instruction | None:
    return (
        _same(i, i.operands[0]) if all(not (p.low or p.high or p.interior) for p in i.attributes["padding"]) else None
    )


def _concatenate(i: Instruction) -> Instruction | None:
    filled = tuple(o for o in i.operands if o.shape.size)
    if len(filled) == 1:
        return _same(i, filled[0])
    return i.replace(operands=filled) if filled and len(filled) < len(i.operands) else None


def _reverse(i: Instruction) -> Instruction | None:
    return _same(i, i.operands[0]) if all(i.shape.dims[d] == 1 for d in i.dimensions) else None


def _same_size(i: Instruction) -> Instruction | None:
    return _same(i, i.operands[0]) if i.shape.dims == i.operands[0].shape.dims else None


def _dynamic_update_slice(i: Instruction) -> Instruction | None:
    return _same(i, i.operands[1]) if i.operands[1].shape.dims == i.operands[0].shape.dims else None


def _get_dimension_size(i: Instruction) -> Instruction | None:
    shape = i.operands[0].shape
    if shape.is_dynamic or i.operands[0].opcode is Op.SET_DIMENSION_SIZE:
        return None
    size = Literal(i.shape, np.array(shape.dims[i.dimensions[0]], dtype=i.shape.dtype.numpy))
    return _made(i, Op.CONSTANT, literal=size)


def _reduce(i: Instruction) -> Instruction | None:
    """A reduce of dimensions of size 1 by one binary op is that op on the initial value and the reshaped operand."""
    region, source = i.attributes["to_apply"], i.operands[0]
    op = region.root
    if (
        len(i.operands) != 2
        or not i.shape.is_array
        or i.shape.size != source.shape.size
        or i.shape.size == 0
        or op.opcode not in COMMUTATIVE
        or op.shape.without_layout() != i.operands[1].shape.without_layout()
        or not _plain(i.shape, source.shape)
        or op.operands != region.parameters
    ):
        return None
    flat = Instruction(Op.RESHAPE, f"{i.name}.operand", i.shape, (source,), location=i.location)
    start = Instruction(Op.BROADCAST, f"{i.name}.init", i.shape, (i.operands[1],), {"dimensions": ()}, i.location)
    return _made(i, op.opcode, start, flat)


def _sort(i: Instruction) -> Instruction | None:
    """Rows of at most one element are sorted already."""
    shape = i.operands[0].shape
    if shape.is_dynamic or (shape.size and shape.dims[i.dimensions[0]] > 1):
        return None
    if not i.shape.is_tuple:
        return _same(i, i.operands[0])
    if not all(same_bytes(s, o.shape) for s, o in zip(i.shape.elements, i.operands, strict=True)):
        return None
    return _made(i, Op.TUPLE, *i.operands)


RULES: dict[Op, Simplification] = {
    Op.GET_TUPLE_ELEMENT: _get_tuple_element,
    Op.TUPLE: _tuple,
    Op.RESHAPE: _reshape,
    Op.BROADCAST: _broadcast,
    Op.TRANSPOSE: _transpose,
    Op.CONVERT: _first_operand,
    Op.BITCAST: _first_operand,
    Op.BITCAST_CONVERT: _first_operand,
    Op.COPY: _first_operand,
    Op.SLICE: _slice,
    Op.PAD: _pad,
    Op.CONCATENATE: _concatenate,
    Op.REVERSE: _reverse,
    Op.REDUCE: _reduce,
    Op.SORT: _sort,
    Op.DYNAMIC_SLICE: _same_size,
    Op.DYNAMIC_UPDATE_SLICE: _dynamic_update_slice,
    Op.GET_DIMENSION_SIZE: _get_dimension_size,
}
