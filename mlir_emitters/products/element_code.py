"""What of a kernel's code is in the elements that it reads."""

from __future__ import annotations

from collections.abc import Iterable

from ...hlo.opcodes import Op
from ..core.facts import Code, Facts
from ..core.graph import Node
from ..reductions.reduce_ways import way_of
from .dot import sum_way


def code_of(facts: Facts, nodes: Iterable[Node]) -> Code:
    """Of nodes whose elements are computed where they are read."""
    code = Code()
    for node in nodes:
        if node.opcode is Op.REDUCE:
            code |= way_of(facts, node).code
        elif node.opcode is Op.DOT and (way := sum_way(facts, node)) is not None:
            code |= way.code
    return code


def ways_of(facts: Facts, nodes: Iterable[Node]) -> tuple[tuple[str, str], ...]:
    """For reports, how elements of reductions and of dots are computed: opcode → each way, once."""
    found: dict[str, dict[str, None]] = {}
    for node in nodes:
        if node.opcode is Op.REDUCE:
            found.setdefault("reduce", {})[way_of(facts, node).kind.value] = None
        elif node.opcode is Op.DOT:
            way = sum_way(facts, node)
            found.setdefault("dot", {})["chain" if way is None else way.name] = None
    return tuple((opcode, ", ".join(ways)) for opcode, ways in found.items())
