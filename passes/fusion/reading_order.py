"""Orders in which what an op overwrites in place has been read before, so that fusion need not force a copy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ...hlo.analysis.effects import effectful_computations
from ...hlo.analysis.overwrites import Readers, nothing_kept, reads_first
from ...hlo.analysis.updates import reads_in_place, updated_count
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.layouts import same_bytes
from ...hlo.opclasses import CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ..rewriting import topological_order

LARGEST_CONE = 256
"""Number of producers of an update from which they are not looked at one by one: they are taken to read its operand."""


def order_of_reads(
    module: Module, kept: Callable[[Instruction], bool] = nothing_kept
) -> Callable[[Computation], Readers]:
    """Returns a function that finds the readers that come before what overwrites their values in a computation.

    kept: whether what an instruction makes must not be overwritten. Constants never are, nor are inputs of the program
    that it does not own.
    """
    acting = {c.name for c in effectful_computations(module)}
    owned = bool(module.attributes.get("input_output_alias"))

    def find(computation: Computation) -> Readers:
        entry = computation.name == module.entry.name
        never = {Op.CONSTANT, Op.PARAMETER} if entry and not owned else {Op.CONSTANT}
        return reads_first(computation, acting, lambda maker: maker.opcode in never or kept(maker), once=entry)

    return find


def in_reading_order(computation: Computation, readers: Readers) -> Computation:
    """The computation with each of these readers before the op that overwrites what it reads, otherwise as it is."""
    if not readers:
        return computation
    order = _order(computation, readers, 0)
    if order == list(range(len(order))):
        return computation
    listed = tuple(computation.instructions[n] for n in order)
    return Computation(computation.name, listed, computation.root, computation.attributes)


def _order(computation: Computation, readers: Readers, delay: int) -> list[int]:
    """The present numbers of the instructions in a topological order, as it is but for ops that overwrite.

    delay: added to these ops' numbers when several instructions could come next.
    """
    place = {i: n + (delay if i in readers else 0) for n, i in enumerate(computation.instructions)}
    needs = {place[i]: {place[o] for o in _before(computation, i, readers)} for i in computation.instructions}
    return [n if n < len(place) else n - delay for n in topological_order(needs)]


def _before(computation: Computation, i: Instruction, readers: Readers) -> list[Instruction]:
    names: Mapping[str, Instruction] = computation.by_name
    tied = [names[p] for p in i.attributes.get(CONTROL_PREDECESSORS, ()) if p in names]
    return [*i.operands, *tied, *readers.get(i, ())]


class ReadingOrder:
    """Which kernels may compute what reads a value that is overwritten in place.

    A reader in a kernel reads when the kernel runs. There is an order of the ops in which each one that overwrites a
    value comes as late as it can, behind the value's readers. A kernel whose root comes before the op may read the
    value. The op's own kernel may if it reads only what it writes next.
    """

    def __init__(self, computation: Computation, readers: Readers, producers: Collection[Op]):
        self.computation, self.producers = computation, producers
        order = _order(computation, readers, len(computation.instructions)) if readers else []
        self.place = {computation.instructions[n]: place for place, n in enumerate(order)}
        self.overwriters: dict[Instruction, list[Instruction]] = {}
        self.barred: dict[Instruction, Collection[Instruction]] = {}
        for op, found in readers.items():
            for reader in found:
                self.overwriters.setdefault(reader, []).append(op)
            if updated_count(op):
                self.barred[op] = self._barred(op, found)

    def allows(self, root: Instruction, i: Instruction) -> bool:
        """Whether the kernel of `root` may compute `i`."""
        if i in self.barred.get(root, ()):
            return False
        return all(op is root or self.place[root] < self.place[op] for op in self.overwriters.get(i, ()))

    def _barred(self, op: Instruction, readers: Collection[Instruction]) -> Collection[Instruction]:
        """What the kernel of an op may not compute: readers of other places than it writes, and operands made of them.

        Such an operand has a kernel of its own, which then computes all that reads the old value.
        """
        if op.opcode is Op.DYNAMIC_UPDATE_SLICE and op.operands[1].shape.size == 1:
            return ()
        found: set[Instruction] = set()
        cones = [self._cone(o) for o in op.operands[updated_count(op) :]]
        inside = frozenset[Instruction]().union(*cones)
        wrong = {r for r in readers if len(inside) > LARGEST_CONE or not self._just_before(op, r, inside)}
        for operand, cone in zip(op.operands[updated_count(op) :], cones):
            if not cone.isdisjoint(wrong):
                found.add(operand)
        return found | wrong

    def _cone(self, end: Instruction) -> frozenset[Instruction]:
        """What a kernel might compute for a value, the value itself included."""
        found, stack = set[Instruction](), [end]
        while stack and len(found) <= LARGEST_CONE:
            i = stack.pop()
            if i.opcode in self.producers and i not in found:
                found.add(i)
                stack += i.operands
        return frozenset(found)

    def _just_before(self, op: Instruction, reader: Instruction, inside: Collection[Instruction]) -> bool:
        """Whether a dynamic-update-slice's kernel reads just the elements that it writes, each just before it.

        inside: what the kernel might compute.
        """
        if op.opcode is not Op.DYNAMIC_UPDATE_SLICE or reader.opcode is not Op.DYNAMIC_SLICE:
            return False
        target, update, *starts = op.operands
        places: Sequence[Instruction] = reader.operands[1:]
        alike = reader.operands[0] is target and list(places) == starts and target not in places
        if not alike or op.operands.count(target) > 1 or not same_bytes(reader.shape, update.shape):
            return False
        seen, stack = {reader}, [reader]
        while stack:
            value = stack.pop()
            users = [u for u in self.computation.users[value] if u in inside or u is op]
            if value is update:
                if users != [op] or op.operands.count(update) > 1:
                    return False
                continue
            if op in users or not all(reads_in_place(u, value) for u in users):
                return False
            stack += [u for u in users if u not in seen]
            seen.update(users)
        return True
