"""The native inner loop of the interpreted executor: one call follows a table of records, including control flow.

A table is a sequence of 64-bit words. Its records:

    function, number of arguments, arguments      call a kernel
    0, JUMP, record                               continue at the record
    cell, UNLESS, record                          continue at the record if the pred in the cell is false
    cell, SWITCH, n, n records                    continue at the record with the index in the cell (s32), or at the
                                                  last one if the index is out of range
    cell, AGAIN, record, rounds left, number      the end of a loop body: if the pred in the cell is true, continue at
                                                  the record, but return the number first if no rounds are left
    function, SPLIT, words, body, extent, chunk, bytes, arguments
                                                  let the pool's threads call a kernel for its chunks; words: length of
                                                  the record; body: what calls it; bytes: a thread's own scratch memory

A descriptor has three words: the record to continue at, the end of the table, and the address of a word that another
thread sets to another value than 0 to stop the run before the next record.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum

from ..codegen.cache import ObjectCache
from ..codegen.float_mode import float_mode
from ..codegen.load import LoadedCode, load
from ..codegen.pool import PARALLEL_FOR, pool
from ..codegen.runtime import runtime_object, runtime_target
from ..hlo.records import dataclass
from .events import PROFILE_IR
from .kinds import Split

ALWAYS = frozenset(range(17))
"""Numbers of arguments that every runner supports."""

COPY_ARITY = 3

STOPPED = -2


class Jump(IntEnum):
    """Kinds of control-flow records. The value takes the place of the number of arguments."""

    JUMP = 1 << 32
    UNLESS = JUMP + 1
    SWITCH = JUMP + 2
    AGAIN = JUMP + 3
    SPLIT = JUMP + 4


@dataclass(frozen=True, slots=True)
class Runner:
    """run(address of a descriptor) returns 0 at the end; the number of a loop that has used up its rounds (set new ones
    and call again); -1 for an unsupported number of arguments; STOPPED if it was stopped.

    Both round to nearest meanwhile, whatever the caller's mode of floats is; on architectures of float_mode.py.
    run_flushing: subnormal operands and results count as zero, as in XLA:CPU.
    copy: the address of a kernel with the arguments (destination, source, bytes). profile: that of one with the
    arguments (buffer of events, mark), which notes the time (events.py). bodies: number of arguments → the address of
    the body of records with split kernels.
    """

    run: Callable[[int], int]
    run_flushing: Callable[[int], int]
    copy: int
    profile: int
    bodies: Mapping[int, int]
    code: LoadedCode


def runner(arities: Iterable[int], cache: ObjectCache | None = None, split: Iterable[int] = ()) -> Runner:
    """A runner that supports at least these numbers of arguments, and these of split kernels. Programs share it."""
    key = frozenset(arities) - ALWAYS, frozenset(split)
    with _LOCK:
        if key not in _RUNNERS:
            _RUNNERS[key] = _make_runner(ALWAYS | key[0], key[1], cache)
        return _RUNNERS[key]


_LOCK = threading.Lock()
_RUNNERS: dict[tuple[frozenset[int], frozenset[int]], Runner] = {}


def _make_runner(arities: frozenset[int], split: frozenset[int], cache: ObjectCache | None) -> Runner:
    text = runner_ir(arities, split) + PROFILE_IR + _entries(runtime_target().architecture)
    code = load(
        [runtime_object(text, lambda: text, cache)], {PARALLEL_FOR: pool(cache).parallel_for} if split else None
    )
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    run, flushing = (entry(code.address(name)) for name in (_TABLE, _FLUSHING_TABLE))
    bodies = {n: code.address(_body_name(n)) for n in split}
    return Runner(run, flushing, code.address("testbed_copy"), code.address("testbed_profile"), bodies, code)


def runner_ir(arities: Iterable[int], split: Collection[int] = ()) -> str:
    """LLVM IR of a runner. An unsupported number of arguments makes it return -1."""
    ordered = sorted(arities)
    jumps = [jump for jump in Jump if split or jump is not Jump.SPLIT]
    labels = {n: f"call{n}" for n in ordered} | {jump.value: jump.name.lower() for jump in jumps}
    cases = "\n".join(f"    i64 {n}, label %{label}" for n, label in labels.items())
    calls = "\n".join([*(_call_block(n) for n in ordered), *([_SPLIT] if split else [])])
    steps = ", ".join([*(f"[ %next{n}, %call{n} ]" for n in ordered), *_STEPS, *([_SPLIT_STEP] if split else [])])
    text = _TEMPLATE.replace("CASES", cases).replace("CALLS", calls).replace("STEPS", steps)
    return "\n".join([text, *([_DECLARED] if split else []), *map(_body, sorted(split))])


SPLIT_WORDS = 7
"""Words of the record of a split kernel in front of its arguments."""


def split_record(function: int, split: Split, count: int, body: int) -> list[int]:
    """The first words of the record of a split kernel with `count` arguments."""
    return [function, Jump.SPLIT, SPLIT_WORDS + count, body, split.extent, split.chunk, split.private]


def _body_name(count: int) -> str:
    return f"testbed_split{count}"


def _body(count: int) -> str:
    """The function that the pool calls for a chunk. A thread's own scratch memory takes the last argument's place."""
    lines = [f"define void @{_body_name(count)}(ptr %record, i64 %begin, i64 %end, ptr %own) {{"]
    lines.append("  %function = load ptr, ptr %record")
    for i in range(count):
        lines.append(f"  %p{i} = getelementptr i64, ptr %record, i64 {SPLIT_WORDS + i}")
        lines.append(f"  %a{i} = load ptr, ptr %p{i}")
    names = [f"%a{i}" for i in range(count)]
    if names:
        lines += ["  %shared = icmp eq ptr %own, null", f"  %last = select i1 %shared, ptr {names[-1]}, ptr %own"]
        names[-1] = "%last"
    arguments = ", ".join([*(f"ptr {name}" for name in names), "i64 %begin, i64 %end"])
    return "\n".join([*lines, f"  call void %function({arguments})", "  ret void", "}", ""])


_DECLARED = "declare void @testbed_parallel_for(ptr, ptr, i64, i64, i64, ptr)\n"

_SPLIT = """
split:
  %split.words = load i64, ptr %w2
  %split.body = load ptr, ptr %w3
  %split.w4 = getelementptr i64, ptr %record, i64 4
  %split.extent = load i64, ptr %split.w4
  %split.w5 = getelementptr i64, ptr %record, i64 5
  %split.chunk = load i64, ptr %split.w5
  %split.w6 = getelementptr i64, ptr %record, i64 6
  %split.bytes = load i64, ptr %split.w6
  call void @testbed_parallel_for(ptr %split.body, ptr %record, i64 %split.extent, i64 %split.chunk,
    i64 %split.bytes, ptr %stop)
  %split.next = getelementptr i64, ptr %record, i64 %split.words
  br label %next
"""

_SPLIT_STEP = "[ %split.next, %split ]"


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


_STEPS = (
    "[ %jump.to, %jump ]",
    "[ %unless.next, %unless ]",
    "[ %switch.to, %switch ]",
    "[ %again.next, %again ]",
    "[ %again.to, %round ]",
)

_TEMPLATE = """
define void @testbed_copy(ptr noalias %to, ptr noalias %from, ptr %bytes) {
  %size = ptrtoint ptr %bytes to i64
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)

define internal i64 @testbed_run_records(ptr %descriptor) noinline {
entry:
  %first = load ptr, ptr %descriptor
  %d1 = getelementptr i64, ptr %descriptor, i64 1
  %end = load ptr, ptr %d1
  %d2 = getelementptr i64, ptr %descriptor, i64 2
  %stop = load ptr, ptr %d2
  br label %head

head:
  %record = phi ptr [ %first, %entry ], [ %step, %next ]
  %at_end = icmp eq ptr %record, %end
  br i1 %at_end, label %finished, label %going

going:
  %wanted = load atomic i64, ptr %stop monotonic, align 8
  %goes_on = icmp eq i64 %wanted, 0
  br i1 %goes_on, label %dispatch, label %stopped

dispatch:
  %function = load ptr, ptr %record ; or a cell
  %w1 = getelementptr i64, ptr %record, i64 1
  %kind = load i64, ptr %w1 ; a number of arguments or a Jump
  %w2 = getelementptr i64, ptr %record, i64 2
  %w3 = getelementptr i64, ptr %record, i64 3
  switch i64 %kind, label %unknown [
CASES
  ]

CALLS

jump:
  %jump.to = load ptr, ptr %w2
  br label %next

unless:
  %unless.pred = load i8, ptr %function
  %unless.false = icmp eq i8 %unless.pred, 0
  %unless.to = load ptr, ptr %w2
  %unless.next = select i1 %unless.false, ptr %unless.to, ptr %w3
  br label %next

switch:
  %index = load i32, ptr %function
  %wide = zext i32 %index to i64 ; a negative one becomes greater than any number of branches
  %branches = load i64, ptr %w2
  %last = sub i64 %branches, 1
  %chosen = call i64 @llvm.umin.i64(i64 %wide, i64 %last)
  %switch.at = getelementptr i64, ptr %w3, i64 %chosen
  %switch.to = load ptr, ptr %switch.at
  br label %next

again:
  %again.pred = load i8, ptr %function
  %again.false = icmp eq i8 %again.pred, 0
  %again.next = getelementptr i64, ptr %record, i64 5
  br i1 %again.false, label %next, label %round

round:
  %again.to = load ptr, ptr %w2
  %rounds = load i64, ptr %w3
  %left = sub i64 %rounds, 1
  store i64 %left, ptr %w3
  %used_up = icmp sle i64 %left, 0
  br i1 %used_up, label %pause, label %next

pause:
  store ptr %again.to, ptr %descriptor
  %w4 = getelementptr i64, ptr %record, i64 4
  %number = load i64, ptr %w4
  ret i64 %number

next:
  %step = phi ptr STEPS
  br label %head

finished:
  ret i64 0

unknown:
  ret i64 -1

stopped:
  ret i64 -2
}
"""

_ENTRY_X86 = """
define i64 @NAME(ptr %descriptor) {
  %saved = alloca i32
  %changed = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %saved)
  store i32 MODE, ptr %changed
  call void @llvm.x86.sse.ldmxcsr(ptr %changed)
  %rounds = call i64 @testbed_run_records(ptr %descriptor)
  call void @llvm.x86.sse.ldmxcsr(ptr %saved)
  ret i64 %rounds
}
"""

_ENTRY_AARCH64 = """
define i64 @NAME(ptr %descriptor) {
  %old = call i64 @llvm.aarch64.get.fpcr()
  call void @llvm.aarch64.set.fpcr(i64 MODE)
  %rounds = call i64 @testbed_run_records(ptr %descriptor)
  call void @llvm.aarch64.set.fpcr(i64 %old)
  ret i64 %rounds
}
"""

_PLAIN_ENTRY = """
define i64 @NAME(ptr %descriptor) {
  %rounds = call i64 @testbed_run_records(ptr %descriptor)
  ret i64 %rounds
}
"""

_ENTRIES = {
    "x86_64": (_ENTRY_X86, "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n"),
    "aarch64": (_ENTRY_AARCH64, "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n"),
}


def _entries(architecture: str) -> str:
    """The two functions around the loop: they set the mode of floats, and then the caller's again."""
    text, found = _ENTRIES.get(architecture, (_PLAIN_ENTRY, ""))
    for name, flushes in ((_TABLE, False), (_FLUSHING_TABLE, True)):
        found += text.replace("NAME", name).replace("MODE", str(float_mode(architecture, flushes)))
    return found


_TABLE, _FLUSHING_TABLE = "testbed_run_table", "testbed_run_table_flushing"
