"""The native inner loop of the interpreted executor: one call runs a table of kernel calls, once or while a pred holds.

A table is a run of 64-bit words, one record a call: function, number of arguments, arguments. A descriptor has four
words: first record, end, address of the pred that keeps it going (0: run once), and the most rounds to run.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..codegen.cache import ObjectCache
from ..codegen.load import LoadedCode, load
from ..codegen.optimize import compile_object
from ..codegen.options import EmitOptions

ALWAYS = frozenset(range(17))
"""Numbers of arguments that every runner knows."""

COPY_ARITY = 3


@dataclass(frozen=True, slots=True)
class Runner:
    """run(address of a descriptor) → rounds that ran. copy: a record function of (to, from, bytes).

    run_flushing: as run, with subnormal operands and results taken as zero meanwhile, as XLA:CPU does.
    """

    run: Callable[[int], int]
    run_flushing: Callable[[int], int]
    copy: int
    code: LoadedCode


def runner(arities: Iterable[int], cache: ObjectCache | None = None) -> Runner:
    """A runner that knows at least these numbers of arguments. Programs share runners."""
    extra = frozenset(arities) - ALWAYS
    with _LOCK:
        if extra not in _RUNNERS:
            _RUNNERS[extra] = _make_runner(ALWAYS | extra, cache)
        return _RUNNERS[extra]


_LOCK = threading.Lock()
_RUNNERS: dict[frozenset[int], Runner] = {}


def _make_runner(arities: frozenset[int], cache: ObjectCache | None) -> Runner:
    options = EmitOptions.host()
    text = runner_ir(arities) + FLUSHING.get(options.target.architecture, _NO_FLUSHING)
    code = load([compile_object(text, options, cache)])
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    run, flushing = (entry(code.address(name)) for name in ("testbed_run_table", "testbed_run_table_flushing"))
    return Runner(run, flushing, code.address("testbed_copy"), code)


def runner_ir(arities: Iterable[int]) -> str:
    """LLVM IR of a runner; an unknown number of arguments ends it with -1."""
    ordered = sorted(arities)
    cases = "\n".join(f"    i64 {n}, label %call{n}" for n in ordered)
    calls = "\n".join(_call_block(n) for n in ordered)
    steps = ", ".join(f"[ %next{n}, %call{n} ]" for n in ordered)
    return _TEMPLATE.replace("CASES", cases).replace("CALLS", calls).replace("STEPS", steps)


def _call_block(count: int) -> str:
    lines = [f"call{count}:"]
    for i in range(count):
        lines += [
            f"  %p{count}.{i} = getelementptr i64, ptr %record, i64 {i + 2}",
            f"  %a{count}.{i} = load ptr, ptr %p{count}.{i}",
        ]
    arguments = ", ".join(f"ptr %a{count}.{i}" for i in range(count))
    lines += [
        f"  call void %function({arguments})",
        f"  %next{count} = getelementptr i64, ptr %record, i64 {count + 2}",
        "  br label %next",
    ]
    return "\n".join(lines)


_TEMPLATE = """
define void @testbed_copy(ptr noalias %to, ptr noalias %from, ptr %bytes) {
  %size = ptrtoint ptr %bytes to i64
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @testbed_run_table(ptr %descriptor) {
entry:
  %begin = load ptr, ptr %descriptor
  %d1 = getelementptr i64, ptr %descriptor, i64 1
  %end = load ptr, ptr %d1
  %d2 = getelementptr i64, ptr %descriptor, i64 2
  %predicate = load ptr, ptr %d2
  %d3 = getelementptr i64, ptr %descriptor, i64 3
  %limit = load i64, ptr %d3
  %once = icmp eq ptr %predicate, null
  br label %round

round:
  %rounds = phi i64 [ 0, %entry ], [ %more, %again ]
  br label %head

head:
  %record = phi ptr [ %begin, %round ], [ %step, %next ]
  %at_end = icmp eq ptr %record, %end
  br i1 %at_end, label %finished, label %dispatch

dispatch:
  %function = load ptr, ptr %record
  %q = getelementptr i64, ptr %record, i64 1
  %count = load i64, ptr %q
  switch i64 %count, label %unknown [
CASES
  ]

CALLS

next:
  %step = phi ptr STEPS
  br label %head

finished:
  %more = add i64 %rounds, 1
  br i1 %once, label %exit, label %test

test:
  %pred = load i8, ptr %predicate
  %false = icmp eq i8 %pred, 0
  br i1 %false, label %exit, label %again

again:
  %left = icmp slt i64 %more, %limit
  br i1 %left, label %round, label %exit

exit:
  ret i64 %more

unknown:
  ret i64 -1
}
"""

_FLUSHING_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define i64 @testbed_run_table_flushing(ptr %descriptor) {
  %saved = alloca i32
  %changed = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %saved)
  %old = load i32, ptr %saved
  %new = or i32 %old, 32832 ; FTZ (bit 15) and DAZ (bit 6)
  store i32 %new, ptr %changed
  call void @llvm.x86.sse.ldmxcsr(ptr %changed)
  %rounds = call i64 @testbed_run_table(ptr %descriptor)
  call void @llvm.x86.sse.ldmxcsr(ptr %saved)
  ret i64 %rounds
}
"""

_FLUSHING_AARCH64 = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define i64 @testbed_run_table_flushing(ptr %descriptor) {
  %old = call i64 @llvm.aarch64.get.fpcr()
  %new = or i64 %old, 16777216 ; FZ (bit 24)
  call void @llvm.aarch64.set.fpcr(i64 %new)
  %rounds = call i64 @testbed_run_table(ptr %descriptor)
  call void @llvm.aarch64.set.fpcr(i64 %old)
  ret i64 %rounds
}
"""

_NO_FLUSHING = """
define i64 @testbed_run_table_flushing(ptr %descriptor) {
  %rounds = call i64 @testbed_run_table(ptr %descriptor)
  ret i64 %rounds
}
"""

FLUSHING = {"x86_64": _FLUSHING_X86, "aarch64": _FLUSHING_AARCH64}
"""How a machine takes subnormals as zero; the others keep them, which XLA's float rules allow."""
