"""Small kernels in LLVM IR, and thunks that call them, on allocations that are NumPy arrays."""

from __future__ import annotations

import numpy as np

from ...planning.plan import BufferSlice
from ...thunks import KernelThunk, SequentialThunk, WhileThunk, read, write


def part(allocation, offset=0, size=4):
    return BufferSlice(allocation, offset, size)


KERNELS = """
define void @add(ptr %a, ptr %b, ptr %out) {
  %x = load i32, ptr %a
  %y = load i32, ptr %b
  %z = add i32 %x, %y
  store i32 %z, ptr %out
  ret void
}
define void @less(ptr %a, ptr %b, ptr %out) {
  %x = load i32, ptr %a
  %y = load i32, ptr %b
  %z = icmp slt i32 %x, %y
  %w = zext i1 %z to i8
  store i8 %w, ptr %out
  ret void
}
define void @zero(ptr %out) {
  store i32 0, ptr %out
  ret void
}
define void @yes(ptr %out) {
  store i8 1, ptr %out
  ret void
}
define void @nothing() {
  ret void
}
"""


def kernel(symbol, reads, writes):
    return KernelThunk(symbol, symbol, (*map(read, reads), *map(write, writes)))


def i32(*values):
    return np.array(values, np.int32)


def counted_loop(counter, one, limit, predicate, *body):
    """while counter < limit: counter += one; body"""
    condition = SequentialThunk((kernel("less", [counter, limit], [predicate]),))
    return WhileThunk("loop", condition, SequentialThunk((kernel("add", [counter, one], [counter]), *body)), predicate)
