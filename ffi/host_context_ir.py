"""LLVM IR of what handlers ask of their context: the run on their thread, futures, tasks on the pool of threads.

A run is a block of words whose address each thread keeps under one key (run_words.py, calls.py). A future is a block of
malloc: a mutex, a condition, whether it is completed, its error.
"""

from __future__ import annotations

from .run_words import DEVICE, OPTIONS, RUN_ID, STREAM, USER_DATA, USER_DATA_COUNT

_RUNS = f"""
@testbed_ffi_key = global i32 0
@runs = internal global i64 0
@no_options = private constant [6 x i64] [i64 48, i64 0, i64 0, i64 0, i64 0, i64 0]
@no_stream = private constant [40 x i8] c"XLA FFI GPU context is not available\\00\\00\\00\\00"
declare ptr @pthread_getspecific(i32)

define internal ptr @run() {{
  %key = load i32, ptr @testbed_ffi_key
  %run = call ptr @pthread_getspecific(i32 %key)
  ret ptr %run
}}

define internal i64 @number(i64 %word) {{
  %run = call ptr @run()
  %none = icmp eq ptr %run, null
  br i1 %none, label %zero, label %look
look:
  %at = getelementptr i64, ptr %run, i64 %word
  %value = load i64, ptr %at
  ret i64 %value
zero:
  ret i64 0
}}

define ptr @RunId_Get(ptr %args) {{
  %out = getelementptr i8, ptr %args, i64 24
  %number = call i64 @number(i64 {RUN_ID})
  store i64 %number, ptr %out
  %run = call ptr @run()
  %none = icmp eq ptr %run, null
  %has.one = icmp ne i64 %number, 0
  %done = or i1 %none, %has.one
  br i1 %done, label %end, label %give
give: ; even numbers, and odd ones in Python
  %before = atomicrmw add ptr @runs, i64 2 monotonic
  %new = add i64 %before, 2
  %at = getelementptr i64, ptr %run, i64 {RUN_ID}
  store i64 %new, ptr %at
  store i64 %new, ptr %out
  br label %end
end:
  ret ptr null
}}

define ptr @DeviceOrdinal_Get(ptr %args) {{
  %number = call i64 @number(i64 {DEVICE})
  %narrow = trunc i64 %number to i32
  %out = getelementptr i8, ptr %args, i64 24
  store i32 %narrow, ptr %out
  ret ptr null
}}

define ptr @Stream_Get(ptr %args) {{
  %stream = call i64 @number(i64 {STREAM})
  %out = getelementptr i8, ptr %args, i64 24
  store i64 %stream, ptr %out
  %none = icmp eq i64 %stream, 0
  br i1 %none, label %host, label %done
done:
  ret ptr null
host:
  %error = call ptr @testbed_ffi_error(i64 12, ptr @no_stream)
  ret ptr %error
}}

define ptr @CustomOptions_Get(ptr %args) {{
  %number = call i64 @number(i64 {OPTIONS})
  %given = inttoptr i64 %number to ptr
  %none = icmp eq i64 %number, 0
  %options = select i1 %none, ptr @no_options, ptr %given
  %out = getelementptr i8, ptr %args, i64 24
  store ptr %options, ptr %out
  ret ptr null
}}

define ptr @InvokeContext_FindExtension(ptr %args) {{
  %out = getelementptr i8, ptr %args, i64 32
  store ptr null, ptr %out
  ret ptr null
}}

define ptr @ExecutionContext_Get(ptr %args) {{
entry:
  %at.type = getelementptr i8, ptr %args, i64 24
  %type = load ptr, ptr %at.type
  %wanted = load i64, ptr %type
  %count = call i64 @number(i64 {USER_DATA_COUNT})
  %rows = call i64 @number(i64 {USER_DATA})
  %first = inttoptr i64 %rows to ptr
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %other ]
  %left = icmp ult i64 %n, %count
  br i1 %left, label %look, label %python
look:
  %row = getelementptr [2 x i64], ptr %first, i64 %n
  %have = load i64, ptr %row
  %same = icmp eq i64 %have, %wanted
  br i1 %same, label %give, label %other
other:
  %next = add i64 %n, 1
  br label %loop
give:
  %at.value = getelementptr i8, ptr %row, i64 8
  %value = load ptr, ptr %at.value
  %out = getelementptr i8, ptr %args, i64 32
  store ptr %value, ptr %out
  ret ptr null
python:
  %at.function = getelementptr ptr, ptr @testbed_ffi_python, i64 3
  %function = load ptr, ptr %at.function
  %error = call ptr %function(ptr %args)
  ret ptr %error
}}
"""

_FUTURES = """
declare ptr @calloc(i64, i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_mutex_destroy(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_destroy(ptr)
declare i32 @clock_gettime(i32, ptr)

define ptr @Future_Create(ptr %args) {
  %future = call ptr @calloc(i64 1, i64 160)
  call i32 @pthread_mutex_init(ptr %future, ptr null)
  %condition = getelementptr i8, ptr %future, i64 64
  call i32 @pthread_cond_init(ptr %condition, ptr null)
  %out = getelementptr i8, ptr %args, i64 16
  store ptr %future, ptr %out
  ret ptr null
}

define internal void @complete(ptr %future, ptr %error) {
  call i32 @pthread_mutex_lock(ptr %future)
  %at.error = getelementptr i8, ptr %future, i64 136
  store ptr %error, ptr %at.error
  %at.done = getelementptr i8, ptr %future, i64 128
  store i64 1, ptr %at.done
  %condition = getelementptr i8, ptr %future, i64 64
  call i32 @pthread_cond_broadcast(ptr %condition)
  call i32 @pthread_mutex_unlock(ptr %future)
  ret void
}

define ptr @Future_SetAvailable(ptr %args) {
  %at.future = getelementptr i8, ptr %args, i64 16
  %future = load ptr, ptr %at.future
  call void @complete(ptr %future, ptr null)
  ret ptr null
}

define ptr @Future_SetError(ptr %args) {
  %at.future = getelementptr i8, ptr %args, i64 16
  %future = load ptr, ptr %at.future
  %at.error = getelementptr i8, ptr %args, i64 24
  %error = load ptr, ptr %at.error
  call void @complete(ptr %future, ptr %error)
  ret ptr null
}

define i64 @testbed_ffi_future_wait(ptr %future, i64 %nanoseconds) {
  %time = alloca [2 x i64], align 8
  %condition = getelementptr i8, ptr %future, i64 64
  %at.done = getelementptr i8, ptr %future, i64 128
  call i32 @pthread_mutex_lock(ptr %future)
  %before = load i64, ptr %at.done
  %is.done = icmp ne i64 %before, 0
  %no.time = icmp eq i64 %nanoseconds, 0
  %leave = or i1 %is.done, %no.time
  br i1 %leave, label %end, label %wait
wait:
  call i32 @clock_gettime(i32 0, ptr %time)
  %at.rest = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %at.rest
  %sum = add i64 %rest, %nanoseconds
  %seconds = load i64, ptr %time
  %more = udiv i64 %sum, 1000000000
  %later = add i64 %seconds, %more
  store i64 %later, ptr %time
  %left = urem i64 %sum, 1000000000
  store i64 %left, ptr %at.rest
  call i32 @pthread_cond_timedwait(ptr %condition, ptr %future, ptr %time)
  br label %end
end:
  %done = load i64, ptr %at.done
  call i32 @pthread_mutex_unlock(ptr %future)
  ret i64 %done
}

define ptr @testbed_ffi_future_end(ptr %future) {
  %at.error = getelementptr i8, ptr %future, i64 136
  %error = load ptr, ptr %at.error
  %condition = getelementptr i8, ptr %future, i64 64
  call i32 @pthread_cond_destroy(ptr %condition)
  call i32 @pthread_mutex_destroy(ptr %future)
  call void @free(ptr %future)
  ret ptr %error
}

define internal void @awaited(ptr %site, ptr %future) {
  %done = call i64 @testbed_ffi_future_wait(ptr %future, i64 0)
  %is.done = icmp ne i64 %done, 0
  br i1 %is.done, label %end, label %python
python:
  %at.function = getelementptr ptr, ptr @testbed_ffi_python, i64 1
  %function = load ptr, ptr %at.function
  call void %function(ptr %site, ptr %future)
  ret void
end:
  %error = call ptr @testbed_ffi_future_end(ptr %future)
  %good = icmp eq ptr %error, null
  br i1 %good, label %leave, label %bad
bad:
  call void @failed(ptr %site, ptr %error)
  br label %leave
leave:
  ret void
}
"""

_TASKS = """
@tasks.lock = internal global [8 x i64] zeroinitializer, align 64
@tasks.some = internal global [8 x i64] zeroinitializer, align 64
@tasks.first = internal global ptr null
@tasks.last = internal global ptr null
@tasks.workers = internal global i64 0
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)

define void @testbed_ffi_tasks_reset() {
  call i32 @pthread_mutex_init(ptr @tasks.lock, ptr null)
  call i32 @pthread_cond_init(ptr @tasks.some, ptr null)
  store ptr null, ptr @tasks.first
  store ptr null, ptr @tasks.last
  store i64 0, ptr @tasks.workers
  ret void
}

define internal ptr @work(ptr %unused) {
  br label %next
next:
  call i32 @pthread_mutex_lock(ptr @tasks.lock)
  br label %look
look:
  %task = load ptr, ptr @tasks.first
  %none = icmp eq ptr %task, null
  br i1 %none, label %wait, label %take
wait:
  call i32 @pthread_cond_wait(ptr @tasks.some, ptr @tasks.lock)
  br label %look
take:
  %behind = load ptr, ptr %task
  store ptr %behind, ptr @tasks.first
  %is.last = icmp eq ptr %behind, null
  br i1 %is.last, label %empty, label %run
empty:
  store ptr null, ptr @tasks.last
  br label %run
run:
  call i32 @pthread_mutex_unlock(ptr @tasks.lock)
  %at.function = getelementptr i8, ptr %task, i64 8
  %function = load ptr, ptr %at.function
  %at.data = getelementptr i8, ptr %task, i64 16
  %data = load ptr, ptr %at.data
  call void @free(ptr %task)
  call void %function(ptr %data)
  br label %next
}

define ptr @ThreadPool_Schedule(ptr %args) {
  %thread = alloca i64
  %at.function = getelementptr i8, ptr %args, i64 24
  %function = load ptr, ptr %at.function
  %at.data = getelementptr i8, ptr %args, i64 32
  %data = load ptr, ptr %at.data
  call i32 @pthread_mutex_lock(ptr @tasks.lock)
  %workers = load i64, ptr @tasks.workers
  %most = load i64, ptr @testbed_ffi_threads
  %fewer = icmp ult i64 %workers, %most
  br i1 %fewer, label %start, label %add
start:
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @work, ptr null)
  %started = icmp eq i32 %status, 0
  br i1 %started, label %count, label %lacking
count:
  %one.more = add i64 %workers, 1
  store i64 %one.more, ptr @tasks.workers
  %id = load i64, ptr %thread
  call i32 @pthread_detach(i64 %id)
  br label %add
lacking:
  %alone = icmp eq i64 %workers, 0
  br i1 %alone, label %here, label %add
here:
  call i32 @pthread_mutex_unlock(ptr @tasks.lock)
  call void %function(ptr %data)
  ret ptr null
add:
  %task = call ptr @calloc(i64 1, i64 24)
  %to.function = getelementptr i8, ptr %task, i64 8
  store ptr %function, ptr %to.function
  %to.data = getelementptr i8, ptr %task, i64 16
  store ptr %data, ptr %to.data
  %last = load ptr, ptr @tasks.last
  %first = icmp eq ptr %last, null
  %place = select i1 %first, ptr @tasks.first, ptr %last
  store ptr %task, ptr %place
  store ptr %task, ptr @tasks.last
  call i32 @pthread_cond_signal(ptr @tasks.some)
  call i32 @pthread_mutex_unlock(ptr @tasks.lock)
  ret ptr null
}
"""

CONTEXT_IR = _RUNS + _FUTURES + _TASKS
