"""Flatten the tuples among the operands of custom calls: a handler gets their leaves."""

from __future__ import annotations

from ...hlo.attributes import OutputAlias
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import ShapeIndex
from ..building import Builder


def flattened(i: Instruction, b: Builder) -> Instruction | None:
    """The custom call with the leaves of its operands; layout constraints and aliased operands follow them."""
    if not any(o.shape.is_tuple for o in i.operands):
        return None
    leaves = [(n, index) for n, o in enumerate(i.operands) for index, _ in o.shape.leaves()]
    operands = [leaf_of(b, i.operands[n], index) for n, index in leaves]
    attributes = dict(i.attributes)
    wanted = attributes.get("operand_layout_constraints")
    if wanted is not None:
        attributes["operand_layout_constraints"] = tuple(wanted[n].at(index) for n, index in leaves)
    rows = attributes.get("output_to_operand_aliasing")
    if rows is not None:
        places = [(row, leaves.index((row.operand, row.operand_index))) for row in rows]
        attributes["output_to_operand_aliasing"] = tuple(OutputAlias(row.output, place, ()) for row, place in places)
    return b.op(Op.CUSTOM_CALL, i.shape, *operands, **attributes)


def leaf_of(b: Builder, value: Instruction, index: ShapeIndex) -> Instruction:
    """A leaf of a value."""
    for number in index:
        value = b.op(Op.GET_TUPLE_ELEMENT, value.shape.elements[number], value, index=number)
    return value
