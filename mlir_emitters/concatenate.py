"""concatenate at a kernel's root: one nest per operand, so that no element needs to select its operand."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import Index
from .elemental import Elemental
from .graph import Buffer, Node
from .loops import with_loops


def emit_concatenate(e: Elemental, node: Node, targets: Sequence[tuple[Buffer, Buffer]]) -> bool:
    """Emit one loop nest per operand."""
    b = e.b
    if len(targets) != 1:
        return False
    result = targets[0][1]
    (d,) = node.attributes["dimensions"]
    start = 0
    for source in node.inputs:

        def write(index: tuple[Index, ...], source: Buffer = source, start: int = start) -> None:
            e.store(result, (*index[:d], b.add(index[d], start), *index[d + 1 :]), e.value(source, index, raw=True))

        if source.shape.size:
            with_loops(b, source, write)
        start += source.dims[d]
    return True
