"""Facts about a loop's state that hold in every iteration: elements that are always equal, and counters.

- Elements that start equal, and that the body updates equally from equal elements, are all read as the first of them.
- In a loop with a known trip count, an element that starts at a constant and grows by a constant is computed from the
  counter that the condition tests; after the loop it is a constant.
- Comparisons in the body that the ranges of such counters decide become constants.

The pass `loops` drops elements that are no longer read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from ...hlo.analysis.effects import is_impure
from ...hlo.analysis.trip_count import counters_of, trip_count
from ...hlo.fingerprint import attributes_key, computation_key
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL, CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..algebra.logic import decided
from ..algebra.ranges import Range, type_range
from ..algebra.rule import truth, wrapped
from ..building import Builder
from ..flatten import rebuild_callers
from ..fuel import spend
from ..rewriting import Names, with_attributes


def simplify_counters(module: Module) -> Module:
    """Merge equal elements of a loop's state, derive counters from one, and fold comparisons that ranges decide."""
    return rebuild_callers(module, Op.WHILE, _sweep)


def _sweep(computation: Computation, names: Names) -> Computation:
    known: dict[Instruction, _Known] = {}

    def change(old: Instruction, i: Instruction, b: Builder) -> Instruction | None:
        if i.opcode is Op.WHILE:
            users = computation.users[old]
            taken_apart = old is not computation.root and all(u.opcode is Op.GET_TUPLE_ELEMENT for u in users)
            found = _Known.of(i) if taken_apart else None
            made = found.applied(i, names) if found is not None else i
            if found is None or (made is i and not _reads_known(computation, old, found)) or not spend():
                return None
            known[old] = found
            return b.add(made) if made is not i else None
        if i.opcode is Op.GET_TUPLE_ELEMENT and old.operands[0] in known:
            return known[old.operands[0]].behind(i, b)
        return None

    return _rewritten(computation, change, names)


def _reads_known(computation: Computation, loop: Instruction, found: _Known) -> bool:
    """Whether an instruction after the loop reads an element whose final value is known."""
    users = (u for u in computation.users[loop] if u.opcode is Op.GET_TUPLE_ELEMENT)
    return any(u.attributes["index"] in found.same or u.attributes["index"] in found.counters for u in users)


Change = Callable[[Instruction, Instruction, Builder], Instruction | None]
"""(the old instruction, the same on its new operands, a builder) → its replacement; None keeps it."""


def _rewritten(computation: Computation, change: Change, names: Names) -> Computation:
    pinned = computation.pinned
    new: dict[Instruction, Instruction] = {}
    out: list[Instruction] = []
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        i = old if operands == old.operands else old.replace(operands=operands)
        b = Builder(names, i.name, i.location)
        made = change(old, i, b) if i.name not in pinned and CONTROL_PREDECESSORS not in i.attributes else None
        out += [i] if made is None else b.instructions
        new[old] = i if made is None else made
    if tuple(out) == computation.instructions:
        return computation
    return Computation(computation.name, tuple(out), new[computation.root], computation.attributes)


@dataclass(eq=False)
class _Known:
    """Known facts about a loop.

    same: {element: the first element that it always equals}. trips: the trip count. counters: {element: (start, step)}.
    leader: the counter from which others are computed.
    """

    same: Mapping[int, int]
    trips: int | None
    counters: Mapping[int, tuple[int, int]]
    leader: int | None

    @classmethod
    def of(cls, loop: Instruction) -> _Known | None:
        """None if the loop's state is not a tuple that is read element by element."""
        condition, body, init = loop.attributes["condition"], loop.attributes["body"], loop.operands[0]
        if init.opcode is not Op.TUPLE or body.root.opcode is not Op.TUPLE:
            return None
        if any(u.opcode is not Op.GET_TUPLE_ELEMENT for c in (condition, body) for u in c.users[c.parameters[0]]):
            return None
        trips = trip_count(loop)
        counters = counters_of(loop) if trips else {}
        tested = {u.attributes["index"] for u in condition.users[condition.parameters[0]]}
        leader = next((n for n, (_, step) in counters.items() if n in tested and step), None)
        same = _always_equal(loop)
        return cls(same, trips, counters, same.get(leader, leader) if leader is not None else None)

    def applied(self, loop: Instruction, names: Names) -> Instruction:
        """The loop with known elements replaced; the loop itself if nothing changes."""
        condition, body = loop.attributes["condition"], loop.attributes["body"]
        ranges: dict[Instruction, Range] = {}

        def in_condition(old: Instruction, i: Instruction, b: Builder) -> Instruction | None:
            is_part = i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] is condition.parameters[0]
            return self.first(i, b) if is_part else None

        def in_body(old: Instruction, i: Instruction, b: Builder) -> Instruction | None:
            if i.opcode is Op.COMPARE and ranges and (value := decided(i, ranges)) is not None:
                return truth(b, value, i)
            if i.opcode is not Op.GET_TUPLE_ELEMENT or i.operands[0] is not body.parameters[0]:
                return None
            made = self.first(i, b) or self.counted(i, b)
            self.note(i.attributes["index"], made or i, ranges)
            return made

        made = _rewritten(condition, in_condition, names), _rewritten(body, in_body, names)
        if made == (condition, body):
            return loop
        return with_attributes(loop, condition=made[0], body=made[1])

    def first(self, i: Instruction, b: Builder) -> Instruction | None:
        """A read of the first element that equals the one that is read; None if it is the first itself."""
        n = i.attributes["index"]
        return b.add(with_attributes(i, index=self.same[n])) if n in self.same else None

    def counted(self, i: Instruction, b: Builder) -> Instruction | None:
        """A counter computed from the leader: start + (leader - leader's start) · (step / leader's step); else None."""
        n, leader = i.attributes["index"], self.leader
        if leader is None or n == leader or n not in self.counters:
            return None
        (start, step), (first, by) = self.counters[n], self.counters[leader]
        factor, rest = divmod(step, by)
        if rest:
            return None
        state = i.operands[0]
        count = b.op(Op.GET_TUPLE_ELEMENT, state.shape.elements[leader], state, index=leader)
        dtype = i.shape.dtype
        value = b.convert(count, dtype)
        if factor != 1:
            value = b.binary(Op.MULTIPLY, value, wrapped(factor, dtype))
        offset = wrapped(start - first * factor, dtype)
        return b.binary(Op.ADD, value, offset) if offset else value

    def note(self, n: int, value: Instruction, ranges: dict[Instruction, Range]) -> None:
        """Record the range of a counter within the body, if it does not leave its type."""
        if n not in self.counters or not self.trips:
            return
        start, step = self.counters[n]
        ends = sorted((start, start + step * (self.trips - 1)))
        least, most = type_range(value.shape.dtype)
        if least <= ends[0] and ends[1] <= most:
            ranges[value] = ends[0], ends[1]

    def behind(self, i: Instruction, b: Builder) -> Instruction | None:
        """The value of an element after the loop; None if unknown."""
        n = i.attributes["index"]
        if n in self.counters and self.trips is not None:
            start, step = self.counters[n]
            return b.constant(wrapped(start + step * self.trips, i.shape.dtype), i.shape.dtype)
        return self.first(i, b)


# --- elements that are always equal ----------------------------------------------------------------------------------


def _always_equal(loop: Instruction) -> dict[int, int]:
    """{element: the first element that it equals before every iteration}."""
    body, init = loop.attributes["body"], loop.operands[0].operands
    classes = _classes([(_start(o), s) for o, s in zip(init, loop.shape.elements, strict=True)])
    while len(set(classes)) < len(classes):
        numbers = _numbers(body, classes)
        finer = _classes([(c, numbers[o]) for c, o in zip(classes, body.root.operands, strict=True)])
        if finer == classes:
            break
        classes = finer
    return {n: first for n, first in enumerate(classes) if first != n}


def _classes(keys: list[tuple[Hashable, Hashable]]) -> list[int]:
    """For each key the index of the first equal key."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(key, n) for n, key in enumerate(keys)]


def _start(i: Instruction) -> Hashable:
    """A key that is equal for equal values: one instruction, equal constants, or broadcasts of equal constants."""
    if i.opcode is Op.CONSTANT and not i.literal.is_elided:
        return i.shape, attributes_key(i)
    if i.opcode is Op.BROADCAST and i.operands[0].opcode is Op.CONSTANT:
        return i.shape, attributes_key(i), _start(i.operands[0])
    return i


def _numbers(body: Computation, classes: list[int]) -> dict[Instruction, int]:
    """Value numbers of a body's instructions, equal for equal values, assuming that elements of one class are equal."""
    table: dict[Hashable, int] = {}
    found: dict[Instruction, int] = {}
    for i in body.instructions:
        key: Hashable = i
        if i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] is body.parameters[0]:
            key = classes[i.attributes["index"]]
        elif not is_impure(i) and i.opcode not in CONTROL and not (i.opcode is Op.CONSTANT and i.literal.is_elided):
            regions = tuple(computation_key(c) for c in i.called())
            key = (i.opcode, i.shape, tuple(found[o] for o in i.operands), attributes_key(i), regions)
        found[i] = table.setdefault(key, len(table))
    return found
