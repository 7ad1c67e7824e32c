"""Choose layouts for operands of library calls: an operand in the routine's layout can be overwritten in place, and one
that lies as what it is computed from is not turned.
"""

from __future__ import annotations

from ...hlo.ir import Computation, Instruction, Module, rewrite
from ...hlo.layouts import same_bytes
from ...hlo.library.calls import LIBRARY
from ...hlo.library.foreign import taken_over
from ...hlo.opclasses import ELEMENTWISE, control_computations
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ...hlo.shapes import Layout
from ..rewriting import callees_first, rebuild, with_attributes

WRITES_ANY_LAYOUT = ELEMENTWISE | {Op.BROADCAST, Op.TRANSPOSE, Op.IOTA}
"""Opcodes whose kernels write any layout at about the same cost."""

READS_ANY_LAYOUT = WRITES_ANY_LAYOUT | {Op.PARAMETER, Op.CONSTANT, Op.SLICE, Op.RESHAPE, Op.GATHER, Op.DYNAMIC_SLICE}
"""Opcodes that may occur in a fusion whose layout may change: they are computed element by element."""


def choose_library_layouts(module: Module) -> Module:
    """Produce the operands that a library call overwrites in the layout that the library expects."""
    if not module.opcodes & LIBRARY:
        return module
    changed = rebuild(module, _choose, control_computations(module))
    if changed is module:
        return module
    return Module(changed.name, callees_first(changed.entry), changed.entry, changed.attributes)


def _choose(computation: Computation) -> Computation:
    wanted: dict[str, Layout] = {}
    for i in computation.instructions:
        if i.opcode in LIBRARY:
            wanted |= _wanted(computation, i)
    if not wanted:
        return computation

    def change(i: Instruction) -> Instruction | None:
        layout = wanted.get(i.name)
        return _with_layout(i, layout) if layout is not None else None

    return rewrite(computation, change)


def _with_layout(i: Instruction, layout: Layout) -> Instruction:
    if i.opcode is Op.FUSION:
        end = i.called()[0].root.name
        body = rewrite(i.called()[0], lambda b: _with_layout(b, layout) if b.name == end else None)
        i = with_attributes(i, calls=body)
    return i.replace(shape=replace(i.shape, layout=layout))


def _writes_any_layout(i: Instruction) -> bool:
    if i.opcode is not Op.FUSION or not i.shape.is_array:
        return i.opcode in WRITES_ANY_LAYOUT
    body = i.called()[0]
    return body.root.opcode in WRITES_ANY_LAYOUT and body.opcodes <= READS_ANY_LAYOUT


def _wanted(computation: Computation, call: Instruction) -> dict[str, Layout]:
    leaves = [shape for _, shape in call.shape.leaves()]
    found = {}
    for n, leaf in taken_over(call):
        operand, result = call.operands[n], leaves[leaf]
        alone = computation.users[operand] == (call,) and call.operands.count(operand) == 1
        if alone and _writes_any_layout(operand) and not same_bytes(operand.shape, result):
            found[operand.name] = Layout(result.minor_to_major)
    return found | _as_read(computation, call)


def _as_read(computation: Computation, call: Instruction) -> dict[str, Layout]:
    """Layouts of operands that library calls only read, in the layout of all they are computed from, if that is the one
    that all calls name.
    """
    found = {}
    for operand in call.operands:
        users = computation.users[operand]
        if operand is computation.root or not all(u.opcode in LIBRARY for u in users):
            continue
        if not operand.shape.is_array or not _writes_any_layout(operand):
            continue
        uses = [(u, k) for u in users for k, o in enumerate(u.operands) if o is operand]
        wanted = [_named(u, k) for u, k in uses]
        if wanted[0] is None or any(w != wanted[0] for w in wanted) or any(k in dict(taken_over(u)) for u, k in uses):
            continue
        alike = [o.shape for o in operand.operands if o.shape.is_array and o.shape.dims == operand.shape.dims]
        if alike and all(s.minor_to_major == wanted[0] for s in alike) and operand.shape.minor_to_major != wanted[0]:
            found[operand.name] = Layout(wanted[0])
    return found


def _named(call: Instruction, number: int) -> tuple[int, ...] | None:
    """The layout that a call's text names for an operand."""
    given = call.attributes.get("operand_layout_constraints")
    return None if given is None else given[number].minor_to_major
