"""LLVM IR of the host side: calls of handlers, which catch C++ exceptions, and the API's functions that must be fast.

An error is a block of malloc: its code (i64), then its text with a zero byte. @testbed_ffi_python is a table of
functions in Python (api.py): for failures, futures that are not completed yet, and what a call needs rarely.
"""

from __future__ import annotations

from .host_context_ir import CONTEXT_IR
from .layout import ON_DEVICE, OWNER

PYTHON = ("failed", "wait", "state_get", "context_get", "memory_allocate", "memory_free")
"""The functions of that table, in order."""

_COMMON = r"""
@testbed_ffi_python = global [6 x ptr] zeroinitializer
@testbed_ffi_threads = global i64 1
@out_of_memory = private constant [45 x i8] c"no memory for scratch of the requested size.\00"

declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare i64 @strlen(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal ptr @made(i64 %code, ptr %prefix, i64 %length, ptr %text) {
  %more = call i64 @strlen(ptr %text)
  %both = add i64 %length, %more
  %size = add i64 %both, 9
  %error = call ptr @malloc(i64 %size)
  store i64 %code, ptr %error
  %first = getelementptr i8, ptr %error, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr %first, ptr %prefix, i64 %length, i1 false)
  %second = getelementptr i8, ptr %first, i64 %length
  %rest = add i64 %more, 1
  call void @llvm.memcpy.p0.p0.i64(ptr %second, ptr %text, i64 %rest, i1 false)
  ret ptr %error
}

define ptr @testbed_ffi_error(i64 %code, ptr %text) {
  %error = call ptr @made(i64 %code, ptr %text, i64 0, ptr %text)
  ret ptr %error
}

define ptr @Error_Create(ptr %args) {
  %at.text = getelementptr i8, ptr %args, i64 16
  %text = load ptr, ptr %at.text
  %at.code = getelementptr i8, ptr %args, i64 24
  %narrow = load i32, ptr %at.code
  %code = zext i32 %narrow to i64
  %error = call ptr @made(i64 %code, ptr %text, i64 0, ptr %text)
  ret ptr %error
}

define void @Error_GetMessage(ptr %args) {
  %at.error = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %at.error
  %text = getelementptr i8, ptr %error, i64 8
  %at.text = getelementptr i8, ptr %args, i64 24
  store ptr %text, ptr %at.text
  %size = load i64, ptr %args
  %asked = icmp uge i64 %size, 36
  br i1 %asked, label %detail, label %done
detail:
  %code = load i64, ptr %error
  %narrow = trunc i64 %code to i32
  %at.code = getelementptr i8, ptr %args, i64 32
  store i32 %narrow, ptr %at.code
  br label %done
done:
  ret void
}

define void @Error_Destroy(ptr %args) {
  %at.error = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %at.error
  call void @free(ptr %error)
  ret void
}

define internal i1 @on_device(ptr %args) {
  %at.site = getelementptr i8, ptr %args, i64 16
  %site = load ptr, ptr %at.site
  %at.owner = getelementptr i8, ptr %site, i64 OWNER
  %owner = load atomic i64, ptr %at.owner monotonic, align 8
  %is.device = icmp eq i64 %owner, ON_DEVICE
  ret i1 %is.device
}

define internal ptr @in_python(i64 %number, ptr %args) {
  %at.function = getelementptr ptr, ptr @testbed_ffi_python, i64 %number
  %function = load ptr, ptr %at.function
  %error = call ptr %function(ptr %args)
  ret ptr %error
}

define ptr @DeviceMemory_Allocate(ptr %args) {
  %is.device = call i1 @on_device(ptr %args)
  br i1 %is.device, label %device, label %host
device:
  %answer = call ptr @in_python(i64 4, ptr %args)
  ret ptr %answer
host:
  %at.size = getelementptr i8, ptr %args, i64 24
  %size = load i64, ptr %at.size
  %at.align = getelementptr i8, ptr %args, i64 32
  %given = load i64, ptr %at.align
  %small = icmp ult i64 %given, 64
  %align = select i1 %small, i64 64, i64 %given
  %none = icmp eq i64 %size, 0
  %bytes = select i1 %none, i64 1, i64 %size
  %data = getelementptr i8, ptr %args, i64 40
  %status = call i32 @posix_memalign(ptr %data, i64 %align, i64 %bytes)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %done, label %failed
failed:
  %error = call ptr @testbed_ffi_error(i64 8, ptr @out_of_memory)
  ret ptr %error
done:
  ret ptr null
}

define ptr @DeviceMemory_Free(ptr %args) {
  %is.device = call i1 @on_device(ptr %args)
  br i1 %is.device, label %device, label %host
device:
  %answer = call ptr @in_python(i64 5, ptr %args)
  ret ptr %answer
host:
  %at.data = getelementptr i8, ptr %args, i64 32
  %data = load ptr, ptr %at.data
  call void @free(ptr %data)
  ret ptr null
}

define ptr @ThreadPool_NumThreads(ptr %args) {
  %at.number = getelementptr i8, ptr %args, i64 24
  %number = load ptr, ptr %at.number
  %threads = load i64, ptr @testbed_ffi_threads
  store i64 %threads, ptr %number
  ret ptr null
}

define ptr @State_Get(ptr %args) {
  %size = load i64, ptr %args
  %staged = icmp uge i64 %size, 48
  br i1 %staged, label %look, label %python
look:
  %at.ctx = getelementptr i8, ptr %args, i64 16
  %ctx = load ptr, ptr %at.ctx
  %at.stage = getelementptr i8, ptr %args, i64 24
  %stage = load i32, ptr %at.stage
  %at.type = getelementptr i8, ptr %args, i64 32
  %type = load ptr, ptr %at.type
  %wanted = load i64, ptr %type
  %at.have = getelementptr i8, ptr %ctx, i64 32
  %have = load i64, ptr %at.have
  %at.state = getelementptr i8, ptr %ctx, i64 24
  %state = load ptr, ptr %at.state
  %is.instance = icmp eq i32 %stage, 0
  %is.type = icmp eq i64 %wanted, %have
  %is.there = icmp ne ptr %state, null
  %both = and i1 %is.instance, %is.type
  %known = and i1 %both, %is.there
  br i1 %known, label %give, label %python
give:
  %out = getelementptr i8, ptr %args, i64 40
  store ptr %state, ptr %out
  ret ptr null
python:
  %at.function = getelementptr ptr, ptr @testbed_ffi_python, i64 2
  %function = load ptr, ptr %at.function
  %error = call ptr %function(ptr %args)
  ret ptr %error
}

define internal void @failed(ptr %site, ptr %error) {
  %function = load ptr, ptr @testbed_ffi_python
  call void %function(ptr %site, ptr %error)
  ret void
}

define void @XlaCustomCallStatusSetSuccess(ptr %status) {
  store ptr null, ptr %status
  ret void
}

define void @XlaCustomCallStatusSetFailure(ptr %status, ptr %text, i64 %size) {
  %copy.size = add i64 %size, 9
  %error = call ptr @malloc(i64 %copy.size)
  store i64 13, ptr %error
  %first = getelementptr i8, ptr %error, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr %first, ptr %text, i64 %size, i1 false)
  %end = getelementptr i8, ptr %first, i64 %size
  store i8 0, ptr %end
  store ptr %error, ptr %status
  ret void
}
""".replace("OWNER", str(OWNER)).replace("ON_DEVICE", str(ON_DEVICE))

_TYPED = """
define void @testbed_ffi_typed(ptr %site, ptr %frame, i64 %owner) {personality}{{
  %at.handler = getelementptr i8, ptr %site, i64 8
  %handler = load ptr, ptr %at.handler
  %given = {call} ptr %handler(ptr %frame){labels}
done:
  br label %look
look:
  %error = phi ptr [ %given, %done ]{thrown}
  %at.future = getelementptr i8, ptr %frame, i64 168
  %future = load ptr, ptr %at.future
  %first = ptrtoint ptr %error to i64
  %second = ptrtoint ptr %future to i64
  %any = or i64 %first, %second
  %plain = icmp eq i64 %any, 0
  br i1 %plain, label %end, label %more, !prof !0
more:
  %is.error = icmp ne ptr %error, null
  br i1 %is.error, label %bad, label %wait
bad:
  call void @failed(ptr %site, ptr %error)
  br label %later
later:
  %is.future = icmp ne ptr %future, null
  br i1 %is.future, label %wait, label %end
wait: ; the frame may serve the next call
  store ptr null, ptr %at.future
  call void @awaited(ptr %site, ptr %future)
  br label %end
end:
  %is.owned = icmp ne i64 %owner, 0
  br i1 %is.owned, label %give, label %leave, !prof !0
give:
  %at.owner = getelementptr i8, ptr %site, i64 {place}
  store atomic i64 %owner, ptr %at.owner monotonic, align 8
  br label %leave
leave:
  ret void
{pad}}}
"""

_OLD = """
define void @testbed_ffi_{name}(ptr %site, ptr %operands, ptr %output) {personality}{{
  %status = alloca ptr
  store ptr null, ptr %status
  %at.handler = getelementptr i8, ptr %site, i64 8
  %handler = load ptr, ptr %at.handler
  %at.opaque = getelementptr i8, ptr %site, i64 40
  %opaque = load ptr, ptr %at.opaque
  %at.size = getelementptr i8, ptr %site, i64 48
  %size = load i64, ptr %at.size
  {call} void %handler({arguments}){labels}
done:
  %error = load ptr, ptr %status
  %good = icmp eq ptr %error, null
  br i1 %good, label %end, label %bad
bad:
  call void @failed(ptr %site, ptr %error)
  br label %end
end:
  ret void
{pad}}}
"""

OLD = {
    "original": "ptr %output, ptr %operands",
    "status": "ptr %output, ptr %operands, ptr %status",
    "unified": "ptr %output, ptr %operands, ptr %opaque, i64 %size, ptr %status",
}
"""Older versions → what their handlers take."""

_PAD = """thrown:
  %caught = landingpad {{ ptr, i32 }} catch ptr @_ZTISt9exception catch ptr null
  %wanted = call i32 @llvm.eh.typeid.for.p0(ptr @_ZTISt9exception)
  %what = call ptr @what({{ ptr, i32 }} %caught, i32 %wanted)
  {end}
"""

_CALL = """
define ptr @testbed_ffi_call(ptr %handler, ptr %frame) {personality}{{
  %error = {call} ptr %handler(ptr %frame){labels}
done:
  ret ptr %error
{pad}}}
"""

_EXCEPTIONS = r"""
@_ZTISt9exception = external constant ptr
@thrown_text = private constant [22 x i8] c"XLA FFI call failed: \00"
@unknown_text = private constant [18 x i8] c"unknown exception\00"
declare i32 @__gxx_personality_v0(...)
declare i32 @llvm.eh.typeid.for.p0(ptr)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()

define internal ptr @what({ ptr, i32 } %caught, i32 %wanted) {
  %object = extractvalue { ptr, i32 } %caught, 0
  %number = extractvalue { ptr, i32 } %caught, 1
  %exception = call ptr @__cxa_begin_catch(ptr %object)
  %known = icmp eq i32 %number, %wanted
  br i1 %known, label %ask, label %made
ask:
  %table = load ptr, ptr %exception
  %at.what = getelementptr ptr, ptr %table, i64 2
  %method = load ptr, ptr %at.what
  %said = call ptr %method(ptr %exception)
  br label %made
made:
  %text = phi ptr [ %said, %ask ], [ @unknown_text, %0 ]
  %error = call ptr @made(i64 2, ptr @thrown_text, i64 21, ptr %text)
  call void @__cxa_end_catch()
  ret ptr %error
}
"""


def host_ir(exceptions: bool) -> str:
    """The module. exceptions: catch those of C++, which needs libstdc++."""
    words = {"personality": "", "call": "call", "labels": "\n  br label %done", "pad": ""}
    if exceptions:
        words = {
            "personality": "personality ptr @__gxx_personality_v0 ",
            "call": "invoke",
            "labels": " to label %done unwind label %thrown",
        }
    returning, storing = "ret ptr %what", "store ptr %what, ptr %status\n  br label %done"
    parts = [_COMMON, CONTEXT_IR, _EXCEPTIONS if exceptions else ""]
    parts.append(_CALL.format(**words | ({"pad": _PAD.format(end=returning)} if exceptions else {})))
    pad = {"pad": _PAD.format(end="br label %look")} if exceptions else {}
    parts.append(_TYPED.format(place=OWNER, thrown=", [ %what, %thrown ]" if exceptions else "", **words | pad))
    pad = {"pad": _PAD.format(end=storing)} if exceptions else {}
    parts += [_OLD.format(name=n, arguments=a, **words | pad) for n, a in OLD.items()]
    return "".join([*parts, '!0 = !{!"branch_weights", i32 1000, i32 1}\n'])
