"""Schedule: an order of instructions that keeps little memory alive. A module that comes with one keeps it."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence

from ..hlo.analysis.effects import effectful_computations, has_side_effect
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import CONTROL_PREDECESSORS, control_computations
from ..hlo.opcodes import Op
from ..passes.rewriting import rebuild
from .inplace import reuses, updated_operands
from .liveness import forward, leaf_count, moves_no_bytes
from .scratch import scratch_bytes

COPY_COST = 4096
"""Bytes more alive at once that are accepted to avoid one copy of a value that would be overwritten too early."""


def schedule(module: Module) -> Module:
    """Order every computation that the host program runs; marks the module `is_scheduled`."""
    if module.attributes.get("is_scheduled") is True:
        return module
    effectful = {c.name for c in effectful_computations(module)}
    bodies = {i.attributes["body"].name for i in module.instructions() if i.opcode is Op.WHILE}

    peaks: dict[str, int] = {}

    def order(computation: Computation) -> Computation:
        graph = OrderGraph(computation, effectful, computation.name in bodies, peaks)
        best, peaks[computation.name] = graph.best_order()
        return Computation(computation.name, tuple(best), computation.root, computation.attributes)

    result = rebuild(module, order, control_computations(module))
    return Module(result.name, result.computations, result.entry, {**module.attributes, "is_scheduled": True})


class OrderGraph:
    """One computation's dependences and buffers: the leaves of ops that write memory, and of parameters (0 bytes).

    peaks: the most bytes alive at once in computations that are ordered already, by name.
    """

    def __init__(
        self,
        computation: Computation,
        effectful: Collection[str] = (),
        is_body: bool = False,
        peaks: Mapping[str, int] | None = None,
    ):
        self.peaks = peaks or {}
        self.instructions = list(computation.instructions)
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
        """In a loop body, the next value of a leaf had better come after the last use of the present one."""
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
            needs = {self.number[o] for o in i.operands}
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

    def best_order(self) -> tuple[list[Instruction], int]:
        """The cheapest of several orders, and the most bytes alive at once under it."""
        costs = []
        for order in (self.list_order(), list(range(len(self.instructions))), self.post_order()):
            most = self.peak(order)
            costs.append((most + COPY_COST * self.broken(order), most, order))
        _, most, best = min(costs, key=lambda c: c[0])
        return [self.instructions[n] for n in best], most

    def _extras(self) -> None:
        """What an op needs only while it runs: scratch memory and what it calls; and what it may take over."""
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
        """How many values would be overwritten before their last use, so that they have to be copied."""
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

    def _users(self) -> tuple[list[int], list[int]]:
        """For each buffer: how many ops read it, and the sum of their numbers (so that the last one left is known)."""
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
        """The most bytes alive at once under an order, scratch memory and what loops and branches need included.

        A result that takes over an operand which dies needs no bytes of its own.
        """
        count, _ = self._users()
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
        """Bytes of the results of an op that lie where operands lay that nobody else reads any more.

        count: how many readers of each buffer are left, this op included.
        """
        used: set[int] = set()
        for old, new in self.taken[n]:
            if old not in used and new not in used and count[old] == 1 and self.sizes[old] == self.sizes[new]:
                used.update((old, new))
        return sum(self.sizes[b] for b in used) // 2

    def post_order(self) -> list[int]:
        """Depth first from the root, operands that need most memory first (after Sethi and Ullman); then the rest."""
        by_need = self._by_need()
        done: set[int] = set()
        order: list[int] = []
        first = [n for n, i in enumerate(self.instructions) if i.opcode is Op.PARAMETER]
        for start in [*first, self.root, *range(len(self.instructions))]:
            stack = [(start, False)]
            while stack:
                n, ready = stack.pop()
                if n in done:
                    continue
                if ready:
                    done.add(n)
                    order.append(n)
                    continue
                stack.append((n, True))
                stack.extend((m, False) for m in reversed(by_need[n]) if m not in done)
        return order

    def _by_need(self) -> list[list[int]]:
        """For each op, what comes before it, in the order that keeps least alive were the graph a tree."""
        need: list[int] = []
        made: list[int] = []
        ordered: list[list[int]] = []
        for n, before in enumerate(self.before):
            operands = sorted(before, key=lambda m: (made[m] - need[m], m))
            live = most = 0
            for m in operands:
                most = max(most, live + need[m])
                live += made[m]
            own = sum(self.sizes[b] for b in self.defined[n])
            made.append(own if self.defined[n] else live)
            need.append(max(most, live + own))
            ordered.append(operands)
        return ordered

    def list_order(self) -> list[int]:
        """Repeatedly run the ready op that frees the most; ops that overwrite a value wait for its other readers."""
        count, total = self._users()
        waiting = [len(b) for b in self.before]
        scheduled = [False] * len(self.instructions)
        heap: list[tuple[int, int, int]] = []
        writers: Mapping[int, list[int]] = self._writers()

        def key(n: int) -> tuple[int, int, int]:
            if not self.defined[n] and not self.reads[n]:
                return -1, 0, n
            others = sum(count[old] - (old in self.reads[n]) for old in self.overwrites[n])
            freed = sum(self.sizes[b] for b in self.reads[n] if count[b] == 1)
            made = sum(self.sizes[b] for b in self.defined[n])
            return int(others > 0), made - freed, n

        for n, w in enumerate(waiting):
            if not w:
                heapq.heappush(heap, key(n))
        order: list[int] = []
        while heap:
            entry = heapq.heappop(heap)
            n = entry[2]
            if scheduled[n]:
                continue
            fresh = key(n)
            if fresh > entry:
                heapq.heappush(heap, fresh)
                continue
            scheduled[n] = True
            order.append(n)
            improved: set[int] = set()
            for b in self.reads[n]:
                count[b] -= 1
                total[b] -= n
                if count[b] == 1:
                    improved.add(total[b])
                improved.update(writers.get(b, ()))
            for m in self.after[n]:
                waiting[m] -= 1
                if not waiting[m]:
                    heapq.heappush(heap, key(m))
            for m in improved:
                if 0 <= m < len(waiting) and not waiting[m] and not scheduled[m]:
                    heapq.heappush(heap, key(m))
        return order

    def _writers(self) -> dict[int, list[int]]:
        table: dict[int, list[int]] = {}
        for n, overwritten in enumerate(self.overwrites):
            for b in overwritten:
                table.setdefault(b, []).append(n)
        return table
