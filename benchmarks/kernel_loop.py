"""A straight program's kernels in a native loop: their time without any call from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from ..backends.host.executable import HostExecutable
from ..codegen.load import LoadedCode, load
from ..codegen.optimize import compile_object
from ..codegen.options import EmitOptions
from ..planning.allocation import AllocationKind, BufferSlice
from ..planning.plan import CopyStep, KernelStep
from .contestants import aligned

Repeat = Callable[[int], object]
"""Runs the kernels this many times."""


def kernel_loop(executable: HostExecutable, inputs: Sequence[np.ndarray]) -> Repeat | None:
    """The loop; None for a program with control flow. inputs are read in place and never written."""
    steps = executable.plan.steps
    memory = _memory(executable, inputs)
    splits = {kernel.symbol: kernel.split for kernel in executable.image.kernels}
    table: list[int] = []
    body: list[str] = []

    def pointer(piece: BufferSlice) -> str:
        table.append(memory[piece.allocation].ctypes.data + piece.offset)
        n = len(table) - 1
        body.append(f"  %s{n} = getelementptr ptr, ptr %table, i64 {n}\n  %p{n} = load ptr, ptr %s{n}, align 8")
        return f"ptr %p{n}"

    names: dict[str, int] = {}
    for step in steps:
        if isinstance(step, CopyStep):
            places = f"{pointer(step.destination)}, {pointer(step.source)}, i64 {step.source.size}, i1 false"
            body.append(f"  call void @llvm.memcpy.p0.p0.i64({places})")
            continue
        if not isinstance(step, KernelStep):
            return None
        arguments = [pointer(piece) for piece in step.arguments]
        if splits.get(step.kernel.name) is not None and step.kernel.partition is not None:
            arguments += ["i64 0", f"i64 {step.kernel.partition.extent}"]
        names[step.kernel.name] = len(arguments)
        body.append(f'  call void @"{step.kernel.name}"({", ".join(arguments)})')
        types = ", ".join(a.split()[0] for a in arguments)
        body[-1] += f" ; {types}"
    code = _compiled(body, executable)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(code.address("testbed_repeat"))
    addresses = np.array(table, np.uint64)
    held = (executable, memory, code, addresses, run)
    return lambda count: held[4](count, held[3].ctypes.data)


def _compiled(body: Sequence[str], executable: HostExecutable) -> LoadedCode:
    calls = [line.rpartition(" ; ") for line in body if 'call void @"' in line]
    declared = {line.split('"')[1]: types for line, _, types in calls}
    lines = [f'declare void @"{name}"({types})' for name, types in declared.items()]
    lines += [
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "define void @testbed_repeat(i64 %n, ptr %table) {",
    ]
    lines += ["entry:", "  br label %loop", "loop:", "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]", *body]
    lines += ["  %j = add i64 %i, 1", "  %more = icmp slt i64 %j, %n", "  br i1 %more, label %loop, label %end"]
    text = "\n".join([*lines, "end:", "  ret void", "}", ""])
    return load([compile_object(text, EmitOptions.host())], executable.code.addresses)


def _memory(executable: HostExecutable, inputs: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """The bytes of each allocation: copies of the inputs and constants, and new memory."""
    found: dict[int, np.ndarray] = {}
    for a in executable.image.allocations:
        if a.kind is AllocationKind.PARAMETER:
            found[a.index] = aligned(_physical(inputs[a.number], executable, a.number))
        elif a.kind is AllocationKind.CONSTANT:
            found[a.index] = aligned(np.frombuffer(executable.image.constants[a.index], np.uint8))
        else:
            found[a.index] = aligned(np.zeros(max(a.size, 1), np.uint8))
    return found


def _physical(array: np.ndarray, executable: HostExecutable, number: int) -> np.ndarray:
    """An input in the order of its parameter's layout."""
    order = executable.inputs[number].order
    return np.ascontiguousarray(array if order is None else array.transpose(order))
