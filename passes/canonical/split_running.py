"""A long running sum becomes running sums of its parts, which threads may share, and what the parts before each add.

The parts depend on the shape only, so no result depends on the number of threads (docs/adr/0033-threads.md). Of one run
each element waits for the one before it; runs of parts advance side by side, so that one thread gains, too.
"""

from __future__ import annotations

import math

from ...hlo.analysis.windows import running
from ...hlo.attributes import Window, WindowDim
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder, identity_of, sole_binary

LONG = 1 << 19
"""Elements from which a run is divided."""

PARTS = 128
"""Parts to aim at: enough for chunks of several parts on any number of threads."""

LEAST_PARTS = 16


def running_in_parts(i: Instruction, b: Builder) -> Instruction | None:
    """The running reduction in parts; None if it is short, or there are several, or they are not along memory.

    Running sums of f16 and bf16 stay as they are: each partial result is rounded.
    """
    if len(i.operands) != 2 or not i.shape.is_row_major or not i.operands[0].shape.is_row_major:
        return None
    run, x, init, region = running(i), i.operands[0], i.operands[1], i.attributes["to_apply"]
    dims, dtype, op = x.shape.dims, x.shape.dtype, sole_binary(region)
    if run is None or op is None or i.shape.dims != dims or math.prod(dims) != dims[run.dimension]:
        return None
    neutral = identity_of(op, dtype)
    count = _parts(dims[run.dimension])
    if neutral is None or count is None or (dtype.is_float and dtype.bits < 32):
        return None
    start = b.constant(neutral, dtype)
    within = _run(b, b.reshape(x, (count, dims[run.dimension] // count)), start, region, run.backward)
    length = within.shape.dims[1]
    totals = b.reshape(
        b.slice_in(within, 1, 0 if run.backward else length - 1, 1 if run.backward else length), (count,)
    )
    until = _run(b, totals, init, region, run.backward)
    first = b.reshape(init, (1,))
    if run.backward:
        before = b.concatenate([b.slice_in(until, 0, 1, count), first], 0)
    else:
        before = b.concatenate([first, b.slice_in(until, 0, 0, count - 1)], 0)
    return b.reshape(b.binary(op, b.broadcast(before, within.shape.dims, (0,)), within), dims)


def _parts(length: int) -> int | None:
    """Into how many parts of equal length a run is divided; None if it stays whole."""
    even = [n for n in range(LEAST_PARTS, 2 * PARTS + 1) if length % n == 0]
    return min(even, key=lambda n: abs(n - PARTS), default=None) if length >= LONG else None


def _run(b: Builder, x: Instruction, start: Instruction, region: Computation, backward: bool) -> Instruction:
    """The running reduction along the last dimension."""
    size = x.shape.dims[-1]
    last = WindowDim(size, pad_high=size - 1) if backward else WindowDim(size, pad_low=size - 1)
    window = Window((*[WindowDim(1)] * (x.shape.rank - 1), last))
    shape = array(x.shape.dtype, *x.shape.dims)
    return b.op(Op.REDUCE_WINDOW, shape, x, start, window=window, to_apply=region)
