"""Runs a kernel's code over a field, in memory of its own: what was not written is junk, another on each stack."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...codegen.field_code import build
from ...codegen.load import LoadedCode
from ...codegen.options import EmitOptions, EmittedModule
from ...hlo.shapes import Shape
from ...planning.plan import KernelRequest

Emit = Callable[[Sequence[KernelRequest], EmitOptions], EmittedModule]

ALIGNMENT = 64
JUNK = {"legacy": 0x3D, "mlir": 0x2B}
"""Bytes of which a stack's memory consists before it is written."""


@dataclass(frozen=True)
class Built:
    """A stack's kernel over a field, in memory. junk: the byte of which memory consists before it is written. forms:
    those that the stack chose.
    """

    request: KernelRequest
    code: LoadedCode
    is_ranged: bool
    junk: int
    forms: tuple[str, ...] = ()

    @staticmethod
    def of(request: KernelRequest, emit: Emit, options: EmitOptions, junk: int) -> Built:
        """Raises UnsupportedError, or CodegenError for code that has no meaning over a field."""
        assert options.exact is not None
        emitted = emit([request], options)
        code = build(emitted, options.exact, options.target, junk)
        chosen = emitted.forms.get(request.name)
        return Built(request, code, request.name in emitted.ranged, junk, chosen.names if chosen else ())


def run_kernel(kernel: Built, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a kernel, in logical order. A kernel that may be split runs range by range, the last one first."""
    request, junk = kernel.request, kernel.junk
    buffers = [aligned(a.slice.size, junk) for a in request.arguments]
    for number, x, operand in zip(request.operands, inputs, request.instruction.operands, strict=True):
        data = physical(x, operand.shape)
        buffers[number][: data.size] = data
    call(kernel, [b.ctypes.data for b in buffers])
    shapes = request.result_shapes
    return [logical(buffers[n], s) for n, s in zip(request.results, shapes, strict=True)]


def call(kernel: Built, pointers: Sequence[int]) -> None:
    """Call a kernel with the addresses of its arguments."""
    address, types = kernel.code.address(kernel.request.name), [ctypes.c_void_p] * len(pointers)
    if not kernel.is_ranged:
        ctypes.CFUNCTYPE(None, *types)(address)(*pointers)
        return
    function = ctypes.CFUNCTYPE(None, *types, ctypes.c_int64, ctypes.c_int64)(address)
    for begin, end in reversed(_ranges(kernel.request)):
        function(*pointers, begin, end)


def _ranges(request: KernelRequest) -> list[tuple[int, int]]:
    """Two ranges, of about a third and two thirds, if there are enough steps."""
    partition = request.partition
    assert partition is not None
    cut = partition.extent // 3 // partition.least * partition.least
    return [(0, cut), (cut, partition.extent)] if cut else [(0, partition.extent)]


def aligned(size: int, junk: int) -> np.ndarray:
    whole = np.full(size + 2 * ALIGNMENT, junk, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + max(size, 1)]


def physical(x: np.ndarray, shape: Shape) -> np.ndarray:
    """The bytes of an array in the layout of its shape."""
    moved = np.ascontiguousarray(x.transpose(tuple(reversed(shape.minor_to_major))))
    return moved.reshape(-1).view(np.uint8)


def logical(memory: np.ndarray, shape: Shape) -> np.ndarray:
    """The array in a buffer."""
    order = tuple(reversed(shape.minor_to_major))
    flat = np.frombuffer(memory[: shape.bytes].tobytes(), shape.dtype.numpy)
    return flat.reshape([shape.dims[d] for d in order]).transpose(np.argsort(order) if order else ())
