"""LLVM IR of the thread pool: threads claim chunks of one job at a time; nobody waits for a thread that sleeps.

The state is one word: the job's generation (bits 32 to 63), whether the job is open (bit 16), and the number of workers
that are at it (bits 0 to 15). A worker enters by a compare-and-swap of the whole word, so it never enters an old job.
The caller closes the job when all chunks are claimed, and waits for the workers inside it only. A job lives on its
caller's stack. Workers sleep on a futex at the generation.

Two threads share a region of neighbouring chunks: one claims them from the front, the other from the end, so that each
goes on where it was. Where both write to neighbours at the same time, what processors fetch ahead is the other's: a
product took 6% longer. Who finds a region empty goes on to the next one.
"""

from __future__ import annotations

from .options import Target

FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""Architecture → Linux's number of the system call. Elsewhere every job runs on its caller's thread."""

SPINS = 600
"""Looks for a new job before a worker sleeps: some 20 µs, so that it is awake for the next kernel of a program."""

MOST_REGIONS = 32
"""Of a job: for 64 threads. More of them share regions."""

PATIENCE = 2000
"""Looks at the workers inside a job before its caller offers its processor to others."""


def pool_ir(target: Target) -> str:
    """The pool's module: `testbed_parallel_for` (pool.py describes it), `testbed_pool_threads` and `_reset`."""
    futex = FUTEX.get(target.architecture)
    text = _TEMPLATE.replace("SPINS", str(SPINS)).replace("PATIENCE", str(PATIENCE))
    text = text.replace("MOST_REGIONS", str(MOST_REGIONS))
    text = text.replace("FUTEX", str(futex or 0)).replace("MOST_THREADS", "65535" if futex else "1")
    return text + _MODES.get(target.architecture, _NO_MODES)


_TEMPLATE = """
@state = internal global i64 0, align 128
@busy = internal global i32 0, align 128
@sleepers = internal global i32 0, align 128
@job = internal global ptr null, align 128
@threads = internal global i64 1, align 128
@started = internal global i64 0 ; workers that exist; changed by whoever is busy with a job
@never = internal constant i64 0
@signals = internal constant [16 x i64] [ i64 -1257, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1,
  i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1 ] ; all but SIGILL, ABRT, BUS, FPE, SEGV

; a region: chunks claimed from its front (bits 0 to 31) and from its end, on a line of its own
%region = type { i64, [15 x i64] }
; body, context, extent, chunk, bytes of scratch memory, stop, mode, number of chunks, of regions
%job = type { [MOST_REGIONS x %region], ptr, ptr, i64, i64, i64, ptr, i64, i64, i64 }

declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i64 @llvm.umin.i64(i64, i64)

define void @testbed_pool_threads(i64 %count) {
  %most = call i64 @llvm.umin.i64(i64 %count, i64 MOST_THREADS)
  store atomic i64 %most, ptr @threads monotonic, align 8
  ret void
}

define void @testbed_pool_reset() { ; in a child after fork, where no worker exists
  store atomic i64 0, ptr @state seq_cst, align 8
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store i64 0, ptr @started
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

define void @testbed_parallel_for(ptr %body, ptr %context, i64 %extent, i64 %chunk, i64 %bytes, ptr %stop) {
  %job = alloca %job, align 128
  %no_stop = icmp eq ptr %stop, null
  %stops = select i1 %no_stop, ptr @never, ptr %stop
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %many = icmp ugt i64 %threads, 1
  %rounded = add i64 %extent, %chunk
  %before = sub i64 %rounded, 1
  %count = udiv i64 %before, %chunk
  %several = icmp ugt i64 %count, 1
  %countable = icmp ult i64 %count, 2147483648
  %chunks = and i1 %several, %countable
  %worth = and i1 %many, %chunks
  br i1 %worth, label %claim, label %alone

claim: ; one job at a time: a second caller, or a kernel inside a job, works alone
  %claimed = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %free = extractvalue { i32, i1 } %claimed, 1
  br i1 %free, label %describe, label %alone

alone:
  %first = phi i64 [ 0, %0 ], [ 0, %claim ], [ %end, %run ]
  %wanted_stop = load atomic i64, ptr %stops monotonic, align 8
  %stopped = icmp ne i64 %wanted_stop, 0
  %left = icmp ult i64 %first, %extent
  %no = xor i1 %left, true
  %over = or i1 %stopped, %no
  br i1 %over, label %over_now, label %run

run:
  %next = add i64 %first, %chunk
  %end = call i64 @llvm.umin.i64(i64 %next, i64 %extent)
  call void %body(ptr %context, i64 %first, i64 %end, ptr null)
  br label %alone

over_now:
  ret void

describe:
  %j = getelementptr %job, ptr %job, i32 0, i32 1
  store ptr %body, ptr %j
  %j1 = getelementptr i64, ptr %j, i64 1
  store ptr %context, ptr %j1
  %j2 = getelementptr i64, ptr %j, i64 2
  store i64 %extent, ptr %j2
  %j3 = getelementptr i64, ptr %j, i64 3
  store i64 %chunk, ptr %j3
  %j4 = getelementptr i64, ptr %j, i64 4
  store i64 %bytes, ptr %j4
  %j5 = getelementptr i64, ptr %j, i64 5
  store ptr %stops, ptr %j5
  %j6 = getelementptr i64, ptr %j, i64 6
  %mode = call i64 @get_mode()
  store i64 %mode, ptr %j6
  %j7 = getelementptr i64, ptr %j, i64 7
  store i64 %count, ptr %j7
  %useful_threads = call i64 @llvm.umin.i64(i64 %threads, i64 %count)
  %odd = add i64 %useful_threads, 1
  %pairs = lshr i64 %odd, 1
  %regions = call i64 @llvm.umin.i64(i64 %pairs, i64 MOST_REGIONS)
  %j8 = getelementptr i64, ptr %j, i64 8
  store i64 %regions, ptr %j8
  br label %clear

clear:
  %cleared = phi i64 [ 0, %describe ], [ %one_more, %clear ]
  %word_of = getelementptr %region, ptr %job, i64 %cleared
  store i64 0, ptr %word_of
  %one_more = add i64 %cleared, 1
  %dirty = icmp ult i64 %one_more, %regions
  br i1 %dirty, label %clear, label %publish

publish:
  call void @start(i64 %threads)
  store ptr %job, ptr @job
  %old = load atomic i64, ptr @state monotonic, align 8
  %generation = and i64 %old, -4294967296
  %following = add i64 %generation, 4294967296
  %open = or i64 %following, 65536
  %_ = atomicrmw xchg ptr @state, i64 %open seq_cst
  %sleeping = load atomic i32, ptr @sleepers seq_cst, align 4
  %some = icmp ne i32 %sleeping, 0
  br i1 %some, label %wake, label %work

wake:
  %others = sub i64 %threads, 1
  %useful = sub i64 %count, 1
  %wanted = call i64 @llvm.umin.i64(i64 %others, i64 %useful)
  %wanted32 = trunc i64 %wanted to i32
  %word = getelementptr i8, ptr @state, i64 4
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 129, i32 %wanted32, ptr null, ptr null, i32 0)
  br label %work

work:
  call void @take(ptr %job, ptr null, i64 0)
  %closed = atomicrmw and ptr @state, i64 -65537 acq_rel
  br label %wait

wait:
  %looks = phi i64 [ 0, %work ], [ %looked, %again ]
  %now = load atomic i64, ptr @state acquire, align 8
  %inside = and i64 %now, 65535
  %all_left = icmp eq i64 %inside, 0
  br i1 %all_left, label %done, label %patience

patience:
  %looked = add i64 %looks, 1
  %patient = icmp ult i64 %looks, PATIENCE
  br i1 %patient, label %spin, label %yield

spin:
  call void @pause()
  br label %again

yield:
  %_1 = call i32 @sched_yield()
  br label %again

again:
  br label %wait

done:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; run chunks until all are claimed, or the job is stopped. number: 0 for the caller, then of those who came
define internal void @take(ptr %job, ptr %scratch, i64 %number) {
entry:
  %j = getelementptr %job, ptr %job, i32 0, i32 1
  %body = load ptr, ptr %j
  %j1 = getelementptr i64, ptr %j, i64 1
  %context = load ptr, ptr %j1
  %j2 = getelementptr i64, ptr %j, i64 2
  %extent = load i64, ptr %j2
  %j3 = getelementptr i64, ptr %j, i64 3
  %chunk = load i64, ptr %j3
  %j5 = getelementptr i64, ptr %j, i64 5
  %stop = load ptr, ptr %j5
  %j7 = getelementptr i64, ptr %j, i64 7
  %count = load i64, ptr %j7
  %j8 = getelementptr i64, ptr %j, i64 8
  %regions = load i64, ptr %j8
  %pair = lshr i64 %number, 1
  %side = and i64 %number, 1
  %from_end = icmp ne i64 %side, 0
  %one = select i1 %from_end, i64 4294967296, i64 1
  br label %region

region:
  %seen = phi i64 [ 0, %entry ], [ %seen_now, %empty ]
  %some_left = icmp ult i64 %seen, %regions
  br i1 %some_left, label %bounds, label %done

bounds:
  %ahead = add i64 %pair, %seen
  %here = urem i64 %ahead, %regions
  %after_here = add i64 %here, 1
  %low_product = mul i64 %count, %here
  %high_product = mul i64 %count, %after_here
  %low = udiv i64 %low_product, %regions
  %high = udiv i64 %high_product, %regions
  %size = sub i64 %high, %low
  %last = sub i64 %high, 1
  %word = getelementptr %region, ptr %job, i64 %here
  br label %head

head:
  %wanted = load atomic i64, ptr %stop monotonic, align 8
  %stopped = icmp ne i64 %wanted, 0
  br i1 %stopped, label %done, label %claim

claim:
  %claims = atomicrmw add ptr %word, i64 %one monotonic
  %front = and i64 %claims, 4294967295
  %back = lshr i64 %claims, 32
  %both = add i64 %front, %back
  %some = icmp ult i64 %both, %size
  br i1 %some, label %run, label %empty

run:
  %rising = add i64 %low, %front
  %falling = sub i64 %last, %back
  %index = select i1 %from_end, i64 %falling, i64 %rising
  %begin = mul i64 %index, %chunk
  %after = add i64 %begin, %chunk
  %end = call i64 @llvm.umin.i64(i64 %after, i64 %extent)
  call void %body(ptr %context, i64 %begin, i64 %end, ptr %scratch)
  br label %head

empty:
  %seen_now = add i64 %seen, 1
  br label %region

done:
  ret void
}

define internal void @start(i64 %threads) { ; make the missing workers, which handle no signals
entry:
  %id = alloca i64
  %kept = alloca [16 x i64]
  %wanted = sub i64 %threads, 1
  %there = load i64, ptr @started
  %enough = icmp uge i64 %there, %wanted
  br i1 %enough, label %done, label %mask

mask:
  %_0 = call i32 @pthread_sigmask(i32 2, ptr @signals, ptr %kept)
  br label %make

make:
  %count = load i64, ptr @started
  %missing = icmp ult i64 %count, %wanted
  br i1 %missing, label %create, label %unmask

create:
  %failed = call i32 @pthread_create(ptr %id, ptr null, ptr @worker, ptr null)
  %made = icmp eq i32 %failed, 0
  br i1 %made, label %count_it, label %unmask

count_it:
  %thread = load i64, ptr %id
  %_1 = call i32 @pthread_detach(i64 %thread)
  %more = add i64 %count, 1
  store i64 %more, ptr @started
  br label %make

unmask:
  %_2 = call i32 @pthread_sigmask(i32 2, ptr %kept, ptr null)
  br label %done

done:
  ret void
}

define internal ptr @worker(ptr %unused) {
entry:
  br label %look

look: ; seen: the generation of the last job; looks: how often there was no new one; space, size: scratch memory
  %seen = phi i64 [ 0, %entry ], [ %seen, %busy_loop ], [ %generation, %leave ], [ %seen, %slept ], [ %seen, %lost ]
  %looks = phi i64 [ 0, %entry ], [ %looked, %busy_loop ], [ 0, %leave ], [ 0, %slept ], [ 0, %lost ]
  %space = phi ptr [ null, %entry ], [ %space, %busy_loop ], [ %space.now, %leave ], [ %space, %slept ],
    [ %space, %lost ]
  %size = phi i64 [ 0, %entry ], [ %size, %busy_loop ], [ %size.now, %leave ], [ %size, %slept ], [ %size, %lost ]
  %now = load atomic i64, ptr @state acquire, align 8
  %generation = lshr i64 %now, 32
  %new = icmp ne i64 %generation, %seen
  %open.bit = and i64 %now, 65536
  %open = icmp ne i64 %open.bit, 0
  %inside = and i64 %now, 65535
  %after = add i64 %inside, 2 ; with the caller and this one
  %most = load atomic i64, ptr @threads monotonic, align 8
  %room = icmp ule i64 %after, %most
  %new_open = and i1 %new, %open
  %wanted = and i1 %new_open, %room
  br i1 %wanted, label %enter, label %idle

enter:
  %entered = add i64 %now, 1
  %swapped = cmpxchg ptr @state, i64 %now, i64 %entered acq_rel monotonic
  %is_in = extractvalue { i64, i1 } %swapped, 1
  br i1 %is_in, label %prepare, label %lost

lost:
  br label %look

prepare:
  %job = load ptr, ptr @job
  %j0 = getelementptr %job, ptr %job, i32 0, i32 1
  %j4 = getelementptr i64, ptr %j0, i64 4
  %bytes = load i64, ptr %j4
  %j6 = getelementptr i64, ptr %j0, i64 6
  %mode = load i64, ptr %j6
  call void @set_mode(i64 %mode)
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %work, label %own

own:
  %fits = icmp ule i64 %bytes, %size
  br i1 %fits, label %work, label %grow

grow:
  call void @free(ptr %space)
  %up = add i64 %bytes, 63
  %rounded = and i64 %up, -64
  %got = call ptr @aligned_alloc(i64 64, i64 %rounded)
  %out = icmp eq ptr %got, null
  br i1 %out, label %leave, label %work ; without memory the others do it all

work:
  %space.work = phi ptr [ %space, %prepare ], [ %space, %own ], [ %got, %grow ]
  %size.work = phi i64 [ %size, %prepare ], [ %size, %own ], [ %rounded, %grow ]
  %scratch = select i1 %none, ptr null, ptr %space.work
  %number = add i64 %inside, 1
  call void @take(ptr %job, ptr %scratch, i64 %number)
  br label %leave

leave:
  %space.now = phi ptr [ null, %grow ], [ %space.work, %work ]
  %size.now = phi i64 [ 0, %grow ], [ %size.work, %work ]
  %_0 = atomicrmw sub ptr @state, i64 1 release
  br label %look

idle:
  %looked = add i64 %looks, 1
  %awake = icmp ult i64 %looks, SPINS
  br i1 %awake, label %busy_loop, label %sleep

busy_loop:
  call void @pause()
  br label %look

sleep: ; the kernel returns at once if there is another generation than this one
  %_1 = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %value = trunc i64 %generation to i32
  %word = getelementptr i8, ptr @state, i64 4
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  %_2 = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %slept

slept:
  br label %look
}
"""

_X86 = """
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal void @pause() {
  call void @llvm.x86.sse2.pause()
  ret void
}

define internal i64 @get_mode() {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %mode = load i32, ptr %place
  %wide = zext i32 %mode to i64
  ret i64 %wide
}

define internal void @set_mode(i64 %wide) {
  %place = alloca i32
  %mode = trunc i64 %wide to i32
  store i32 %mode, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
"""

_AARCH64 = """
declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal void @pause() {
  call void @llvm.aarch64.hint(i32 1) ; yield
  ret void
}

define internal i64 @get_mode() {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %mode
}

define internal void @set_mode(i64 %mode) {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
"""

_NO_MODES = """
define internal void @pause() {
  ret void
}

define internal i64 @get_mode() {
  ret i64 0
}

define internal void @set_mode(i64 %mode) {
  ret void
}
"""

_MODES = {"x86_64": _X86, "aarch64": _AARCH64}
"""Architecture → how it waits, and reads and sets its mode of floats (subnormals, rounding)."""
