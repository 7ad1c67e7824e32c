"""concatenate at a kernel's root: one nest per operand, so that no element needs to select its operand."""

from __future__ import annotations

from collections.abc import Sequence

from ..planning.partition import Partition
from .builder import Index
from .elemental import Elemental
from .graph import Buffer, Node
from .loops import with_loops
from .ranges import Steps
from .regions import boxes_of


def takes_steps(node: Node, result: Buffer, partition: Partition) -> bool:
    """Whether a result can be computed in steps: of dimensions that all operands share, or in regions."""
    return node.attributes["dimensions"][0] not in partition.dimensions or bool(
        boxes_of([result], partition.dimensions)
    )


def emit_concatenate(
    e: Elemental, node: Node, targets: Sequence[tuple[Buffer, Buffer]], steps: Steps | None = None
) -> bool:
    """Emit one loop nest per operand. False where regions (regions.py) are better."""
    b = e.b
    if len(targets) != 1 or boxes_of([targets[0][1]], () if steps is None else steps.dimensions):
        return False
    result = targets[0][1]
    (d,) = node.attributes["dimensions"]
    start = 0
    for source in node.inputs:

        def write(index: tuple[Index, ...], source: Buffer = source, start: int = start) -> None:
            e.store(result, (*index[:d], b.add(index[d], start), *index[d + 1 :]), e.value(source, index, raw=True))

        if source.shape.size:
            with_loops(b, source, write, steps)
        start += source.dims[d]
    return True
