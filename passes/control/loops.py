"""While-loop simplification, one visit per loop.

- A loop of 0 or 1 iterations, or of a few with a small body, is unrolled.
- Values that a loop forwards unchanged, or resets to the constant they start with, are taken from outside; small
  constants among them move into the loop.
- Values that the body computes from such values alone are computed once, before the loop, where that saves work.
- Values that nothing needs are no longer carried. A loop whose results are all unused is removed, even an endless one:
  as in XLA and the evaluator, loops without effects are assumed to end (`finite-loops` handles those whose results are
  used).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...hlo.analysis.effects import effectful_computations, is_impure
from ...hlo.analysis.trip_count import trip_count
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL, CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape, tuple_shape
from ..flatten import copy_body, unshare
from ..fuel import spend
from ..fusion.cost import weight
from ..fusion.loop import PRODUCERS, ROOTS
from ..rewriting import Names, callees_first, relink_computation

MOST_TRIPS = 4
MOST_UNROLLED = 64
"""Maximum trip count (MOST_TRIPS) and number of unrolled instructions to unroll a loop of two or more iterations."""

MOST_CONSTANT = 16
"""Maximum number of elements of a constant that moves into a loop."""

CHEAP = frozenset({Op.PARAMETER, Op.CONSTANT, Op.GET_TUPLE_ELEMENT, Op.BROADCAST, Op.IOTA, Op.RESHAPE, Op.BITCAST,
                   Op.TUPLE, Op.SLICE, Op.COPY})  # fmt: skip
"""Opcodes too cheap to compute before the loop and carry through it."""

MOST_HOISTED = 1 << 22
"""Maximum number of elements of a value that is computed before a loop and kept alive through it."""


def simplify_loops(module: Module) -> Module:
    """Unroll short loops, hoist loop-invariant values, and drop unused state; inner loops first."""
    if Op.WHILE not in module.opcodes:
        return module
    names, effectful = Names.of(module), effectful_computations(module)
    table: dict[Computation, Computation] = {}
    out: list[Computation] = []
    for old in module.computations:
        linked = relink_computation(old, table)
        if linked is not old and old in effectful:
            effectful.add(linked)
        table[old] = _simplify(linked, names, effectful, out)
        if old in effectful:
            effectful.add(table[old])
        out.append(table[old])
    if all(a is b for a, b in table.items()):
        return module
    entry = table[module.entry]
    return unshare(Module(module.name, callees_first(entry), entry, module.attributes))


def _simplify(
    computation: Computation, names: Names, effectful: set[Computation], regions: list[Computation]
) -> Computation:
    if Op.WHILE not in computation.opcodes:
        return computation
    pinned = computation.pinned
    new: dict[Instruction, Instruction] = {}
    out: dict[Instruction, None] = {}
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        i = old if operands == old.operands else old.replace(operands=operands)
        made = None
        if i.opcode is Op.WHILE and i.name not in pinned and CONTROL_PREDECESSORS not in i.attributes:
            used = None if old is computation.root else _used(computation, old)
            made = _better(i, used, names, effectful, regions)
        if made is None:
            new[old] = i
            out[i] = None
        else:
            body, new[old] = made
            out.update(dict.fromkeys(body))
    if tuple(out) == computation.instructions:
        return computation
    return Computation(computation.name, tuple(out), new[computation.root], computation.attributes)


def _used(computation: Computation, whole: Instruction) -> frozenset[int] | None:
    """The elements of a tuple that its users read; None if a user reads it whole."""
    users = computation.users[whole]
    if any(u.opcode is not Op.GET_TUPLE_ELEMENT for u in users):
        return None
    return frozenset(u.attributes["index"] for u in users)


Made = tuple[list[Instruction], Instruction]
"""Instructions, and the value that replaces the loop."""


def _better(
    i: Instruction, used: frozenset[int] | None, names: Names, effectful: set[Computation], regions: list[Computation]
) -> Made | None:
    condition, body = i.attributes["condition"], i.attributes["body"]
    if condition in effectful or body in effectful:
        return None
    trips = trip_count(i)
    if trips is not None and _unrolls(trips, body) and spend("loops/unroll"):
        return _unrolled(i, body, trips, names)
    loop = _Loop.of(i, used)
    return loop.rebuilt(names, regions) if loop is not None and loop.improves and spend("loops/rebuild") else None


# --- straight-line code ----------------------------------------------------------------------------------------------


def _unrolls(trips: int, body: Computation) -> bool:
    if trips <= 1:
        return True
    inner = any(j.opcode in CONTROL for j in body.instructions)
    return not inner and trips <= MOST_TRIPS and trips * len(body.instructions) <= MOST_UNROLLED


def _unrolled(i: Instruction, body: Computation, trips: int, names: Names) -> Made:
    made: list[Instruction] = []
    value = i.operands[0]
    for _ in range(trips):
        copies, value = copy_body(body, (value,), names)
        made += copies
    return made, value


# --- carried values --------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Loop:
    """A loop over a tuple that is read element by element, and what can be simplified about it."""

    loop: Instruction
    init: tuple[Instruction, ...]
    fixed: frozenset[int]  # elements that the body forwards unchanged
    moved: frozenset[int]  # small constants among the fixed elements
    hoisted: tuple[Instruction, ...]  # values that the body computes from fixed elements, in order
    carried: tuple[int, ...]  # elements that must be carried
    exported: tuple[Instruction, ...]  # hoisted values that the rest of the body reads
    needed: frozenset[int]  # elements that are read after the loop and may change in it

    @property
    def improves(self) -> bool:
        return not self.needed or len(self.carried) < len(self.init) or bool(self.exported)

    @classmethod
    def of(cls, loop: Instruction, used: frozenset[int] | None) -> _Loop | None:
        condition, body = loop.attributes["condition"], loop.attributes["body"]
        init = loop.operands[0]
        if init.opcode is not Op.TUPLE or body.root.opcode is not Op.TUPLE:
            return None
        if any(_used(c, c.parameters[0]) is None or c.root is c.parameters[0] for c in (condition, body)):
            return None
        if any(CONTROL_PREDECESSORS in i.attributes for c in (condition, body) for i in c.instructions):
            return None
        if any(s.is_tuple or s.is_dynamic or not s.is_array for s in loop.shape.elements):
            return None
        count = len(init.operands)
        fixed = frozenset(n for n in range(count) if _stays(body.root.operands[n], init.operands[n], n, body))
        fixed = frozenset(n for n in fixed if init.operands[n].shape == loop.shape.elements[n])
        moved = frozenset(n for n in fixed if _is_small_constant(init.operands[n]))
        hoisted = _invariant(body, fixed)
        exported = _worth_keeping(body, hoisted)
        needed = (frozenset(range(count)) if used is None else used) - fixed
        carried = _carried(condition, body, needed, moved, frozenset(exported))
        return cls(loop, init.operands, fixed, moved, tuple(hoisted), carried, exported, needed)

    def rebuilt(self, names: Names, regions: list[Computation]) -> Made:
        made: list[Instruction] = []
        if not self.needed:
            shape = tuple_shape(*(p.shape for p in self.init))
            whole = Instruction(Op.TUPLE, names.fresh(f"{self.loop.name}.parts"), shape, self.init)
            return [whole], whole
        outer = self._hoist(names, made)
        init = (*(self.init[n] for n in self.carried), *(outer[h] for h in self.exported))
        shape = tuple_shape(*(self.loop.shape.elements[n] for n in self.carried), *(h.shape for h in self.exported))
        start = Instruction(Op.TUPLE, names.fresh(f"{self.loop.name}.init"), shape, init)
        condition = self._new_condition(shape, names)
        body = self._new_body(shape, names)
        regions += [condition, body]
        attributes = {k: v for k, v in self.loop.attributes.items() if k != "sharding"}
        attributes |= {"condition": condition, "body": body}
        loop = Instruction(Op.WHILE, names.fresh(self.loop.name), shape, (start,), attributes, self.loop.location)
        made += [start, loop]
        place = {n: k for k, n in enumerate(self.carried)}
        parts = []
        for n, value in enumerate(self.init):
            if n in place and n not in self.fixed:
                value = _part(loop, place[n], names)
                made.append(value)
            parts.append(value)
        whole = Instruction(
            Op.TUPLE, names.fresh(f"{self.loop.name}.parts"), tuple_shape(*(p.shape for p in parts)), tuple(parts)
        )
        return [*made, whole], whole

    def _hoist(self, names: Names, made: list[Instruction]) -> dict[Instruction, Instruction]:
        """Copy the needed hoisted instructions in front of the loop. Returns the outside value of each."""
        outer: dict[Instruction, Instruction] = {}
        needed = _cone(self.exported)
        body = self.loop.attributes["body"]
        for h in self.hoisted:
            if h not in needed:
                continue
            element = _element(h, body)
            if element is not None:
                outer[h] = self.init[element]
            else:
                outer[h] = h.replace(name=names.fresh(h.name), operands=tuple(outer[o] for o in h.operands))
                made.append(outer[h])
        return outer

    def _new_condition(self, shape: Shape, names: Names) -> Computation:
        """The condition over the new tuple, without instructions that it no longer needs."""
        old = self.loop.attributes["condition"]
        parameter = _renewed(old.parameters[0], shape, names)
        new = self._rewired(old, _cone([old.root]), parameter, {}, names)
        return Computation(old.name, (parameter, *new.values()), new[old.root], old.attributes)

    def _new_body(self, shape: Shape, names: Names) -> Computation:
        """The body over the new tuple, without instructions that it no longer needs; hoisted values are forwarded."""
        old = self.loop.attributes["body"]
        parameter = _renewed(old.parameters[0], shape, names)
        exported = {h: len(self.carried) + k for k, h in enumerate(self.exported)}
        roots = [old.root.operands[n] for n in self.carried]
        new = self._rewired(old, _cone(roots, stop=frozenset(exported)), parameter, exported, names)
        for h, k in exported.items():  # hoisted values that only the root needs
            if h not in new:
                new[h] = _part(parameter, k, names)
        operands = (*(new[r] for r in roots), *(new[h] for h in exported))
        root = old.root.replace(shape=shape, operands=operands)
        return Computation(old.name, (parameter, *new.values(), root), root, old.attributes)

    def _rewired(
        self,
        computation: Computation,
        needed: Collection[Instruction],
        parameter: Instruction,
        exported: Mapping[Instruction, int],
        names: Names,
    ) -> dict[Instruction, Instruction]:
        """The new value of each needed instruction, in order, with `parameter` as the state.

        exported: the elements of the new state that hold hoisted instructions.
        """
        place = {n: k for k, n in enumerate(self.carried)}
        new: dict[Instruction, Instruction] = {}
        for i in computation.instructions:
            if i not in needed or i is computation.parameters[0]:
                continue
            element = _element(i, computation)
            if i in exported:
                new[i] = _part(parameter, exported[i], names)
            elif element is None:
                new[i] = i.replace(operands=tuple(new[o] for o in i.operands))
            elif element in self.moved:
                new[i] = self.init[element].replace(name=names.fresh(i.name), shape=i.shape)
            else:
                new[i] = i.replace(operands=(parameter,), attributes={"index": place[element]})
        return new


def _renewed(parameter: Instruction, shape: Shape, names: Names) -> Instruction:
    return parameter.replace(name=names.fresh(parameter.name), shape=shape)


def _part(whole: Instruction, index: int, names: Names) -> Instruction:
    shape = whole.shape.elements[index]
    return Instruction(Op.GET_TUPLE_ELEMENT, names.fresh(f"{whole.name}.part"), shape, (whole,), {"index": index})


def _element(i: Instruction, computation: Computation) -> int | None:
    """The index of the loop state element that an instruction reads; None if it reads none."""
    if i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] is computation.parameters[0]:
        return i.attributes["index"]
    return None


def _is_small_constant(i: Instruction) -> bool:
    return i.opcode is Op.CONSTANT and i.shape.size <= MOST_CONSTANT


def _stays(after: Instruction, before: Instruction, n: int, body: Computation) -> bool:
    """Whether element n is forwarded unchanged, or reset to the constant it starts with."""
    if after.opcode is Op.CONSTANT and before.opcode is Op.CONSTANT:
        return not after.literal.is_elided and not before.literal.is_elided and after.literal == before.literal
    return _element(after, body) == n


def _invariant(body: Computation, fixed: frozenset[int]) -> dict[Instruction, None]:
    """Instructions that depend only on fixed elements and constants, in order."""
    found: dict[Instruction, None] = {}
    for i in body.instructions:
        if _element(i, body) in fixed or i.opcode is Op.CONSTANT:
            found[i] = None
        elif is_impure(i) or i.opcode in CONTROL or not i.shape.is_array or i.shape.size > MOST_HOISTED:
            continue
        elif (i.operands or i.opcode is Op.IOTA) and all(o in found for o in i.operands):
            found[i] = None
    return found


def _worth_keeping(body: Computation, invariant: Collection[Instruction]) -> tuple[Instruction, ...]:
    """The invariant values to compute before the loop and carry, in order.

    These are the values that cost more than reading them, and those that a kernel of the body cannot compute element by
    element.
    """
    inside: set[Instruction] = set()  # invariant, but computed in each iteration
    kept: list[Instruction] = []
    for i in reversed(list(invariant)):
        readers = [u for u in body.users[i] if u in inside or u not in invariant]
        if not readers and i is not body.root:
            continue
        by_element = all(u.opcode in ROOTS for u in readers)
        if i.opcode in CHEAP or (i.opcode in PRODUCERS and weight(i) <= 1 and by_element):
            inside.add(i)
        else:
            kept.append(i)
    return tuple(reversed(kept))


def _cone(roots: Sequence[Instruction], stop: frozenset[Instruction] = frozenset()) -> set[Instruction]:
    """The roots and everything that they need, not looking past `stop`."""
    seen = set(roots)
    stack = list(roots)
    while stack:
        i = stack.pop()
        if i in stop:
            continue
        for o in i.operands:
            if o not in seen:
                seen.add(o)
                stack.append(o)
    return seen


def _carried(
    condition: Computation,
    body: Computation,
    outside: frozenset[int],
    moved: frozenset[int],
    stop: frozenset[Instruction],
) -> tuple[int, ...]:
    """Elements that the condition, users outside, or other carried elements need, not looking past `stop`."""
    needed: set[int] = set()
    todo = list(outside)
    for i in _cone([condition.root]):
        element = _element(i, condition)
        if element is not None:
            todo.append(element)
    seen: set[Instruction] = set()
    while todo:
        n = todo.pop()
        if n in needed or n in moved:
            continue
        needed.add(n)
        stack = [body.root.operands[n]]
        while stack:
            i = stack.pop()
            if i in seen or i in stop:
                continue
            seen.add(i)
            element = _element(i, body)
            if element is not None:
                todo.append(element)
            else:
                stack.extend(i.operands)
    return tuple(sorted(needed))
