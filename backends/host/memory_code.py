"""LLVM IR of what memory_checks.py does between kernels: fill memory with a byte, and note that bytes differ.

All parameters are pointers, as those of kernels are; sizes and bytes are passed as such. A difference is noted in a
word, which becomes 1.
"""

from __future__ import annotations

import functools
import sys

from ...codegen.load import LoadedCode, load
from ...codegen.runtime import runtime_object

_CODE = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @testbed_junk(ptr %data, ptr %bytes, ptr %junk) {
  %size = ptrtoint ptr %bytes to i64
  %byte = ptrtoint ptr %junk to i8
  call void @llvm.memset.p0.i64(ptr %data, i8 %byte, i64 %size, i1 false)
  ret void
}

define void @testbed_stack(ptr %junk) noinline {
  %frame = alloca [STACK x i8]
  %byte = ptrtoint ptr %junk to i8
  call void @llvm.memset.p0.i64(ptr %frame, i8 %byte, i64 STACK, i1 true)
  ret void
}

define void @testbed_kept(ptr %data, ptr %bytes, ptr %junk, ptr %word) {
entry:
  %size = ptrtoint ptr %bytes to i64
  %byte = ptrtoint ptr %junk to i8
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %sum = phi i8 [ 0, %entry ], [ %more, %body ]
  %goes_on = icmp ult i64 %i, %size
  br i1 %goes_on, label %body, label %done
body:
  %at = getelementptr i8, ptr %data, i64 %i
  %here = load i8, ptr %at
  %differs = xor i8 %here, %byte
  %more = or i8 %sum, %differs
  %next = add nuw i64 %i, 1
  br label %head
done:
  %same = icmp eq i8 %sum, 0
  br i1 %same, label %end, label %note
note:
  store i64 1, ptr %word
  br label %end
end:
  ret void
}

define void @testbed_equal(ptr %left, ptr %right, ptr %bytes, ptr %word) {
entry:
  %size = ptrtoint ptr %bytes to i64
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %sum = phi i8 [ 0, %entry ], [ %more, %body ]
  %goes_on = icmp ult i64 %i, %size
  br i1 %goes_on, label %body, label %done
body:
  %left.at = getelementptr i8, ptr %left, i64 %i
  %right.at = getelementptr i8, ptr %right, i64 %i
  %l = load i8, ptr %left.at
  %r = load i8, ptr %right.at
  %differs = xor i8 %l, %r
  %more = or i8 %sum, %differs
  %next = add nuw i64 %i, 1
  br label %head
done:
  %same = icmp eq i8 %sum, 0
  br i1 %same, label %end, label %note
note:
  store i64 1, ptr %word
  br label %end
end:
  ret void
}
"""


STACK_BYTES = 1 << 14
"""Bytes of the call stack that testbed_stack fills: those in which the next function has its variables."""


def _text() -> str:
    return _CODE.replace("STACK", str(STACK_BYTES))


@functools.cache
def _loaded() -> LoadedCode:
    return load([runtime_object(f"{sys.platform} {_text()}", _text)])


def address_of(function: str) -> int:
    """The address of testbed_junk(data, bytes, junk), testbed_stack(junk), testbed_kept(data, bytes, junk, word), which
    notes a byte that is not the junk, or testbed_equal(left, right, bytes, word).
    """
    return _loaded().address(function)
