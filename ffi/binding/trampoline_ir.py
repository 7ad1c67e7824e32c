"""LLVM IR of the functions that runtimes call for handlers written in Python.

A handler has a record, and up to SLOTS slots. A slot remembers one decoded call frame: what stands in the frame (128
bytes from its `args` on), every other byte that decoding read, the arrays that are views of its buffers, and a Python
function that calls the handler with them. If all of that is found unchanged, the views are pointed at the buffers of
this call, and the function is called; in every other case Python decodes the frame (the record's `slow`).

A slot is used by one call at a time (`busy`), so that threads never share a view.
"""

from __future__ import annotations

from .loops_ir import LOOPS_IR

STUBS = 32
"""Functions in one copy of this code."""

SLOTS = 64
"""Slots of a handler; a power of two."""

PROBES = 4
"""Neighbouring slots where a frame may be."""

SLOT = {
    name: number
    for number, name in enumerate(
        ("key", "busy", "api", "notes", "note_count", "views", "view_count", "function", "ctx", "finish", "escaped")
    )
}
"""Words of a slot; then the frame's 16 words from HEADER on."""

HEADER = 16
SLOT_WORDS = 32
RECORD = {"slow": 0, "slots": 1, "stage": 2}
RECORD_WORDS = 4

_TYPES = f"""
@records = internal global [{STUBS} x [{RECORD_WORDS} x i64]] zeroinitializer, align 64
@lost = internal constant [33 x i8] c"Python failed to report an error\\00"
@ended = internal constant [54 x i8] c"the Python interpreter of this FFI handler has ended\\00\\00"
@_Py_NoneStruct = external global i8

declare i32 @Py_IsInitialized()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_WriteUnraisable(ptr)
declare void @Py_DecRef(ptr)
"""

_CALL = """
define ptr @testbed_ffi_records() {
  ret ptr @records
}

define i64 @testbed_ffi_acquire(ptr %slot) { ; 1 if the slot was free, and now is the caller's
  %at = getelementptr i64, ptr %slot, i64 BUSY
  %pair = cmpxchg ptr %at, i64 0, i64 1 acquire monotonic
  %taken = extractvalue { i64, i1 } %pair, 1
  %word = zext i1 %taken to i64
  ret i64 %word
}

define void @testbed_ffi_release(ptr %slot) {
  %at = getelementptr i64, ptr %slot, i64 BUSY
  store atomic i64 0, ptr %at release, align 8
  ret void
}

define i64 @testbed_ffi_key(ptr %frame) { ; of the addresses of args, rets and attrs
  %args.at = getelementptr i8, ptr %frame, i64 72
  %rets.at = getelementptr i8, ptr %frame, i64 112
  %attrs.at = getelementptr i8, ptr %frame, i64 160
  %args = load i64, ptr %args.at, align 8
  %rets = load i64, ptr %rets.at, align 8
  %attrs = load i64, ptr %attrs.at, align 8
  %rets.m = mul i64 %rets, 3
  %attrs.m = mul i64 %attrs, 5
  %sum = add i64 %args, %rets.m
  %all = add i64 %sum, %attrs.m
  %key = or i64 %all, 1
  ret i64 %key
}

define i64 @testbed_ffi_first(i64 %key) { ; the first slot of a key
  %mixed = mul i64 %key, -7046029254386353131
  %first = lshr i64 %mixed, SHIFT
  ret i64 %first
}

define internal ptr @failure(ptr %frame, ptr %message) {
  %args = alloca [4 x i64], align 8
  store i64 28, ptr %args, align 8
  %extension = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %extension, align 8
  %text = getelementptr i64, ptr %args, i64 2
  store ptr %message, ptr %text, align 8
  %code = getelementptr i64, ptr %args, i64 3
  store i64 13, ptr %code, align 8
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at, align 8
  %create.at = getelementptr i8, ptr %api, i64 48
  %create = load ptr, ptr %create.at, align 8
  %error = call ptr %create(ptr %args)
  ret ptr %error
}

define internal ptr @testbed_ffi_call(ptr %frame, ptr %record) {
entry:
  %alive = call i32 @Py_IsInitialized()
  %dead = icmp eq i32 %alive, 0
  br i1 %dead, label %gone, label %plain
gone:
  %gone.error = call ptr @failure(ptr %frame, ptr @ended)
  ret ptr %gone.error
plain: ; the size of a frame, no extension, the stage, and slots
  %size = load i64, ptr %frame, align 8
  %extension.at = getelementptr i8, ptr %frame, i64 8
  %extension = load i64, ptr %extension.at, align 8
  %stage.at = getelementptr i8, ptr %frame, i64 32
  %stage = load i32, ptr %stage.at, align 8
  %own.at = getelementptr i64, ptr %record, i64 2
  %own = load i32, ptr %own.at, align 8
  %slots.at = getelementptr i64, ptr %record, i64 1
  %slots = load atomic ptr, ptr %slots.at acquire, align 8
  %wrong.size = icmp ne i64 %size, 168
  %extended = icmp ne i64 %extension, 0
  %other.stage = icmp ne i32 %stage, %own
  %empty = icmp eq ptr %slots, null
  %w1 = or i1 %wrong.size, %extended
  %w2 = or i1 %w1, %other.stage
  %w3 = or i1 %w2, %empty
  br i1 %w3, label %slow, label %search
search:
  %key = call i64 @testbed_ffi_key(ptr %frame)
  %first = call i64 @testbed_ffi_first(i64 %key)
  br label %probe
probe:
  %p = phi i64 [ 0, %search ], [ %p.next, %missed ]
  %sum = add i64 %first, %p
  %index = and i64 %sum, MASK
  %offset = mul i64 %index, SLOT_BYTES
  %slot = getelementptr i8, ptr %slots, i64 %offset
  %found.key = load atomic i64, ptr %slot monotonic, align 8
  %hit = icmp eq i64 %found.key, %key
  br i1 %hit, label %take, label %missed
missed:
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, PROBES
  br i1 %p.more, label %probe, label %slow
take:
  %taken = call i64 @testbed_ffi_acquire(ptr %slot)
  %free = icmp ne i64 %taken, 0
  br i1 %free, label %compare, label %slow
compare: ; the slot is this call's, and everything in it stays
  %key.now = load i64, ptr %slot, align 8
  %still = icmp eq i64 %key.now, %key
  br i1 %still, label %compare.api, label %other
compare.api:
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load i64, ptr %api.at, align 8
  %slot.api.at = getelementptr i64, ptr %slot, i64 API
  %slot.api = load i64, ptr %slot.api.at, align 8
  %same.api = icmp eq i64 %api, %slot.api
  br i1 %same.api, label %compare.header, label %other
compare.header:
  %from = getelementptr i8, ptr %frame, i64 40
  %header = getelementptr i64, ptr %slot, i64 HEADER
  %order = call i32 @memcmp(ptr %from, ptr %header, i64 128)
  %same.header = icmp eq i32 %order, 0
  br i1 %same.header, label %compare.notes, label %other
compare.notes:
  %notes.at = getelementptr i64, ptr %slot, i64 NOTES
  %notes = load ptr, ptr %notes.at, align 8
  %note.count.at = getelementptr i64, ptr %slot, i64 NOTE_COUNT
  %note.count = load i64, ptr %note.count.at, align 8
  %same.notes = call i1 @same_bytes(ptr %notes, i64 %note.count)
  br i1 %same.notes, label %pointing, label %other
pointing:
  %views.at = getelementptr i64, ptr %slot, i64 VIEWS
  %views = load ptr, ptr %views.at, align 8
  %view.count.at = getelementptr i64, ptr %slot, i64 VIEW_COUNT
  %view.count = load i64, ptr %view.count.at, align 8
  %pointed = call i1 @point(ptr %views, i64 %view.count)
  br i1 %pointed, label %ready, label %other
other:
  call void @testbed_ffi_release(ptr %slot)
  br label %slow
slow:
  %slow.function = load ptr, ptr %record, align 8
  %slow.error = call ptr %slow.function(ptr %frame)
  ret ptr %slow.error
ready:
  %lock = call i32 @PyGILState_Ensure()
  call void @count(ptr %views, i64 %view.count)
  %function.at = getelementptr i64, ptr %slot, i64 FUNCTION
  %function = load ptr, ptr %function.at, align 8
  %ctx.at = getelementptr i64, ptr %slot, i64 CTX
  %wants.ctx = load i64, ptr %ctx.at, align 8
  %with.ctx = icmp ne i64 %wants.ctx, 0
  br i1 %with.ctx, label %ctx.call, label %bare.call
ctx.call:
  %frame.ctx.at = getelementptr i8, ptr %frame, i64 24
  %frame.ctx = load ptr, ptr %frame.ctx.at, align 8
  %ctx.number = call ptr @PyLong_FromVoidPtr(ptr %frame.ctx)
  %ctx.value = call ptr @PyObject_CallOneArg(ptr %function, ptr %ctx.number)
  call void @Py_DecRef(ptr %ctx.number)
  br label %called
bare.call:
  %bare.value = call ptr @PyObject_CallNoArgs(ptr %function)
  br label %called
called:
  %value = phi ptr [ %ctx.value, %ctx.call ], [ %bare.value, %bare.call ]
  %nothing = icmp eq ptr %value, @_Py_NoneStruct
  br i1 %nothing, label %succeeded, label %special
special: ; an error, a future, or a mistake: Python says which
  %raised = icmp eq ptr %value, null
  br i1 %raised, label %broken, label %finishing
finishing:
  %finish.at = getelementptr i64, ptr %slot, i64 FINISH
  %finish = load ptr, ptr %finish.at, align 8
  %number = call ptr @PyLong_FromVoidPtr(ptr %frame)
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %finish, ptr %number, ptr %value, ptr null)
  call void @Py_DecRef(ptr %number)
  call void @Py_DecRef(ptr %value)
  %no.answer = icmp eq ptr %answer, null
  br i1 %no.answer, label %broken, label %answered
answered:
  %address = call ptr @PyLong_AsVoidPtr(ptr %answer)
  call void @Py_DecRef(ptr %answer)
  br label %done
broken:
  call void @PyErr_WriteUnraisable(ptr null)
  %broken.error = call ptr @failure(ptr %frame, ptr @lost)
  br label %done
succeeded:
  call void @Py_DecRef(ptr %value)
  br label %done
done:
  %error = phi ptr [ null, %succeeded ], [ %address, %answered ], [ %broken.error, %broken ]
  %escaped = call i1 @kept(ptr %views, i64 %view.count)
  br i1 %escaped, label %escape, label %leave
escape:
  %escaped.at = getelementptr i64, ptr %slot, i64 ESCAPED
  %escaped.function = load ptr, ptr %escaped.at, align 8
  %escaped.value = call ptr @PyObject_CallNoArgs(ptr %escaped.function)
  %escaped.null = icmp eq ptr %escaped.value, null
  br i1 %escaped.null, label %escape.broken, label %escape.done
escape.broken:
  call void @PyErr_WriteUnraisable(ptr null)
  br label %leave
escape.done:
  call void @Py_DecRef(ptr %escaped.value)
  br label %leave
leave:
  call void @testbed_ffi_release(ptr %slot)
  call void @PyGILState_Release(i32 %lock)
  ret ptr %error
}
"""

_STUB = """
define ptr @testbed_ffi_stub_{number}(ptr %frame) {{
  %record = getelementptr [{words} x i64], ptr @records, i64 {number}
  %error = call ptr @testbed_ffi_call(ptr %frame, ptr %record)
  ret ptr %error
}}
"""


def trampoline_ir() -> str:
    """The module: `testbed_ffi_stub_0` and so on, the records, and what Python needs to fill slots."""
    words = {
        "BUSY": SLOT["busy"],
        "API": SLOT["api"],
        "NOTE_COUNT": SLOT["note_count"],
        "NOTES": SLOT["notes"],
        "VIEW_COUNT": SLOT["view_count"],
        "VIEWS": SLOT["views"],
        "FUNCTION": SLOT["function"],
        "CTX": SLOT["ctx"],
        "FINISH": SLOT["finish"],
        "ESCAPED": SLOT["escaped"],
        "HEADER": HEADER,
        "SLOT_BYTES": SLOT_WORDS * 8,
        "PROBES": PROBES,
        "MASK": SLOTS - 1,
        "SHIFT": 64 - (SLOTS.bit_length() - 1),
    }
    text = _CALL
    for name, word in sorted(words.items(), key=lambda item: -len(item[0])):
        text = text.replace(f"i64 {name}\n", f"i64 {word}\n").replace(f"i64 {name})", f"i64 {word})")
        text = text.replace(f"%key, {name}\n", f"%key, {word}\n").replace(f", {name}\n", f", {word}\n")
    stubs = "".join(_STUB.format(number=n, words=RECORD_WORDS) for n in range(STUBS))
    return _TYPES + LOOPS_IR + text + stubs
