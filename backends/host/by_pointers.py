"""Runs of a program by addresses alone, for native callers that hold no lock of the interpreter (pjrt/)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...hlo.records import dataclass
from ...planning.allocation import BufferSlice
from ...thunks.patched import NativeRun, native_run
from .addresses import address_of
from .contexts import Context

if TYPE_CHECKING:
    from .executable import HostExecutable


@dataclass(frozen=True, eq=False, slots=True)
class RunByPointers:
    """The state of one run at a time: `function(bases, control)` returns 0. keep: what the addresses belong to.

    bases: the address of an array with the addresses of allocations, of which the caller writes those of inputs, then
    of results. Before a run it sets the words `loops` of the control to the iterations until a loop returns a positive
    status, and the word `position` to 0.
    """

    function: int
    bases: int
    control: int
    loops: range
    position: int
    keep: tuple[object, ...]


def runs_by_pointers(executable: HostExecutable) -> bool:
    """Whether a run needs nothing of Python: no handlers, checks, events, devices or dynamic sizes."""
    return executable.enters and not executable.has_handlers


def new_run(executable: HostExecutable) -> RunByPointers:
    """A further state, with temporary memory of its own. Raises OutOfMemoryError."""
    signature, image, executor = executable.parts
    context = Context(signature, image)
    bases = context.bases()
    run: NativeRun = native_run(executor, bases)
    return RunByPointers(
        run.function, address_of(bases), address_of(run.control), run.loops, run.position, (context, bases, run)
    )


def copies_of(executable: HostExecutable) -> tuple[tuple[int, BufferSlice], ...]:
    """(number of a result, where it is at the end of a run), of results that the caller must copy from there."""
    return executable.parts[0].copied
