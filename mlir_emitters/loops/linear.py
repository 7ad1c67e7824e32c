"""Decides which kernels can run in memory order with one loop, without multi-dimensional indices and divisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.opcodes import Op
from ..core.access import AT_PLACE
from ..core.graph import Buffer, Node, visited, writers


def is_linear(group: Sequence[Buffer]) -> bool:
    """Whether offset i of every output depends only on offset i of full-size arrays and on scalars."""
    if not group[0].dims or group[0].shape.size == 1:
        return False
    nodes = visited(writers(group), lambda node: writers(_linear_sources(node) or ()))
    return all(_linear_sources(node) is not None for node in nodes)


def _linear_sources(node: Node) -> Sequence[Buffer] | None:
    """The full-size operands that a node reads at the result's own offset; None if it reads elsewhere."""
    by_element = node.opcode in AT_PLACE or node.opcode is Op.BITCAST_CONVERT
    rule = _of_elementwise if by_element else LINEAR.get(node.opcode)
    return rule(node) if rule is not None else None


def _of_elementwise(node: Node) -> Sequence[Buffer] | None:
    full = [x for x in node.inputs if x.dims]
    if len(full) < len(node.inputs) and node.opcode not in (Op.SELECT, Op.CLAMP):
        return None
    return full if all((x.dims, x.strides) == (node.output.dims, node.output.strides) for x in full) else None


def _of_broadcast(node: Node) -> Sequence[Buffer] | None:
    return () if node.inputs[0].shape.size == 1 else None


def _of_bitcast(node: Node) -> Sequence[Buffer] | None:
    return node.inputs if node.inputs[0].shape.size == node.output.shape.size else None


def _of_reshape(node: Node) -> Sequence[Buffer] | None:
    row_major = node.inputs[0].shape.is_row_major and node.output.shape.is_row_major
    return _of_bitcast(node) if row_major else None


def _of_iota(node: Node) -> Sequence[Buffer] | None:
    """An iota counts in memory order if only its own dimension is longer than 1."""
    long = [d for d, size in enumerate(node.output.dims) if size != 1]
    return () if long == [node.attributes["iota_dimension"]] else None


LINEAR: dict[Op, Callable[[Node], Sequence[Buffer] | None]] = {
    Op.BITCAST: _of_bitcast,
    Op.BROADCAST: _of_broadcast,
    Op.CONSTANT: lambda node: (),
    Op.IOTA: _of_iota,
    Op.RESHAPE: _of_reshape,
}
"""Ops, besides elementwise ones, that may read at the result's own offset. Other ops never do."""
