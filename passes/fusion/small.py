"""Horizontal fusion: merge small independent kernels of equal depth into one kernel with several results.

A kernel call costs about as much as a few hundred elements, so the number of kernels matters. Candidates are at one
level (the longest chain of kernels above them), so that none depends on another and no cycle can arise. Constants that
enter a loop join as well, because each would need a copy to its buffer otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.analysis.effects import effectful_computations, has_side_effect
from ...hlo.analysis.kernel_forms import MOST_RESULTS
from ...hlo.analysis.overwrites import Readers
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.layouts import is_alias
from ...hlo.opclasses import CONTROL_PREDECESSORS, ELEMENTWISE, control_computations
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from ..rewriting import Names, callees_first, group_order, rebuild, untied
from .reading_order import in_reading_order, order_of_reads

SMALL_BYTES = 2048
"""Maximum bytes of a result that may share a kernel."""

LONG_LIVED = 1 << 16
"""Maximum bytes of an operand whose lifetime the merge may extend."""

MOST_CODE = 160
"""Maximum number of instructions in the fused computation."""

MOST_OPERANDS = 40

_FREE = frozenset({Op.PARAMETER, Op.CONSTANT, Op.TUPLE, Op.GET_TUPLE_ELEMENT})
_ROOTS = (ELEMENTWISE - {Op.COPY, Op.STOCHASTIC_CONVERT}) | {
    Op.BROADCAST,
    Op.CONCATENATE,
    Op.CONSTANT,
    Op.CONVOLUTION,
    Op.DOT,
    Op.DYNAMIC_SLICE,
    Op.GATHER,
    Op.IOTA,
    Op.PAD,
    Op.REVERSE,
    Op.SLICE,
    Op.TRANSPOSE,
}


def fuse_small(module: Module) -> Module:
    """Merge small independent kernels in every computation that the host program runs."""
    names, reads = Names.of(module), order_of_reads(module)
    acting = {c.name for c in effectful_computations(module)}

    def change(computation: Computation) -> Computation:
        if computation.name in acting or any(has_side_effect(i) for i in computation.instructions):
            return computation
        named = _name_starts(computation, names)
        readers = reads(named)
        return _join(in_reading_order(named, readers), readers, names)

    joined = rebuild(module, change, control_computations(module))
    return Module(joined.name, callees_first(joined.entry), joined.entry, joined.attributes)


def _name_starts(computation: Computation, names: Names) -> Computation:
    """Give every scalar constant in a loop's initial state an instruction of its own: it needs its own buffer.

    It waits for nothing: what the constant waits for may come after it.
    """
    new: dict[Instruction, Instruction] = {}
    fresh: list[Instruction] = []
    starts = {i.operands[0] for i in computation.instructions if i.opcode is Op.WHILE}
    for old in computation.instructions:
        operands = [new[o] for o in old.operands]
        if old in starts and old.opcode is Op.TUPLE:
            for n, o in enumerate(operands):
                if o.opcode is Op.CONSTANT and o.shape.is_array and not o.shape.dims:
                    operands[n] = untied(o).replace(name=names.fresh(o.name))
                    fresh.append(operands[n])
        same = all(a is b for a, b in zip(operands, old.operands))
        new[old] = old if same else old.replace(operands=tuple(operands))
    if not fresh:
        return computation
    placed = {o for i in new.values() for o in i.operands}
    listed = [*(f for f in fresh if f in placed), *new.values()]
    return Computation(computation.name, tuple(listed), new[computation.root], computation.attributes)


def _join(computation: Computation, readers: Readers, names: Names) -> Computation:
    groups = _groups(computation, readers)
    if not groups:
        return computation
    group_of = {m: g for g in groups for m in g}
    new: dict[Instruction, Instruction] = {}
    listed: list[Instruction] = []
    for unit in group_order(computation, group_of):
        if isinstance(unit, Instruction):
            operands = tuple(new[o] for o in unit.operands)
            new[unit] = unit if operands == unit.operands else unit.replace(operands=operands)
            listed.append(new[unit])
            continue
        fusion = _fusion(unit, new, names)
        listed.append(fusion)
        for number, member in enumerate(unit):
            new[member] = Instruction(
                Op.GET_TUPLE_ELEMENT, member.name, member.shape, (fusion,), {"index": number}, member.location
            )
            listed.append(new[member])
    return Computation(computation.name, tuple(listed), new[computation.root], computation.attributes)


Group = tuple[Instruction, ...]


def _groups(computation: Computation, readers: Readers) -> list[Group]:
    """Sets of two or more candidates at one level."""
    levels = _levels(computation, readers)
    pinned = computation.pinned
    starts = {o for i in computation.instructions if i.opcode is Op.WHILE for o in i.operands[0].operands}
    found: list[Group] = []
    waiting: dict[int, list[Instruction]] = {}
    for i in computation.instructions:
        constant = i.opcode is Op.CONSTANT
        if i.name in pinned or (constant and i not in starts) or not _may_join(i):
            continue
        level = levels[i]
        group = waiting.setdefault(level, [])
        if not _fits(group, i):
            found.append(tuple(group))
            group = waiting[level] = []
        group.append(i)
    return [g for g in [*found, *map(tuple, waiting.values())] if len(g) > 1]


def _may_join(i: Instruction) -> bool:
    if not i.shape.is_array or i.shape.is_dynamic or not 0 < i.shape.bytes <= SMALL_BYTES:
        return False
    if i.opcode is Op.CONSTANT:
        return not i.shape.dims
    root = i.called()[0].root if i.opcode is Op.FUSION else i
    if i.opcode is Op.FUSION and any(m.opcode is Op.REDUCE for m in i.called()[0].instructions):
        return False
    if root.opcode not in _ROOTS or is_alias(i) or CONTROL_PREDECESSORS in i.attributes:
        return False
    return all(o.shape.is_array and (o.shape.bytes <= LONG_LIVED or o.opcode is Op.PARAMETER) for o in i.operands)


def _code(i: Instruction) -> int:
    return len(i.called()[0].instructions) if i.opcode is Op.FUSION else 1


def _fits(group: Sequence[Instruction], i: Instruction) -> bool:
    operands = {o for m in group for o in m.operands} | set(i.operands)
    code = sum(map(_code, group)) + _code(i)
    return len(group) < MOST_RESULTS and code <= MOST_CODE and len(operands) <= MOST_OPERANDS


def _levels(computation: Computation, readers: Readers) -> dict[Instruction, int]:
    """The number of kernels, loops and conditionals on the longest path to each instruction, itself included.

    readers: of what an instruction overwrites; they come before it.
    """
    levels: dict[Instruction, int] = {}
    names: dict[str, Instruction] = {}
    for i in computation.instructions:
        above = [levels[o] for o in i.operands]
        above += [levels[r] for r in readers.get(i, ())]
        above += [levels[names[p]] for p in i.attributes.get(CONTROL_PREDECESSORS, ()) if p in names]
        free = (i.opcode in _FREE and i.opcode is not Op.CONSTANT) or is_alias(i)
        levels[i] = max(above, default=0) + (not free)
        names[i.name] = i
    return levels


def _fusion(group: Group, new: dict[Instruction, Instruction], names: Names) -> Instruction:
    """One fusion whose root is a tuple of the group's results."""
    operands: dict[Instruction, Instruction] = {}  # → the parameter of the fused computation
    body: list[Instruction] = []
    roots: list[Instruction] = []

    def parameter(o: Instruction) -> Instruction:
        if o not in operands:
            number = len(operands)
            name = names.fresh(f"param_{number}")
            operands[o] = Instruction(Op.PARAMETER, name, o.shape, (), {"parameter_number": number})
        return operands[o]

    for member in group:
        outside = [parameter(new[o]) for o in member.operands]
        if member.opcode is not Op.FUSION:
            roots.append(member.replace(name=names.fresh(member.name), operands=tuple(outside)))
            body.append(roots[-1])
            continue
        inner: dict[Instruction, Instruction] = {}
        for i in member.called()[0].instructions:
            if i.opcode is Op.PARAMETER:
                inner[i] = outside[i.parameter_number]
            else:
                inner[i] = untied(i).replace(name=names.fresh(i.name), operands=tuple(inner[o] for o in i.operands))
                body.append(inner[i])
        roots.append(inner[member.called()[0].root])
    shape = tuple_shape(*(m.shape for m in group))
    root = Instruction(Op.TUPLE, names.fresh("tuple"), shape, tuple(roots))
    name = names.fresh("small_fusion")
    called = Computation(names.fresh(f"{name}_computation"), (*operands.values(), *body, root), root)
    return Instruction(Op.FUSION, name, shape, tuple(operands), {"kind": "kLoop", "calls": called}, group[0].location)
