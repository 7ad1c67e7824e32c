"""Split kernels: a module's bits on one thread and on several, and of a single range of steps."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ...backends.base import CompileOptions
from ...backends.host.executable import HostExecutable
from ...backends.host.memory import POOL
from ...codegen.options import EmitOptions
from ...codegen.threads import set_threads, threads
from ...differential.bounds import bounds_of
from ...evaluator.evaluator import evaluate
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from ...thunks import KernelThunk
from .check import disagreements
from .inputs import make_inputs


@contextmanager
def number_of_threads() -> Iterator[None]:
    """Set the number of threads back after the block."""
    before = threads()
    try:
        yield
    finally:
        set_threads(before)


def compiled(module: Module, stack: str) -> HostExecutable:
    return compile_module(module, Flags.parse(stack), CompileOptions(emit=replace(EmitOptions.host(), ranges=True)))


def split_kernels(executable: HostExecutable) -> list[str]:
    return [t.symbol for t in executable.thunks.walk() if isinstance(t, KernelThunk) and t.split is not None]


def check_threads(module: Module, stack: str, counts: tuple[int, ...] = (2, 3)) -> HostExecutable:
    """Run a module on one thread and on several; compare with the evaluator too."""
    executable, inputs = compiled(module, stack), make_inputs(module)
    set_threads(1)
    alone = executable.execute(inputs)
    for count in counts:
        set_threads(count)
        together = executable.execute(inputs)
        assert [x.tobytes() for x in alone] == [x.tobytes() for x in together]
    expected = evaluate(module, inputs)
    wrong = disagreements({"evaluator": expected, stack: alone}, "evaluator", stack, bounds_of(module))
    assert not wrong
    return executable


def check_ranges_alone(executable: HostExecutable) -> None:
    """Call each split kernel for its second chunk only: it writes no element of other steps."""
    splits = {t.symbol: t.split for t in executable.thunks.walk() if isinstance(t, KernelThunk) and t.split is not None}
    for request in executable.plan.kernels:
        split = splits.get(request.name)
        if split is None or split.chunk >= split.extent:
            continue
        blocks = [POOL.allocate(a.slice.size) for a in request.arguments]
        for block in blocks:
            block[:] = 1
        before = [block.copy() for block in blocks]
        begin, end = split.chunk, min(2 * split.chunk, split.extent)
        kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(blocks), ctypes.c_int64, ctypes.c_int64)
        kernel(executable.code.address(request.name))(*(b.ctypes.data for b in blocks), begin, end)
        for number, shape in zip(request.results, request.result_shapes, strict=True):
            changed = blocks[number] != before[number]
            elements = changed.reshape(shape.size, -1).any(axis=1)
            order = tuple(reversed(shape.minor_to_major))
            places = elements.reshape([shape.dims[d] for d in order]).transpose(np.argsort(order))
            dimensions = request.partition.dimensions
            others = tuple(d for d in range(shape.rank) if d not in dimensions)
            by_step = places.transpose(*dimensions, *others).reshape(split.extent, -1).any(axis=1)
            assert not by_step[:begin].any() and not by_step[end:].any()
