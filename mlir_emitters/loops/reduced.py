"""What the node of a reduction says: its operands, its initial values, the dimensions that it reduces."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.opcodes import Op
from ..core.builder import Index
from ..core.graph import Buffer, Node
from .elemental import Indices


def reduced_dimensions(node: Node) -> tuple[int, ...]:
    return tuple(node.attributes["dimensions"])


def operands_of(node: Node) -> Sequence[Buffer]:
    return node.inputs[: len(node.inputs) // 2]


def initials_of(node: Node) -> Sequence[Buffer]:
    return node.inputs[len(node.inputs) // 2 :]


def only_op(node: Node) -> Op | None:
    """The op on both parameters that is all of a computation of one result; None for another."""
    body = node.bodies[0]
    root = body.outputs[0].writer if len(body.outputs) == 1 else None
    return root.opcode if root is not None and {*root.inputs} == {*body.parameters} else None


def full_index(node: Node, kept: Indices, reduced: dict[int, Index]) -> Indices:
    """The index of an element of the operands."""
    remaining = iter(kept)
    rank = len(node.inputs[0].dims)
    return tuple(reduced[d] if d in reduced else next(remaining) for d in range(rank))
