"""The computation of a kernel as one graph: a fusion's body with inner fusions inlined, or an unnested op."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...planning.plan import KernelRequest


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """leaves: instruction whose value is in memory → the kernel argument that holds it."""

    root: Instruction
    leaves: Mapping[Instruction, int]

    def instructions(self) -> list[Instruction]:
        """All instructions to compute, operands before users."""
        order: list[Instruction] = []
        if self.root in self.leaves:
            return order
        done = set(self.leaves)
        stack = [(self.root, iter(self.root.operands))]
        done.add(self.root)
        while stack:
            instruction, operands = stack[-1]
            following = next((o for o in operands if o not in done), None)
            if following is None:
                order.append(instruction)
                stack.pop()
            else:
                done.add(following)
                stack.append((following, iter(following.operands)))
        return order


def graph_of(request: KernelRequest) -> Graph:
    body = request.body
    if body is None:
        leaves = dict(zip(request.instruction.operands, request.operands, strict=True))
        return Graph(request.instruction, leaves)
    parameters = [
        Instruction(Op.PARAMETER, p.name, o.shape, attributes=p.attributes)
        for p, o in zip(body.parameters, request.instruction.operands, strict=True)
    ]
    root = _inline(body, parameters)
    return Graph(root, dict(zip(parameters, request.operands, strict=True)))


def _inline(computation: Computation, arguments: list[Instruction]) -> Instruction:
    """The root of a computation on these arguments. Fusions and calls inside it are inlined."""
    new: dict[Instruction, Instruction] = {}
    for instruction in computation.instructions:
        operands = [new[o] for o in instruction.operands]
        if instruction.opcode is Op.PARAMETER:
            new[instruction] = arguments[instruction.parameter_number]
        elif instruction.opcode in (Op.FUSION, Op.CALL):
            new[instruction] = _inline(instruction.called()[0], operands)
        elif tuple(operands) == instruction.operands:
            new[instruction] = instruction
        else:
            new[instruction] = instruction.replace(operands=tuple(operands))
    return new[computation.root]


def walk(
    roots: Iterable[Instruction], leaves: Collection[Instruction], through: Collection[Op] | None = None
) -> Iterator[Instruction]:
    """The instructions on which the roots depend, including the roots, each once, without those in memory.

    through: opcodes whose operands are visited; None for all.
    """
    stack, seen = list(roots), set(leaves)
    while stack:
        instruction = stack.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        yield instruction
        if through is None or instruction.opcode in through:
            stack.extend(instruction.operands)
