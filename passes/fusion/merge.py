"""Merging kernels: which kernels may become one; dependence is kept as bit sets.

A form describes how a family of kernels iterates, and in which role each kernel reads and writes its values. Kernels of
one form merge along an edge, or as readers of one array, if each value that one makes is read by the other in exactly
that role, and no dependence between them leads through a third kernel. Values that only the merged kernel reads are no
longer stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from ...hlo.analysis.kernel_forms import MOST_OPERANDS, MOST_RESULTS
from ...hlo.analysis.overwrites import Readers
from ...hlo.ir import Computation, Instruction
from ...hlo.layouts import is_alias
from ...hlo.opclasses import CONTROL_PREDECESSORS, EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field
from ...hlo.shapes import Shape
from .cost import MOST_CODE, code_size

WINDOW = 2000
"""Number of consecutive instructions within which kernels merge, so that dependence fits in small bit sets."""

_FREE = frozenset({Op.RESHAPE, Op.BITCAST, Op.GET_TUPLE_ELEMENT})


@dataclass(frozen=True, slots=True)
class View:
    """A kernel as part of a form: the role of its result, and of each operand (None: it is also read elsewhere)."""

    role: Hashable
    reads: tuple[Hashable | None, ...]


class Form(Protocol):
    """How a family of kernels iterates."""

    def view(self, unit: Unit) -> View | None:
        """The kernel in this form; None if it cannot take the form."""

    def keeps(self, shape: Shape, role: Hashable) -> bool:
        """Whether a view of a value, of this shape, is still in that role."""

    def shared(self, operand: Instruction, role: Hashable | None) -> bool:
        """Whether reading this operand once instead of twice justifies a merge."""

    def accepts(self, units: Sequence[Unit], inner: Sequence[Unit], inputs: int) -> bool:
        """Whether a kernel of these units is efficient. inner: units whose results would no longer be stored."""


@dataclass(eq=False, slots=True)
class Unit:
    """One kernel.

    form: the form that it requires; None if it takes the form of others. expensive: whether it contains expensive
    operations. bends: whether it may take its reader's form instead of its own. replaces: the loop state element whose
    next value it computes. inside: its instructions, ending in `root`. leaves: the inner value of each operand.
    """

    instruction: Instruction
    inside: Sequence[Instruction]
    root: Instruction
    leaves: tuple[Instruction, ...]
    code: int
    expensive: bool
    form: Form | None = None
    bends: bool = False
    replaces: Instruction | None = None
    views: dict[Form, View | None] = field(default_factory=dict)

    def view(self, form: Form) -> View | None:
        if form not in self.views:
            self.views[form] = form.view(self) if self.bends or self.form in (None, form) else None
        return self.views[form]


@dataclass(eq=False, slots=True)
class Group:
    """Units that become one kernel.

    bits, above: its instructions, and everything they depend on, as bit sets of positions.
    """

    units: list[Unit]
    form: Form | None
    bits: int
    above: int


def make_unit(i: Instruction, pinned: Collection[str], bare: Collection[Op], within: Collection[Op]) -> Unit | None:
    """The unit of an instruction that may merge: an op of `bare`, or a fusion of ops of `within`; else None."""
    if i.shape.is_dynamic or i.name in pinned or CONTROL_PREDECESSORS in i.attributes or is_alias(i):
        return None
    if any(not o.shape.is_array or o.shape.is_dynamic for o in i.operands):
        return None
    if not (i.shape.is_array or is_variadic(i)):
        return None
    if i.opcode is Op.FUSION:
        body = i.called()[0]
        inside: Sequence[Instruction] = body.instructions
        if i.attributes.get("kind") not in ("kLoop", "kInput") or any(m.opcode not in within for m in inside):
            return None
        root, leaves = body.root, body.parameters
    elif i.opcode in bare and i.operands:
        inside, root, leaves = (i,), i, i.operands
    else:
        return None
    expensive = any(m.opcode in EXPENSIVE for m in inside)
    return Unit(i, inside, root, leaves, sum(map(code_size, inside)), expensive)


class Merger:
    """Merges the kernels of consecutive instructions.

    unit: returns the unit of an instruction, None if it may not merge. common: returns the form of two kernels neither
    of which requires one. readers: the ops that come before what overwrites their operand, in the instructions' order.
    """

    def __init__(
        self,
        computation: Computation,
        part: Sequence[Instruction],
        unit: Callable[[Instruction, Collection[str]], Unit | None],
        common: Callable[[Unit, Unit], Form | None],
        readers: Readers,
    ):
        self.computation, self.part, self.common, self.readers = computation, part, common, readers
        self.users = computation.users
        self.position = {i: n for n, i in enumerate(part)}
        self.groups: dict[Instruction, Group] = {}
        self.by_name = {i.name: i for i in part}
        tied = computation.pinned
        pinned = tied | {made_by(i).name for i in part if i.name in tied}
        self.above: list[int] = []
        for n, i in enumerate(part):
            above = 0
            for o in self._before(i):
                above |= self.above[o] | 1 << o
            self.above.append(above)
            made = unit(i, pinned)
            if made is not None and not self._read_whole(i):
                self.groups[i] = Group([made], made.form, 1 << n, above)

    def _read_whole(self, i: Instruction) -> bool:
        """Whether something uses the tuple that i makes as a whole, not by its elements."""
        if not i.shape.is_tuple:
            return False
        return i is self.computation.root or any(u.opcode is not Op.GET_TUPLE_ELEMENT for u in self.users[i])

    def _before(self, i: Instruction) -> list[int]:
        """Positions of the instructions that `i` waits for; a view stands for the value that it views."""
        waits = (*map(made_by, i.operands), *self.readers.get(i, ()))
        found = [self.position[o] for o in waits if o in self.position]
        names = i.attributes.get(CONTROL_PREDECESSORS, ())
        return found + [self.position[self.by_name[n]] for n in names if n in self.by_name]

    def run(self) -> dict[Instruction, Group]:
        """The group of each instruction that shares a kernel with others."""
        for _ in range(4):
            if not self._along_edges() | self._beside():
                break
        return {i: g for i, g in self.groups.items() if len(g.units) > 1}

    def _along_edges(self) -> bool:
        changed = False
        for i in self.part:
            if i in self.groups:
                for o in i.operands:
                    source = made_by(o)
                    if source in self.groups:
                        changed |= self._merge(self.groups[source], self.groups[i])
        return changed

    def _beside(self) -> bool:
        """Merge kernels that read the same array. Returns whether any did."""
        changed = False
        readers: dict[Instruction, list[Instruction]] = {}
        for i in self.groups:
            for o in dict.fromkeys(i.operands):
                if o.shape.size > 1:
                    readers.setdefault(made_by(o), []).append(i)
        for array, found in readers.items():
            for a, b in pairwise(found):
                changed |= self._merge(self.groups[a], self.groups[b], (array, a, b))
        return changed

    def _merge(self, a: Group, b: Group, over: tuple[Instruction, Instruction, Instruction] | None = None) -> bool:
        """Merge two groups if possible. over: (array, its reader in a, its reader in b), if that is the reason."""
        if a is b:
            return False
        form = a.form or b.form or self.common(a.units[0], b.units[0])
        if a.form and b.form and a.form != b.form:
            if over is not None or not all(u.bends or u.form is None for u in a.units):
                return False
            form = b.form
        units = a.units + b.units
        if form is None or sum(u.code for u in units) > MOST_CODE or any(u.view(form) is None for u in units):
            return False
        if over is not None and not self._shared(form, units, *over):
            return False
        if not self._fits(units, form) or self._third_between(a, b):
            return False
        self._join(a, b, form)
        return True

    def _shared(self, form: Form, units: list[Unit], array: Instruction, *readers: Instruction) -> bool:
        for unit in units:
            view = unit.view(form)
            if unit.instruction in readers and view is not None:
                pairs = zip(unit.instruction.operands, view.reads, strict=True)
                if not any(made_by(o) is array and form.shared(o, role) for o, role in pairs):
                    return False
        return True

    def _fits(self, units: list[Unit], form: Form) -> bool:
        """Whether values made here are read here in the same role only, and inputs and results are within limits."""
        inside = {u.instruction: u for u in units}
        inputs = set()
        for unit in units:
            view = unit.view(form)
            assert view is not None
            for operand, role in zip(unit.instruction.operands, view.reads, strict=True):
                source = made_by(operand)
                maker = inside[source].view(form) if source in inside else None
                if maker is None:
                    inputs.add(operand)
                elif role is None or role != maker.role or not _kept(operand, role, form):
                    return False
        inner = [u for u in units if not is_result(u.instruction, inside, self.users, self.computation.root)]
        fine = len(inputs) <= MOST_OPERANDS and len(units) - len(inner) <= MOST_RESULTS
        return fine and form.accepts(units, inner, len(inputs))

    def _third_between(self, a: Group, b: Group) -> bool:
        """Whether one group depends on the other through a third instruction."""
        both = a.bits | b.bits
        for lower, upper in ((a, b), (b, a)):
            for unit in lower.units:
                for n in self._before(unit.instruction):
                    if not both >> n & 1 and self.above[n] & upper.bits:
                        return True
        return False

    def _join(self, a: Group, b: Group, form: Form) -> None:
        bits, above = a.bits | b.bits, a.above | b.above
        group = Group(sorted(a.units + b.units, key=lambda u: self.position[u.instruction]), form, bits, above)
        for unit in group.units:
            self.groups[unit.instruction] = group
        everything = bits | above
        first = (bits & -bits).bit_length() - 1
        for n in range(first, len(self.above)):
            if self.above[n] & bits:
                self.above[n] |= everything
        for unit in group.units:
            self.above[self.position[unit.instruction]] |= above


def is_variadic(i: Instruction) -> bool:
    """Whether an instruction results in one variadic reduction."""
    root = i.called()[0].root if i.opcode is Op.FUSION else i
    return root.opcode is Op.REDUCE and root.shape.is_tuple


def made_by(value: Instruction) -> Instruction:
    """The instruction that made the bytes of a value, looking through views."""
    while value.opcode in _FREE and value.operands:
        if value.opcode is Op.GET_TUPLE_ELEMENT:
            return value.operands[0] if is_variadic(value.operands[0]) else value
        if not is_alias(value) or value.shape.dtype is not value.operands[0].shape.dtype:
            return value
        value = value.operands[0]
    return value


def _kept(value: Instruction, role: Hashable, form: Form) -> bool:
    """Whether all views between a value and the instruction that made it keep the role."""
    while value.opcode in (Op.RESHAPE, Op.BITCAST):
        if not form.keeps(value.shape, role):
            return False
        value = value.operands[0]
    return True


def is_result(
    i: Instruction,
    inside: Collection[Instruction],
    users: Mapping[Instruction, tuple[Instruction, ...]],
    root: Instruction,
) -> bool:
    """Whether something outside a group reads what `i` makes (or this view of it), directly or through views."""
    i, stack = made_by(i), [i]
    while stack:
        value = stack.pop()
        if value is root:
            return True
        for user in users[value]:
            if user in inside:
                continue
            if made_by(user) is i:
                stack.append(user)
            else:
                return True
    return False
