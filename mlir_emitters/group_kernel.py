"""The function of a kernel that groups of a device's items compute."""

from __future__ import annotations

from mlir import ir

from ..codegen.options import Grouped, GroupShape
from .choice import Part
from .core.builder import Builder
from .core.graph import KernelGraph
from .devices.group import Group, parameter_types
from .devices.group_rows import RowsOfGroup
from .kernel import RULES, argument_attributes, held_types
from .loops.elemental import Elemental
from .loops.scratch import Scratch


def emit_grouped(b: Builder, graph: KernelGraph, part: Part, shape: GroupShape) -> Grouped:
    """Emit the function."""
    count, form = len(graph.arguments), part.fits.parameters
    attributes = {"arg_attrs": ir.ArrayAttr.get(argument_attributes(b, graph, 1))}
    types = b.argument_types([a.size for a in graph.arguments], held_types(b, graph)) + parameter_types(b, shape)
    with b.function(graph.name, types, [], attributes) as parameters:
        group = Group(b, shape, parameters[count:])
        part.form.emit(Elemental(b, parameters[:count], RULES, Scratch()), part.subject, form, group)
        b.give()
    across, down = (form.lanes, form.rows) if isinstance(form, RowsOfGroup) else (shape.across, shape.down)
    return Grouped(form.steps, across, down, group.used)
