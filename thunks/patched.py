"""A program as one native function, `i64 (ptr bases, ptr control)`: the compiled one, or one that interprets a table.

bases: the addresses of the allocations by index. The latter writes those that change into the table, then runs it. Its
words of control: another thread stops the run by the first one (unused here: the table has its own); the function
of the runner; the descriptor; the number of places in the table; per place its address, allocation and offset.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ..codegen.load import LoadedCode, load
from ..codegen.runtime import runtime_object
from ..hlo.later import np
from ..hlo.records import dataclass
from .events import EventBuffer
from .executor import Executor
from .host_program import HostFrame
from .host_steps import LEFT, POSITION
from .table import Run


@dataclass(frozen=True, eq=False, slots=True)
class NativeRun:
    """function: an address; control: its argument. keep: what it uses.

    loops: words of control with the iterations left until the function returns a positive status; before a run they are
    set, and the word `position` is 0. resume(status) then runs to the end. limits: as many iterations of each loop as a
    resumed run made at a time.

    stop: lets the run end before its next kernel; called with False, lets runs go on again.

    events: what profile thunks note, one run behind the other; None if there are none.
    """

    function: int
    control: np.ndarray
    keep: tuple[object, ...]
    stop: Callable[..., None]
    loops: range = range(0)
    position: int = 0
    resume: Callable[[int], None] | None = None
    events: EventBuffer | None = None
    limits: Sequence[int] = ()


def runs_natively(executor: Executor) -> bool:
    """Whether `native_run` takes the program: compiled, or without loops."""
    if executor.program is not None:
        return True
    root = executor.table.root
    return isinstance(root, Run) and not root.rounds


def native_run(executor: Executor, bases: np.ndarray) -> NativeRun:
    """The native function of a program, with control words of its own, which serve one run at a time.

    bases: the addresses of allocations; the caller changes the variable ones.
    """
    frame = executor.frame(bases)
    if isinstance(frame, HostFrame):
        return _compiled_run(frame, bases)
    table = executor.table
    assert isinstance(table.root, Run)
    places = [r for r in table.references if r.allocation in executor.variable]
    words = [0, executor.function, frame.address + 8 * table.root.descriptor, len(places)]
    for place in places:
        words += [frame.address + 8 * place.word, place.allocation, place.offset]
    code = _code()
    return NativeRun(
        code.address("testbed_run_patched"), np.array(words, np.uint64), (code, frame), frame.stop, events=frame.events
    )


def _compiled_run(frame: HostFrame, bases: np.ndarray) -> NativeRun:
    def resume(status: int) -> None:
        frame.rebind(bases)
        frame.go_on(status)

    loops = range(LEFT, LEFT + len(frame.rounds))
    return NativeRun(
        frame.program.address, frame.control, (frame,), frame.stop, loops, POSITION, resume, frame.events, frame.limits
    )


_LOCK = threading.Lock()
_loaded: LoadedCode | None = None


def _code() -> LoadedCode:
    global _loaded
    with _LOCK:
        if _loaded is None:
            _loaded = load([runtime_object(PATCHED_IR, lambda: PATCHED_IR)])
        return _loaded


PATCHED_IR = """
define i64 @testbed_run_patched(ptr noalias %bases, ptr noalias %control) {
entry:
  %c1 = getelementptr i64, ptr %control, i64 1
  %run = load ptr, ptr %c1
  %c2 = getelementptr i64, ptr %control, i64 2
  %descriptor = load ptr, ptr %c2
  %c3 = getelementptr i64, ptr %control, i64 3
  %count = load i64, ptr %c3
  %places = getelementptr i64, ptr %control, i64 4
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done

body:
  %first = mul i64 %i, 3
  %p0 = getelementptr i64, ptr %places, i64 %first
  %word = load ptr, ptr %p0
  %p1 = getelementptr i64, ptr %p0, i64 1
  %allocation = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %offset = load i64, ptr %p2
  %at = getelementptr i64, ptr %bases, i64 %allocation
  %base = load i64, ptr %at
  %address = add i64 %base, %offset
  store i64 %address, ptr %word
  %next = add i64 %i, 1
  br label %head

done:
  %status = call i64 %run(ptr %descriptor)
  ret i64 %status
}
"""
