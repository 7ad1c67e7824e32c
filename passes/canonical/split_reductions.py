"""Large reductions to a few numbers become two: to some PARTS numbers each, which threads may share, and of these.

The parts depend on the shape only, so no result depends on the number of threads (docs/adr/0033-threads.md).
"""

from __future__ import annotations

import math
from itertools import groupby

from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder, identity_of, sole_binary
from ..expansion import expand_ops

LARGE = 1 << 19
"""Elements from which a reduction is divided: it takes some 30 µs, a kernel more and its call less than one."""

FEW, FEW_COLUMNS = 16, 1023
"""Results up to which a reduction is divided; more are shared as they are. The second is for those that keep the
fastest dimension: threads that share columns all walk over all rows, which only pays for blocks of hundreds of columns.
"""

PARTS = 128
"""Parts to aim at: enough for chunks of several rows on any number of threads."""

LEAST_PARTS, LEAST_IN_PART = 16, 32
"""The fewest parts, and the fewest elements that make a number of one."""


def split_reductions(module: Module) -> Module:
    """Divide large reductions outside kernels."""
    return expand_ops(module, {Op.REDUCE: in_parts})


def in_parts(i: Instruction, b: Builder) -> Instruction | None:
    """The reduction of partial reductions; None if it is small, or its region is not one op with a neutral element."""
    op = sole_binary(i.attributes["to_apply"]) if len(i.operands) == 2 else None
    x, start = i.operands[0], i.operands[1]
    if op is None or x.shape.size < LARGE or not x.shape.is_row_major or rounds(op, i):
        return None
    neutral = identity_of(op, i.shape.dtype)
    dims = x.shape.dims
    fastest = max(d for d, size in enumerate(dims) if size != 1)
    if i.shape.size > (FEW if fastest in i.dimensions else FEW_COLUMNS):
        return None
    runs = [list(run) for reduced, run in groupby(range(len(dims)), lambda d: d in i.dimensions) if reduced]
    run = max(runs, key=lambda run: math.prod(dims[d] for d in run))
    count = math.prod(dims[d] for d in run)
    most = min(2 * PARTS, x.shape.size // (LEAST_IN_PART * i.shape.size))
    even = [n for n in range(LEAST_PARTS, most + 1) if count % n == 0]
    parts = min(even, key=lambda n: abs(n - PARTS), default=None)
    if neutral is None or parts is None:
        return None
    first = run[0]
    shape = array(x.shape.dtype, *dims[:first], parts, count // parts, *dims[run[-1] + 1 :])
    others = [d if d < first else d - len(run) + 2 for d in i.dimensions if d not in run]
    inner = [*others, first + 1]
    kept = [n for d, n in enumerate(shape.dims) if d not in inner]
    place = sum(d not in i.dimensions for d in range(first))
    partial = b.op(
        Op.REDUCE,
        array(i.shape.dtype, *kept),
        b.op(Op.RESHAPE, shape, x),
        b.constant(neutral, i.shape.dtype),
        dimensions=tuple(sorted(inner)),
        to_apply=i.attributes["to_apply"],
    )
    return b.op(Op.REDUCE, i.shape, partial, start, dimensions=(place,), to_apply=i.attributes["to_apply"])


def rounds(op: Op, i: Instruction) -> bool:
    """Whether a narrow sum would be rounded twice."""
    return i.shape.dtype.is_float and i.shape.dtype.bits < 32 and op in (Op.ADD, Op.MULTIPLY)
