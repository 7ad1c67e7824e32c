"""The instructions of a kernel as one graph, its fusions and calls inlined; what is in memory; what it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...hlo.analysis.sorted_parts import part_of_sort
from ...hlo.analysis.windows import running
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, ShapeIndex
from ...planning.plan import KernelRequest
from .elemental import Memory


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """leaves: the instructions whose value is in memory."""

    root: Instruction
    leaves: Mapping[Instruction, Memory]

    def instructions(self) -> Iterator[Instruction]:
        """All that is to be computed, each once."""
        seen, stack = set(self.leaves), [self.root]
        while stack:
            i = stack.pop()
            if i not in seen:
                seen.add(i)
                yield i
                stack.extend(i.operands)


def argument(number: int) -> Memory:
    """The memory of a kernel's argument."""
    return Memory(f"arg{number}")


def graph_of(request: KernelRequest) -> Graph:
    given = request.instruction
    if request.body is None:
        held = {o: argument(n) for o, n in zip(given.operands, request.operands, strict=True)}
        return Graph(given, held)
    parameters = [
        Instruction(Op.PARAMETER, p.name, o.shape, attributes=p.attributes)
        for p, o in zip(request.body.parameters, given.operands, strict=True)
    ]
    leaves = {p: argument(n) for p, n in zip(parameters, request.operands, strict=True)}
    return Graph(_inlined(request.body, parameters), leaves)


def _inlined(body, arguments: list[Instruction]) -> Instruction:
    new: dict[Instruction, Instruction] = {}
    for i in body.instructions:
        operands = tuple(new[o] for o in i.operands)
        if i.opcode is Op.PARAMETER:
            new[i] = arguments[i.parameter_number]
        elif i.opcode in (Op.FUSION, Op.CALL):
            new[i] = _inlined(i.called()[0], list(operands))
        else:
            new[i] = i if operands == i.operands else i.replace(operands=operands)
    return new[body.root]


@dataclass(frozen=True, eq=False, slots=True)
class Leaf:
    """An array that a kernel writes. instruction: computes it, at `path` if its value is a tuple. start: of a part of
    a sorted row, the first element. in_place: it takes over the memory of an operand.
    """

    instruction: Instruction
    path: ShapeIndex
    shape: Shape
    memory: Memory
    in_place: bool
    start: int = 0


def is_whole(i: Instruction) -> bool:
    """Whether an instruction writes all its results with loops of its own, if it is the root."""
    return i.opcode in (Op.SCATTER, Op.SORT) or (i.opcode is Op.REDUCE_WINDOW and running(i) is not None)


def result_leaves(request: KernelRequest, graph: Graph) -> list[Leaf]:
    """What the kernel writes. The results of a sort or scatter, and slices of a sort, name that instruction."""
    found = []
    for (path, shape), number in zip(request.instruction.shape.leaves(), request.results, strict=True):
        i, rest = graph.root, path
        while rest and i.opcode is Op.TUPLE:
            i, rest = i.operands[rest[0]], rest[1:]
        if i.opcode is Op.GET_TUPLE_ELEMENT and is_whole(i.operands[0]):
            i, rest = i.operands[0], (i.attributes["index"],)
        part, start = part_of_sort(i), 0
        if part is not None and graph.leaves.keys().isdisjoint((part.sort, *i.operands)):
            i, start = part.sort, part.start
            rest = (part.number,) if i.shape.is_tuple else ()
        found.append(Leaf(i, rest, shape, argument(number), number in request.operands, start))
    return found
