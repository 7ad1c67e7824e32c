"""Build fusions from groups of kernels: one parameter per outside value, and a tuple of the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ...hlo.analysis.overwrites import Readers
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from ..cleanup.cse import share_computation
from ..rewriting import Names, group_order, untied
from .merge import WINDOW, Form, Group, Merger, Unit, is_result, made_by
from .reading_order import in_reading_order


def merge_all(
    computation: Computation,
    names: Names,
    suffix: str,
    unit: Callable[[Instruction, Collection[str]], Unit | None],
    common: Callable[[Unit, Unit], Form | None],
    readers: Readers,
) -> Computation:
    """Merge the kernels of a computation; names of the fusions end in `suffix`.

    readers: the ops that have to come before what overwrites their operand.
    """
    computation = in_reading_order(computation, readers)
    groups: dict[Instruction, Group] = {}
    for start in range(0, len(computation.instructions), WINDOW):
        part = computation.instructions[start : start + WINDOW]
        groups |= Merger(computation, part, unit, common, readers).run()
    return build_groups(computation, groups, names, suffix) if groups else computation


def build_groups(
    computation: Computation, groups: Mapping[Instruction, Group], names: Names, suffix: str
) -> Computation:
    """Replace each group by one fusion."""
    lists = {g: tuple(u.instruction for u in g.units) for g in groups.values()}
    members = {i: lists[g] for i, g in groups.items()}
    new: dict[Instruction, Instruction] = {}
    listed: list[Instruction] = []
    for unit in group_order(computation, members, made_by):
        if isinstance(unit, Instruction):
            source = made_by(unit)
            inside = source is not unit and members.get(source)
            if unit in new or (inside and not is_result(unit, inside, computation.users, computation.root)):
                continue  # only the group reads this view
            operands = tuple(new[o] for o in unit.operands)
            new[unit] = unit if operands == unit.operands else unit.replace(operands=operands)
            listed.append(new[unit])
        else:
            listed += _build(unit, computation, new, names, suffix)
    return Computation(computation.name, tuple(listed), new[computation.root], computation.attributes)


def _build(
    members: tuple[Instruction, ...],
    computation: Computation,
    new: dict[Instruction, Instruction],
    names: Names,
    suffix: str,
) -> list[Instruction]:
    """The fusion of a group and the elements of its tuple; records in `new` the value that replaces each result."""
    body = _Body(set(members), new, names)
    for member in members:
        body.add(member)
    results = []
    for member in members:
        if is_result(member, body.members, computation.users, computation.root):
            views = [u for u in computation.users[member] if u.opcode is Op.GET_TUPLE_ELEMENT]
            read = [v for v in views if is_result(v, body.members, computation.users, computation.root)]
            results += read if member.shape.is_tuple else [member]
    if not results:
        return []  # the whole group is dead code
    called = body.finish([body.value(r) for r in results], suffix)
    shape = called.root.shape
    name = names.fresh(f"{_name(called)}_{suffix}")
    operands = tuple(body.operands)
    kind = "kInput" if any(i.opcode is Op.REDUCE for i in called.instructions) else "kLoop"
    attributes: dict[str, object] = {"kind": kind, "calls": called}
    fusion = Instruction(Op.FUSION, name, shape, operands, attributes, members[-1].location)
    if len(results) == 1:
        new[results[0]] = fusion
        return [fusion]
    made = [fusion]
    for number, result in enumerate(results):
        made.append(Instruction(Op.GET_TUPLE_ELEMENT, result.name, result.shape, (fusion,), {"index": number}))
        new[result] = made[-1]
    return made


class _Body:
    """The computation of a fusion under construction. inner: the inner value for each outside value."""

    def __init__(self, members: set[Instruction], new: Mapping[Instruction, Instruction], names: Names):
        self.members, self.new, self.names = members, new, names
        self.inner: dict[Instruction, Instruction] = {}
        self.operands: list[Instruction] = []
        self.parameters: list[Instruction] = []
        self.body: list[Instruction] = []

    def add(self, member: Instruction) -> None:
        operands = [self.value(o) for o in member.operands]
        if member.opcode is not Op.FUSION:
            self.inner[member] = self._copy(member, operands)
            return
        inner: dict[Instruction, Instruction] = {}
        called = member.called()[0]
        for i in called.instructions:
            known = operands[i.parameter_number] if i.opcode is Op.PARAMETER else None
            inner[i] = known or self._copy(i, [inner[o] for o in i.operands])
        self.inner[member] = inner[called.root]

    def value(self, outer: Instruction) -> Instruction:
        """The inner value of an outside one: made here, a view of a value made here, a constant, or a parameter."""
        known = self.inner.get(outer)
        if known is None:
            if made_by(outer) in self.members and outer.operands:
                known = self._copy(outer, [self.value(outer.operands[0])])
            elif outer.opcode is Op.CONSTANT and not outer.shape.dims:
                known = self._copy(outer, [])
            else:
                number = len(self.operands)
                known = Instruction(
                    Op.PARAMETER, self.names.fresh(f"param_{number}"), outer.shape, (), {"parameter_number": number}
                )
                self.operands.append(self.new[outer])
                self.parameters.append(known)
            self.inner[outer] = known
        return known

    def _copy(self, i: Instruction, operands: list[Instruction]) -> Instruction:
        made = untied(i).replace(name=self.names.fresh(i.name), operands=tuple(operands))
        self.body.append(made)
        return made

    def finish(self, results: list[Instruction], suffix: str) -> Computation:
        root = results[0]
        if len(results) > 1:
            shape = tuple_shape(*(r.shape for r in results))
            root = Instruction(Op.TUPLE, self.names.fresh("tuple"), shape, tuple(results))
            self.body.append(root)
        name = self.names.fresh(f"{suffix}_computation")
        return share_computation(Computation(name, (*self.parameters, *self.body), root))


def _name(called: Computation) -> str:
    words = [i.opcode.value.replace("-", "_") for i in called.instructions if i.opcode is Op.REDUCE or i.operands]
    telling = [w for w in dict.fromkeys(words) if w not in ("broadcast", "tuple", "bitcast", "reshape", "convert")]
    return "_".join(telling[-3:])
