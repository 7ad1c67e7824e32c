"""Which ops overwrite a value in place, and which other ops read that value, so that they have to come first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from ..ir import Computation, Instruction
from ..opclasses import CONTROL_PREDECESSORS, branches
from ..opcodes import Op
from .effects import has_side_effect
from .leaves import NO_BUFFER, Leaves, forward, leaf_count, moves_no_bytes
from .updates import updated_operands

_UPDATES = frozenset({Op.DYNAMIC_UPDATE_SLICE, Op.SCATTER, Op.FUSION, Op.CUSTOM_CALL})
_CONTROL = frozenset({Op.WHILE, Op.CONDITIONAL})

Readers = Mapping[Instruction, frozenset[Instruction]]
"""For an op that overwrites a value: the other ops that read the value, which come before it. Where there are any: for
each op with an effect, the one before it, too, as orders that respect the readers have to keep the effects' order.
"""

NO_READERS: Readers = {}


def nothing_kept(maker: Instruction) -> bool:
    return False


def reads_first(
    computation: Computation,
    acting: Collection[str] = (),
    kept: Callable[[Instruction], bool] = nothing_kept,
    *,
    once: bool = False,
) -> Readers:
    """For each op that overwrites a value in place: the other readers of the value, if all of them can come before it.

    There is an order of the computation's instructions that respects all of these, besides operands and control
    predecessors. Values that have to be copied in any case are left out: results of the computation, and values that
    are read by something that depends on the op.

    acting: names of the computations with side effects. kept: whether what an instruction makes must not be
    overwritten. once: whether the computation runs once, so that copies of what enters its loops and branches matter
    less than memory.
    """
    ops = _UPDATES if once else _UPDATES | _CONTROL
    if computation.opcodes.isdisjoint(ops):
        return NO_READERS
    writers = [
        (n, i)
        for n, i in enumerate(computation.instructions)
        if i.opcode in ops and (i.opcode in _CONTROL or updated_operands(i))
    ]
    if not writers:
        return NO_READERS
    values = _Values(computation)
    pairs = [
        (n, readers)
        for n, i in writers
        for v in _overwritten(i, values.of)
        if v != NO_BUFFER and v not in values.results and not kept(values.makers[v])
        if (readers := values.readers[v] - {n})
    ]
    return _Order(computation, values.number, acting).respected(pairs) if pairs else NO_READERS


class _Values:
    """A computation's array values by number.

    of: the values behind each instruction. makers: the op that made each value. readers: numbers of the ops that read
    its bytes. results: those that the computation returns.
    """

    def __init__(self, computation: Computation):
        self.number = {i: n for n, i in enumerate(computation.instructions)}
        self.of: dict[Instruction, Leaves] = {}
        self.makers: list[Instruction] = []
        self.readers: list[set[int]] = []
        for n, i in enumerate(computation.instructions):
            if moves_no_bytes(i):
                self.of[i] = forward(i, [self.of[o] for o in i.operands])
                continue
            for o in i.operands:
                for v in self.of[o]:
                    if v != NO_BUFFER:
                        self.readers[v].add(n)
            count = leaf_count(i.shape)
            self.of[i] = tuple(range(len(self.makers), len(self.makers) + count))
            self.makers += [i] * count
            self.readers += [set() for _ in range(count)]
        self.results = frozenset(self.of[computation.root])


def _overwritten(i: Instruction, values: Mapping[Instruction, Leaves]) -> Iterable[int]:
    """The values that an op overwrites: arrays that it updates, and what its loop or its branches give new values."""
    if i.opcode in _UPDATES:
        return [values[i.operands[n]][0] for n, _ in updated_operands(i)]
    if i.opcode is Op.WHILE:
        return [v for v, k in zip(values[i.operands[0]], _carried(i.attributes["body"])) if k]
    if i.opcode is Op.CONDITIONAL:
        return {
            v
            for branch, operand in zip(branches(i), i.operands[1:])
            for v, k in zip(values[operand], _changed(branch))
            if k
        }
    return ()


def _carried(body: Computation) -> Sequence[bool]:
    """Whether a loop gives each leaf of its state a new value; an inner loop counts as giving one."""
    values = _forwarded(body)
    return [v != k for k, v in enumerate(values[body.root])]


def _changed(branch: Computation) -> Sequence[bool]:
    """Whether a branch updates each leaf of its parameter, or hands it to a loop or a conditional."""
    values = _forwarded(branch)
    found: set[int] = set()
    for i in branch.instructions:
        if i.opcode in _CONTROL:
            found.update(v for o in i.operands for v in values[o])
        elif i.opcode in _UPDATES:
            found.update(values[i.operands[n]][0] for n, _ in updated_operands(i))
    return [k in found for k in range(leaf_count(branch.parameters[0].shape))]


def _forwarded(computation: Computation) -> dict[Instruction, Leaves]:
    """For each leaf of each instruction, the number of the parameter's leaf that it is; NO_BUFFER for anything else."""
    found: dict[Instruction, Leaves] = {}
    for i in computation.instructions:
        if moves_no_bytes(i):
            found[i] = forward(i, [found[o] for o in i.operands])
        elif i.opcode is Op.PARAMETER:
            found[i] = tuple(range(leaf_count(i.shape)))
        else:
            found[i] = (NO_BUFFER,) * leaf_count(i.shape)
    return found


class _Order:
    """What each op of a computation comes before: its users, ops that overwrite what it reads, and the next effect."""

    def __init__(self, computation: Computation, number: Mapping[Instruction, int], acting: Collection[str]):
        self.instructions = computation.instructions
        self.after: list[list[int]] = [[number[u] for u in computation.users[i]] for i in computation.instructions]
        for n, i in enumerate(self.instructions):
            for name in i.attributes.get(CONTROL_PREDECESSORS, ()):
                if name in computation.by_name:
                    self.after[number[computation.by_name[name]]].append(n)
        acts = [i for i in self.instructions if has_side_effect(i) or any(c.name in acting for c in i.called())]
        self.effects = list(pairwise(acts))
        for first, second in self.effects:
            self.after[number[first]].append(number[second])

    def respected(self, pairs: Sequence[tuple[int, set[int]]]) -> Readers:
        """(op that overwrites a value, its other readers) pairs that one order respects, most of them at least."""
        found: dict[Instruction, frozenset[Instruction]] = {}

        def respect(n: int, readers: set[int]) -> None:
            for r in readers:
                self.after[r].append(n)
            writer = self.instructions[n]
            found[writer] = found.get(writer, frozenset()) | {self.instructions[r] for r in readers}

        # What the present order respects can be respected together. The rest is tried one by one.
        sorted_already = all(m > n for n, after in enumerate(self.after) for m in after)
        present, rest = [], []
        for n, readers in pairs:
            (present if sorted_already and max(readers) < n else rest).append((n, readers))
        possible = [(n, readers) for n, readers in rest if not self._reaches(n, readers)]
        for n, readers in present:
            respect(n, readers)
        for n, readers in possible:
            if not self._reaches(n, readers):
                respect(n, readers)
        for first, second in self.effects if found else ():
            found[second] = found.get(second, frozenset()) | {first}
        return found

    def _reaches(self, start: int, ends: set[int]) -> bool:
        """Whether one of the ops `ends` comes after the op `start` in any case."""
        seen, stack = {start}, [start]
        while stack:
            for m in self.after[stack.pop()]:
                if m in ends:
                    return True
                if m not in seen:
                    seen.add(m)
                    stack.append(m)
        return False
