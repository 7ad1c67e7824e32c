"""Orders of a computation's instructions that keep little memory alive: greedy by bytes freed, and depth first."""

from __future__ import annotations

import heapq

from ..hlo.opcodes import Op
from .order_graph import OrderGraph


def list_order(graph: OrderGraph) -> list[int]:
    """Repeatedly run the ready op that frees most bytes; ops that overwrite a value wait for its other readers."""
    ready = _ReadyList(graph)
    order: list[int] = []
    while (n := ready.pop()) is not None:
        order.append(n)
        ready.finish(n)
    return order


class _ReadyList:
    """Ops whose predecessors have run, in a heap by key, least first.

    If a key decreases, the op is pushed again, so the heap may contain an op several times. If a key increases, `pop`
    notices that when the op comes up, and pushes it again with its present key.
    """

    def __init__(self, graph: OrderGraph):
        self.graph = graph
        # per buffer: readers that have not run, and the sum of their numbers
        self.left, self.sums = graph.readers()
        self.waiting = [len(before) for before in graph.before]  # per op: predecessors that have not run
        self.done = [False] * len(graph.instructions)
        self.writers: dict[int, list[int]] = {}  # per buffer: the ops that overwrite it
        for n, overwritten in enumerate(graph.overwrites):
            for b in overwritten:
                self.writers.setdefault(b, []).append(n)
        self.heap = [self.key(n) for n, count in enumerate(self.waiting) if not count]
        heapq.heapify(self.heap)

    def key(self, n: int) -> tuple[int, int, int]:
        """Sort key: (whether it overwrites a value with other readers left, bytes made - bytes freed, number)."""
        defined, reads, sizes, left = self.graph.defined[n], self.graph.reads[n], self.graph.sizes, self.left
        if not defined and not reads:
            return -1, 0, n
        overwritten = self.graph.overwrites[n]
        waits = bool(overwritten) and any(left[old] > (old in reads) for old in overwritten)
        freed = sum(sizes[b] for b in reads if left[b] == 1)
        made = sum(sizes[b] for b in defined)
        return int(waits), made - freed, n

    def pop(self) -> int | None:
        """The ready op with the least key; None if all ops have run."""
        while self.heap:
            entry = heapq.heappop(self.heap)
            n = entry[2]
            if self.done[n]:
                continue
            present = self.key(n)
            if present <= entry:
                return n
            heapq.heappush(self.heap, present)
        return None

    def finish(self, n: int) -> None:
        """Record that an op has run; push the ops that became ready, and those whose key may have decreased."""
        self.done[n] = True
        cheaper = self._read(n)
        for m in self.graph.after[n]:
            self.waiting[m] -= 1
            if not self.waiting[m]:
                heapq.heappush(self.heap, self.key(m))
        for m in cheaper:
            if not self.waiting[m] and not self.done[m]:
                heapq.heappush(self.heap, self.key(m))

    def _read(self, n: int) -> set[int]:
        """Count an op's reads as done. Returns the ops whose key may decrease: they free or overwrite what it read."""
        cheaper: set[int] = set()
        for b in self.graph.reads[n]:
            self.left[b] -= 1
            self.sums[b] -= n
            if self.left[b] == 1:
                cheaper.add(self.sums[b])  # the number of the one remaining reader
            cheaper.update(self.writers.get(b, ()))
        return cheaper


def post_order(graph: OrderGraph) -> list[int]:
    """Depth first from the root, operands that need most memory first (after Sethi and Ullman); then the rest."""
    by_need = _by_need(graph)
    done: set[int] = set()
    order: list[int] = []
    first = [n for n, i in enumerate(graph.instructions) if i.opcode is Op.PARAMETER]
    for start in [*first, graph.root, *range(len(graph.instructions))]:
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


def _by_need(graph: OrderGraph) -> list[list[int]]:
    """The predecessors of each op, in the order that would need least memory if the graph were a tree."""
    need: list[int] = []
    made: list[int] = []
    ordered: list[list[int]] = []
    for n, before in enumerate(graph.before):
        operands = sorted(before, key=lambda m: (made[m] - need[m], m))
        live = most = 0
        for m in operands:
            most = max(most, live + need[m])
            live += made[m]
        own = sum(graph.sizes[b] for b in graph.defined[n])
        made.append(own if graph.defined[n] else live)
        need.append(max(most, live + own))
        ordered.append(operands)
    return ordered
