"""Schedule: choose an order of instructions that keeps little memory alive. A scheduled module keeps its order."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..hlo.analysis.effects import effectful_computations
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import control_computations
from ..hlo.opcodes import Op
from ..passes.fusion.reading_order import order_of_reads
from ..passes.rewriting import rebuild
from .order_graph import OrderGraph
from .orders import list_order, post_order

COPY_COST = 4096
"""Extra bytes alive at once that are worth avoiding one copy of a value that would be overwritten too early."""


def schedule(module: Module) -> Module:
    """Order every computation that the host program runs, and mark the module `is_scheduled`."""
    if module.attributes.get("is_scheduled") is True:
        return module
    effectful = {c.name for c in effectful_computations(module)}
    bodies = {i.attributes["body"].name for i in module.instructions() if i.opcode is Op.WHILE}

    peaks: dict[str, int] = {}
    reads = order_of_reads(module)

    def order(computation: Computation) -> Computation:
        graph = OrderGraph(computation, effectful, computation.name in bodies, peaks, reads(computation))
        best, peaks[computation.name] = best_order(graph)
        return Computation(computation.name, tuple(best), computation.root, computation.attributes)

    result = rebuild(module, order, control_computations(module))
    return Module(result.name, result.computations, result.entry, {**module.attributes, "is_scheduled": True})


def best_order(graph: OrderGraph) -> tuple[list[Instruction], int]:
    """(the cheapest of several orders, maximum bytes alive at once under it)."""
    costs = []
    tried: list[list[int]] = []
    for order in (list_order(graph), list(range(len(graph.instructions))), post_order(graph)):
        if order in tried:  # as in a chain
            continue
        tried.append(order)
        most = graph.peak(order)
        costs.append((most + COPY_COST * graph.broken(order), most, order))
    _, most, best = min(costs, key=lambda c: c[0])
    wishes = [str(i.attributes.get("schedule", "")) if i.opcode is Op.CUSTOM_CALL else "" for i in graph.instructions]
    if any(wishes):
        early = {n for n, wish in enumerate(wishes) if wish == "SCHEDULE_EARLIEST"}
        late = {n for n, wish in enumerate(wishes) if wish == "SCHEDULE_LATEST"}
        best = pulled(best, early, graph.before, graph.after)
        best = pulled(best[::-1], late, graph.after, graph.before)[::-1]
        most = graph.peak(best)
    return [graph.instructions[n] for n in best], most


def pulled(
    order: Sequence[int], eager: Collection[int], before: Sequence[Collection[int]], after: Sequence[Collection[int]]
) -> list[int]:
    """An order in which eager ops follow the last of the ops before them at once, as XLA:GPU's schedule has them.

    Two custom calls that start something and wait for it then enclose as much work as they can. One without ops before
    it stays where it is.
    """
    result: list[int] = []
    done: set[int] = set()
    for n in order:
        following = [n]
        while following:
            m = following.pop()
            if m in done:
                continue
            result.append(m)
            done.add(m)
            following += [k for k in sorted(after[m], reverse=True) if k in eager and done.issuperset(before[k])]
    return result
