"""A program without loops as one native function, `i64 (ptr bases, ptr control)`, that interprets the program's table.

bases: the addresses of the allocations by index. The function writes those that change into the table, then runs it.
The words of control: another thread stops the run by the first one (unused here: the table has its own); the function
of the runner; the descriptor; the number of places in the table; per place its address, allocation and offset.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np

from ..codegen.load import LoadedCode, load
from ..codegen.optimize import compile_object
from ..codegen.options import EmitOptions
from .executor import Executor, Frame
from .table import Run


@dataclass(frozen=True, eq=False, slots=True)
class NativeRun:
    """function: an address; control: its argument. keep: what it uses."""

    function: int
    control: np.ndarray
    keep: tuple[object, ...]


def runs_natively(executor: Executor) -> bool:
    """Whether `native_run` takes the program. Loops return to Python."""
    if executor.program is not None:
        return not executor.program.module.loops
    root = executor.table.root
    return isinstance(root, Run) and not root.rounds


def native_run(executor: Executor, bases: np.ndarray) -> NativeRun:
    """The native function of a program, with control words of its own, which serve one run at a time.

    bases: the addresses of allocations that do not change.
    """
    if executor.program is not None:
        own = executor.program.frame(bases, executor.variable)
        return NativeRun(executor.program.address, own.control, (executor.program, own))
    frame, table = executor.frame(bases), executor.table
    assert isinstance(frame, Frame) and isinstance(table.root, Run)
    places = [r for r in table.references if r.allocation in executor.variable]
    words = [0, executor.function, frame.address + 8 * table.root.descriptor, len(places)]
    for place in places:
        words += [frame.address + 8 * place.word, place.allocation, place.offset]
    code = _code()
    return NativeRun(code.address("testbed_run_patched"), np.array(words, np.uint64), (code, frame))


_LOCK = threading.Lock()
_loaded: LoadedCode | None = None


def _code() -> LoadedCode:
    global _loaded
    with _LOCK:
        if _loaded is None:
            _loaded = load([compile_object(PATCHED_IR, replace(EmitOptions.host(), ranges=False))])
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
