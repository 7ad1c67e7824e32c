"""A library's kernel over a field, in the buffers of a plan: one function of its operands, known by its name only.

Both stacks have the same code for it, so what it computes is not compared; where its operands come from, and where its
results go, is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...evaluator.elements import Elements
from ...evaluator.field_library import library_results
from ...planning.plan import KernelRequest
from .run import aligned, logical, physical


def call_library(request: KernelRequest, elements: Elements, buffers: Sequence[np.ndarray], junk: int) -> None:
    """Call a library's kernel with the bytes of its arguments. Its work space is junk afterwards."""
    i = request.instruction
    operands = [logical(buffers[n], o.shape) for n, o in zip(request.operands, i.operands, strict=True)]
    results = library_results(elements, i, operands)
    if request.scratch >= 0:
        buffers[request.scratch][:] = junk
    for number, x, shape in zip(request.results, results, request.result_shapes, strict=True):
        data = physical(x, shape)
        buffers[number][: data.size] = data


def run_library(
    request: KernelRequest, elements: Elements, inputs: Sequence[np.ndarray], junk: int
) -> list[np.ndarray]:
    """The results of a library's kernel on operands, in logical order."""
    buffers = [aligned(a.slice.size, junk) for a in request.arguments]
    for number, x, operand in zip(request.operands, inputs, request.instruction.operands, strict=True):
        data = physical(x, operand.shape)
        buffers[number][: data.size] = data
    call_library(request, elements, buffers, junk)
    return [logical(buffers[n], s) for n, s in zip(request.results, request.result_shapes, strict=True)]
