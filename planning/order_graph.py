"""The dependences and buffers of a computation as numbers, and the cost of an order of its instructions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..hlo.analysis.effects import has_side_effect
from ..hlo.analysis.leaves import forward, leaf_count, moves_no_bytes
from ..hlo.analysis.overwrites import NO_READERS, Readers
from ..hlo.analysis.updates import updated_operands
from ..hlo.ir import Computation, Instruction
from ..hlo.opclasses import CONTROL_PREDECESSORS
from ..hlo.opcodes import Op
from ..passes.rewriting import topological_order
from .inplace import reuses
from .scratch import scratch_bytes


class OrderGraph:
    """One computation's dependences and buffers: the leaves of ops that write memory, and of parameters (0 bytes).

    peaks: maximum bytes alive at once in computations that are ordered already, by name. readers: the ops that come
    before what overwrites their operand.
    """

    def __init__(
        self,
        computation: Computation,
        effectful: Collection[str] = (),
        is_body: bool = False,
        peaks: Mapping[str, int] | None = None,
        readers: Readers = NO_READERS,
    ):
        self.peaks = peaks or {}
        self.readers_before = readers
        self.instructions = _in_order(computation, readers)
        self.number = {i: n for n, i in enumerate(self.instructions)}
        self.root = self.number[computation.root]
        self.sizes: list[int] = []
        self.defined: list[tuple[int, ...]] = []
        self.reads: list[frozenset[int]] = []
        self.leaves: list[tuple[int, ...]] = []
        self.overwrites: list[tuple[int, ...]] = [()] * len(self.instructions)
        self._buffers()
        self.live_out = frozenset(self.leaves[self.root])
        self._edges(effectful)
        self._extras()
        if is_body:
            self._carried(computation)

    def _buffers(self) -> None:
        empty: frozenset[int] = frozenset()
        for n, i in enumerate(self.instructions):
            if moves_no_bytes(i):
                self.leaves.append(forward(i, [self.leaves[self.number[o]] for o in i.operands]))
                self.defined.append(())
                self.reads.append(empty)
                continue
            free = i.opcode in (Op.PARAMETER, Op.CONSTANT)
            start = len(self.sizes)
            self.sizes += [0 if free else shape.bytes for _, shape in i.shape.leaves()]
            self.leaves.append(tuple(range(start, start + leaf_count(i.shape))))
            self.defined.append(self.leaves[-1])
            self.reads.append(frozenset(b for o in i.operands for b in self.leaves[self.number[o]] if b >= 0))
            updated = updated_operands(i)
            if updated:
                self.overwrites[n] = tuple(self.leaves[self.number[i.operands[k]]][0] for k, _ in updated)

    def _carried(self, computation: Computation) -> None:
        """In a loop body, prefer an order that defines a leaf's next value after the last use of the present one."""
        parameter = self.leaves[self.number[computation.parameters[0]]]
        makers = {b: n for n, buffers in enumerate(self.defined) for b in buffers}
        for old, new in zip(parameter, self.leaves[self.root]):
            maker = makers.get(new)
            if maker is not None and new != old and (not self.overwrites[maker] or len(self.defined[maker]) > 1):
                self.overwrites[maker] += (old,)

    def _edges(self, effectful: Collection[str]) -> None:
        names = {i.name: n for n, i in enumerate(self.instructions)}
        self.before: list[set[int]] = []
        last_effect = -1
        for n, i in enumerate(self.instructions):
            needs = {self.number[o] for o in (*i.operands, *self.readers_before.get(i, ()))}
            needs.update(names[p] for p in i.attributes.get(CONTROL_PREDECESSORS, ()) if p in names)
            if has_side_effect(i) or any(c.name in effectful for c in i.called()):
                if last_effect >= 0:
                    needs.add(last_effect)
                last_effect = n
            self.before.append(needs)
        self.after: list[list[int]] = [[] for _ in self.instructions]
        for n, needs in enumerate(self.before):
            for m in needs:
                self.after[m].append(n)

    def _extras(self) -> None:
        """Per op: the bytes it needs only while it runs (scratch, called computations), and its in-place results."""
        self.scratch = [
            scratch_bytes(i) + max((self.peaks.get(c.name, 0) for c in i.called()), default=0) if self.defined[n] else 0
            for n, i in enumerate(self.instructions)
        ]
        self.taken: list[list[tuple[int, int]]] = []
        for n, i in enumerate(self.instructions):
            pairs: list[tuple[int, int]] = []
            if self.defined[n] and any(self.sizes[b] for b in self.reads[n]):
                pairs = [(self.leaves[self.number[i.operands[k]]][0], self.defined[n][leaf]) for k, leaf in reuses(i)]
            self.taken.append(pairs)

    def broken(self, order: list[int]) -> int:
        """The number of values that this order overwrites before their last use, so that they must be copied."""
        if not any(self.overwrites):
            return 0
        place = [0] * len(order)
        for at, n in enumerate(order):
            place[n] = at
        last = [-1] * len(self.sizes)
        for n, reads in enumerate(self.reads):
            for b in reads:
                last[b] = max(last[b], place[n])
        return sum(last[b] > place[n] for n, olds in enumerate(self.overwrites) for b in olds)

    def readers(self) -> tuple[list[int], list[int]]:
        """Per buffer: the number of ops that read it, and the sum of their numbers.

        Once one reader is left, the sum is its number.
        """
        count, total = [0] * len(self.sizes), [0] * len(self.sizes)
        for n, reads in enumerate(self.reads):
            for b in reads:
                count[b] += 1
                total[b] += n
        for b in self.live_out:
            if b >= 0:
                count[b] += 1  # the root never finishes reading
        return count, total

    def peak(self, order: list[int]) -> int:
        """Maximum bytes alive at once under an order, including scratch memory and the needs of loops and branches.

        A result that takes over a dying operand needs no bytes of its own.
        """
        count, _ = self.readers()
        live = most = 0
        for n in order:
            new, running = sum(self.sizes[b] for b in self.defined[n]), self.scratch[n]
            if self.taken[n]:
                new -= self.taken_over(n, count)
            most = max(most, live + new + running)
            dead = 0
            for b in self.reads[n]:
                count[b] -= 1
                if not count[b]:
                    dead += self.sizes[b]
            live += sum(self.sizes[b] for b in self.defined[n] if count[b]) - dead
        return most

    def taken_over(self, n: int, count: Sequence[int]) -> int:
        """Bytes of an op's results that take over the buffers of operands without other readers left.

        count: number of readers left of each buffer, this op included.
        """
        used: set[int] = set()
        for old, new in self.taken[n]:
            if old not in used and new not in used and count[old] == 1 and self.sizes[old] == self.sizes[new]:
                used.update((old, new))
        return sum(self.sizes[b] for b in used) // 2


def _in_order(computation: Computation, readers: Readers) -> list[Instruction]:
    """The instructions with each one behind its operands, its control predecessors, and the other readers of what it
    overwrites. Passes keep the first only: what an op was replaced by has its predecessors, also constants that stand
    before these.
    """
    instructions = list(computation.instructions)
    if not readers and not any(i.attributes.get(CONTROL_PREDECESSORS) for i in instructions):
        return instructions
    names = {i.name: n for n, i in enumerate(instructions)}
    number = {i: n for n, i in enumerate(instructions)}
    needs = {
        n: {number[o] for o in (*i.operands, *readers.get(i, ()))}
        | {names[p] for p in i.attributes.get(CONTROL_PREDECESSORS, ()) if p in names}
        for n, i in enumerate(instructions)
    }
    return [instructions[n] for n in topological_order(needs)]
