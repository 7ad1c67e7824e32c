"""A program on one stack, ready to be timed: compiled, inputs in place, result arrays reused between runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.xla import XlaExecutable, parse_xla_flags, start_client
from ..formats.program import Program
from ..migration.stacks import prepare

if TYPE_CHECKING:
    from ..backends.host.executable import HostExecutable


@dataclass(frozen=True)
class Contestant:
    """run: performs one execution and returns its results; on our stacks they are the same arrays each time.

    stages: seconds of the compilation by stage, where they are known; those of parallel threads add up.
    """

    run: Callable[[], Sequence[Any]]
    compile_seconds: float
    stages: Mapping[str, float] = field(default_factory=dict)


def contestant(
    stack: str,
    program: Program,
    inputs: Sequence[np.ndarray],
    xla_flags: str | None = None,
    host_program: str = "auto",
) -> Contestant:
    """Compile a program for a stack. `run` of the result performs one execution; it reuses the result arrays.

    host_program: how our stacks call kernels, as in CompileOptions.
    """
    if stack == "xla":
        return _xla(program, inputs, xla_flags)
    inputs = [aligned(x) for x in inputs]
    prepared = prepare(stack, program, host_program=host_program)
    if prepared.executable is None:
        return Contestant(lambda: prepared.run(inputs), prepared.seconds)
    return Contestant(recycled(prepared.executable, inputs), prepared.seconds, dict(prepared.executable.timings))


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 64 bytes. NumPy's own lie at multiples of 16, by chance at more, and loads that cross
    cache lines take up to twice as long: two copies would not be alike. XLA's kernels take multiples of 64 only.
    Dimensions keep their order in memory.
    """
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    order = sorted(range(array.ndim), key=lambda d: -abs(array.strides[d]))
    flat = room[start : start + array.nbytes].view(array.dtype)
    copy = flat.reshape([array.shape[d] for d in order]).transpose(np.argsort(order))
    copy[...] = array
    return copy


def recycled(executable: HostExecutable, inputs: Sequence[np.ndarray]) -> Callable[[], Sequence[np.ndarray]]:
    """A run that writes its results into the same arrays each time."""
    results = executable.execute(inputs)
    bounds = [leaf.shape.dims for leaf in executable.outputs]  # a dynamic result may be smaller than these
    outputs = [r if r.shape == bound else None for r, bound in zip(results, bounds, strict=True)]
    return lambda: executable.execute(inputs, outputs=outputs)


def _xla(program: Program, inputs: Sequence[np.ndarray], flags: str | None) -> Contestant:
    """XLA in this process, where the others run, too; first in its child, because some modules end its process."""
    prepare("xla", program, flags).run(inputs)
    executable, seconds = xla_in_this_process(program, flags)
    arrays = executable.put(inputs)
    return Contestant(lambda: executable.run(arrays), seconds)


def xla_in_this_process(program: Program, flags: str | None) -> tuple[XlaExecutable, float]:
    """A program compiled by XLA here, and the seconds that it took."""
    start_client()
    start = time.perf_counter()
    executable = XlaExecutable(program.text_for_xla, parse_xla_flags(flags))
    return executable, time.perf_counter() - start
