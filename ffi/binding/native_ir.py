"""LLVM IR of what must run without Python's lock, or faster than ctypes: the deleter of states.

A state is a node of two words: the next node, and the object. A thread that holds Python's lock drops the object at
once; another one only puts the node on a list, which Python's main thread empties, or the next call of a handler.
After Python's end nothing is done.
"""

from __future__ import annotations

DELETER_IR = """
@graveyard = internal global ptr null, align 8

declare i32 @Py_IsInitialized()
declare i32 @PyGILState_Check()
declare void @Py_DecRef(ptr)
declare i32 @Py_AddPendingCall(ptr, ptr)
declare ptr @malloc(i64)
declare void @free(ptr)

define ptr @testbed_ffi_new_state(ptr %object) {
  %node = call ptr @malloc(i64 16)
  store ptr null, ptr %node, align 8
  %at = getelementptr i8, ptr %node, i64 8
  store ptr %object, ptr %at, align 8
  ret ptr %node
}

define void @testbed_ffi_delete_state(ptr %node) {
  %alive = call i32 @Py_IsInitialized()
  %is_alive = icmp ne i32 %alive, 0
  br i1 %is_alive, label %check, label %gone
gone: ; the interpreter has ended, and all objects with it
  ret void
check:
  %held = call i32 @PyGILState_Check()
  %is_held = icmp ne i32 %held, 0
  br i1 %is_held, label %drop, label %bury
drop:
  call void @drop(ptr %node)
  ret void
bury:
  %first = load atomic ptr, ptr @graveyard monotonic, align 8
  store ptr %first, ptr %node, align 8
  %pair = cmpxchg ptr @graveyard, ptr %first, ptr %node acq_rel monotonic
  %done = extractvalue { ptr, i1 } %pair, 1
  br i1 %done, label %out, label %bury
out: ; if Python's queue is full, the list waits for the next call of a handler
  %queued = call i32 @Py_AddPendingCall(ptr @pending, ptr null)
  ret void
}

define internal i32 @pending(ptr %nothing) {
  call void @testbed_ffi_bury_states()
  ret i32 0
}

define void @testbed_ffi_bury_states() { ; with Python's lock
  %first = atomicrmw xchg ptr @graveyard, ptr null acq_rel
  br label %next
next:
  %node = phi ptr [ %first, %0 ], [ %following, %some ]
  %none = icmp eq ptr %node, null
  br i1 %none, label %out, label %some
some:
  %following = load ptr, ptr %node, align 8
  call void @drop(ptr %node)
  br label %next
out:
  ret void
}

define internal void @drop(ptr %node) {
  %at = getelementptr i8, ptr %node, i64 8
  %object = load ptr, ptr %at, align 8
  call void @free(ptr %node)
  call void @Py_DecRef(ptr %object)
  ret void
}
"""
