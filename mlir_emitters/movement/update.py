"""dynamic-update-slice at a kernel's root: copy the operand unless it is in place already, then write the update."""

from __future__ import annotations

from ..core.builder import Index
from ..core.graph import Buffer
from ..loops.elemental import Elemental, Indices, Linear
from ..loops.form import Answer, Fits
from ..loops.loops import with_loops
from ..loops.ranges import Steps
from ..loops.view import Subject, View
from .shape import clamped_starts


def fits(view: View, subject: Subject) -> Answer:
    """Never in steps: the update lies anywhere."""
    return Fits(in_steps=False)


def emit(e: Elemental, subject: Subject, _: None, steps: Steps | None) -> None:
    """Copy the operand unless it is updated in place, then write the update over it."""
    b, result = e.b, subject.first
    target, update = subject.node.inputs[:2]
    copy_unless_there(e, target, result)
    starts = e.run(clamped_starts(e, subject.node.inputs[2:], target.dims, update.dims))

    def write(index: tuple[Index, ...]) -> None:
        place = tuple(b.add(i, s) for i, s in zip(index, starts, strict=True))
        e.store(result, place, e.value(update, index, raw=True))

    with_loops(b, update, write)


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
