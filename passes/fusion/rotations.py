"""Rotate loop state (exchange two elements, or rotate several, such as random keys) in one kernel, in place.

Separate copies would need a spare buffer and run one after the other. One kernel reads an element of all arrays before
it writes any.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.analysis.kernel_forms import MOST_RESULTS
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.layouts import same_bytes
from ...hlo.opclasses import control_computations
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from ..rewriting import Names, callees_first, rebuild


def fuse_rotations(module: Module) -> Module:
    """Rotate the elements of a loop's state that exchange places by one kernel per loop body."""
    if Op.WHILE not in module.opcodes:
        return module
    controls = control_computations(module)
    bodies = {i.attributes["body"].name for c in controls for i in c.instructions if i.opcode is Op.WHILE}
    names = Names.of(module)

    def change(computation: Computation) -> Computation:
        moved = _moved(computation) if computation.name in bodies else []
        return _rotated(computation, moved, names) if moved else computation

    turned = rebuild(module, change, controls)
    if turned is module:
        return module
    return Module(turned.name, callees_first(turned.entry), turned.entry, turned.attributes)


def _moved(body: Computation) -> list[int]:
    """State elements that form cycles: each takes the present value of another element and gives its own."""
    root = body.root
    if root.opcode is not Op.TUPLE or len(body.parameters) != 1:
        return []
    source = {
        n: o.attributes["index"]
        for n, o in enumerate(root.operands)
        if o.opcode is Op.GET_TUPLE_ELEMENT and o.operands[0] is body.parameters[0] and _may_move(root, n, o)
    }
    given = list(source.values())
    found: list[int] = []
    for start in source:
        circle, at = [start], source[start]
        while at != start and at in source and len(circle) <= len(source):
            circle.append(at)
            at = source[at]
        if at == start and start == min(circle) and len(circle) > 1 and all(given.count(n) == 1 for n in circle):
            found += circle
    return found[:MOST_RESULTS] if len(found) <= MOST_RESULTS else []


def _may_move(root: Instruction, n: int, o: Instruction) -> bool:
    target = root.shape.elements[n]
    return o.shape.is_array and not o.shape.is_dynamic and o.shape.size > 0 and same_bytes(o.shape, target)


def _rotated(body: Computation, moved: Sequence[int], names: Names) -> Computation:
    """The body with one fusion that copies every element that moves."""
    sources = [body.root.operands[n] for n in moved]
    parameters = [
        Instruction(Op.PARAMETER, names.fresh(f"param_{k}"), s.shape, (), {"parameter_number": k})
        for k, s in enumerate(sources)
    ]
    copies = [Instruction(Op.COPY, names.fresh("copy"), p.shape, (p,)) for p in parameters]
    shape = tuple_shape(*(s.shape for s in sources))
    inner = Instruction(Op.TUPLE, names.fresh("tuple"), shape, tuple(copies))
    name = names.fresh("rotation_fusion")
    called = Computation(names.fresh(f"{name}_computation"), (*parameters, *copies, inner), inner)
    attributes = {"kind": "kLoop", "calls": called}
    fusion = Instruction(Op.FUSION, name, shape, tuple(sources), attributes, body.root.location)
    operands = list(body.root.operands)
    parts = []
    for k, n in enumerate(moved):
        part = Instruction(
            Op.GET_TUPLE_ELEMENT, names.fresh(sources[k].name), sources[k].shape, (fusion,), {"index": k}
        )
        operands[n] = part
        parts.append(part)
    root = body.root.replace(operands=tuple(operands))
    rest = [i for i in body.instructions if i is not body.root]
    return Computation(body.name, (*rest, fusion, *parts, root), root, body.attributes)
