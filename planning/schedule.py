"""Schedule: choose an order of instructions that keeps little memory alive. A scheduled module keeps its order."""

from __future__ import annotations

from ..hlo.analysis.effects import effectful_computations
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import control_computations
from ..hlo.opcodes import Op
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

    def order(computation: Computation) -> Computation:
        graph = OrderGraph(computation, effectful, computation.name in bodies, peaks)
        best, peaks[computation.name] = best_order(graph)
        return Computation(computation.name, tuple(best), computation.root, computation.attributes)

    result = rebuild(module, order, control_computations(module))
    return Module(result.name, result.computations, result.entry, {**module.attributes, "is_scheduled": True})


def best_order(graph: OrderGraph) -> tuple[list[Instruction], int]:
    """(the cheapest of several orders, maximum bytes alive at once under it)."""
    costs = []
    for order in (list_order(graph), list(range(len(graph.instructions))), post_order(graph)):
        most = graph.peak(order)
        costs.append((most + COPY_COST * graph.broken(order), most, order))
    _, most, best = min(costs, key=lambda c: c[0])
    return [graph.instructions[n] for n in best], most
