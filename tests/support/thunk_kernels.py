"""Small kernels in LLVM IR, and thunks that call them, on allocations that are NumPy arrays."""

from __future__ import annotations

import numpy as np

from ...codegen.load import load
from ...codegen.options import EmitOptions
from ...planning.plan import BufferSlice
from ...thunks import KernelThunk, SequentialThunk, WhileThunk, read, write
from ...thunks.executor import Executor
from ...thunks.host_build import Inlining, build_host, module_of
from ...thunks.host_program import HostProgram


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


INLINED = {"inlined": KERNELS, "partly inlined": KERNELS[: KERNELS.index("define void @less")]}
"""Kind of host program → the kernels that are a part of it."""

KINDS = ("interpreted", "compiled", "grouped", *INLINED)
"""The kinds of host programs; grouped: compiled, with kernels known to be so short that many run between two looks at
the stop word, as they are where kernels are inlined, too.
"""


def executor_of(kind, code, root, variable, flush=True, **options):
    """An executor of a kind in KINDS, for kernels in `code`. options: further ones of Executor."""
    seconds = dict.fromkeys(code.addresses, 1.0 if kind == "compiled" else 1e-9)
    emit = EmitOptions.host(strict=not flush)
    program = None if kind == "interpreted" else compiled(root, code, emit, seconds, INLINED.get(kind))
    return Executor(root, code.address, variable, flush_subnormals=flush, program=program, **options)


def compiled(root, code, options, seconds=None, kernels=None):
    """The host program of thunks, linked with the kernels in `code`. kernels: LLVM IR of those that are inlined."""
    module = module_of(root, options, seconds)
    if kernels is None:
        built = build_host(module, options, None)
    else:
        built = Inlining(root, seconds or {}, module, (kernels,)).build(options, None)
    addresses = {name: code.address(name) for name in module.symbols}
    return HostProgram(module, load([built.data], addresses))
