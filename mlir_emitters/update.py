"""dynamic-update-slice at a kernel's root: copy the operand unless it is in place already, then write the update."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import Index
from .elemental import Elemental, Indices, Linear
from .graph import Buffer, Node
from .loops import with_loops
from .ranges import Steps
from .shape import clamped_starts


def emit_update(e: Elemental, node: Node, targets: Sequence[tuple[Buffer, Buffer]], steps: Steps | None = None) -> bool:
    """Copy the operand unless it is updated in place, then write the update over it."""
    if len(targets) != 1:  # the same array twice: the plain nest writes both
        return False
    b, result = e.b, targets[0][1]
    target, update = node.inputs[:2]
    copy_unless_there(e, target, result)
    starts = e.run(clamped_starts(e, node.inputs[2:], target.dims, update.dims))

    def write(index: tuple[Index, ...]) -> None:
        place = tuple(b.add(i, s) for i, s in zip(index, starts, strict=True))
        e.store(result, place, e.value(update, index, raw=True))

    with_loops(b, update, write)
    return True


def copy_unless_there(e: Elemental, source: Buffer, result: Buffer, steps: Steps | None = None) -> None:
    """Copy an array, or the part of the steps, to a result that will be updated, unless the result is that array."""
    if source.writer is None and source.argument == result.argument:
        return

    def write(index: Indices) -> None:
        e.store(result, index, e.value(source, index, raw=True))

    if steps is None and source.writer is None and (source.dims, source.strides) == (result.dims, result.strides):
        # One loop: of the nest over small rows of complex numbers, LLVM would make gathers.
        with e.b.loop(0, result.shape.size) as loop:
            write(Linear((loop.index,)))
    else:
        with_loops(e.b, result, write, steps)
