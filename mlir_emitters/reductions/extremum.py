"""A maximum or minimum over many floats in three accumulators, so that LLVM vectorises it.

arith.maximumf takes six dependent instructions on x86, because of NaN and of the two zeros. Here `best` ignores both,
`signs` is the bitwise AND of all values (OR for a minimum), whose sign bit is that of a zero result, and `invalid`
notes whether there was a NaN. Columns, of which several rows are combined at a time, have the first two only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..core.builder import Builder, Value
from ..core.elements import ROUNDED
from ..core.graph import Node
from ..loops.reduced import only_op

MINIMUM_TRIPLE_ELEMENTS = 16
"""Elements per result from which three accumulators pay off: each saves 1 or 2 instructions, `close_three` costs 10."""

COMBINE = {Op.MAXIMUM: ("arith.maxnumf", "andi"), Op.MINIMUM: ("arith.minnumf", "ori")}


def extremum_of(node: Node) -> Op | None:
    """The opcode of a reduction whose computation is one maximum or minimum of its parameters; None for others."""
    op = only_op(node)
    return op if op in COMBINE else None


def takes_three(node: Node) -> bool:
    """Whether a reduction is a long maximum or minimum of floats."""
    dtype, source = node.outputs[0].dtype, node.inputs[0]
    count = math.prod(source.dims[d] for d in node.attributes["dimensions"])
    return (
        count >= MINIMUM_TRIPLE_ELEMENTS
        and (dtype in (DType.F32, DType.F64) or dtype in ROUNDED)
        and extremum_of(node) is not None
    )


def open_three(b: Builder, first: Value) -> list[Value]:
    """The accumulators (best, signs, invalid) of a first value."""
    return [first, b.bitcast(first, _integer(b, first)), b.is_nan(first)]


def advance_three(b: Builder, op: Op, accumulators: Sequence[Value], value: Value) -> list[Value]:
    """The accumulators after one more value. `best` is poison after a NaN."""
    best, signs, invalid = accumulators
    number, join = COMBINE[op]
    return [
        b.op(number, best, value, attributes=b.types.no_nan_no_zero),
        b.binary(join, signs, b.bitcast(value, signs.type)),
        b.binary("ori", invalid, b.is_nan(value)),
    ]


def merge_three(b: Builder, op: Op, one: Sequence[Value], other: Sequence[Value]) -> list[Value]:
    """The accumulators of the values of both."""
    number, join = COMBINE[op]
    best = b.op(number, one[0], other[0], attributes=b.types.no_nan_no_zero)
    return [best, b.binary(join, one[1], other[1]), b.binary("ori", one[2], other[2])]


def close_three(b: Builder, accumulators: Sequence[Value]) -> Value:
    """The result of the accumulators."""
    best, signs, invalid = accumulators
    return b.select(invalid, b.like(math.nan, best), _with_sign(b, best, signs))


def advance_column(b: Builder, op: Op, accumulators: Sequence[Value], rows: Sequence[Value]) -> list[Value]:
    """The accumulators (best, signs) of a column after elements of several rows. `best` is NaN from the first one on,
    as nothing is greater; each test for NaN is of two rows.
    """
    best, signs = accumulators
    order, (_, join) = "ogt" if op is Op.MAXIMUM else "olt", COMBINE[op]
    top, *others = rows
    for value in others:
        top = b.select(b.compare(order, value, top), value, top)
    best = b.select(b.compare(order, top, best), top, best)
    tests = [b.compare("uno", x, y) for x, y in zip(rows[::2], [*rows[1::2], rows[-1]], strict=False)]
    invalid = functools.reduce(lambda x, y: b.binary("ori", x, y), tests)
    for value in rows:
        signs = b.binary(join, signs, b.bitcast(value, signs.type))
    return [b.select(invalid, b.like(math.nan, best), best), signs]


def close_column(b: Builder, accumulators: Sequence[Value]) -> Value:
    """The result of a column's accumulators."""
    return _with_sign(b, *accumulators)


def _with_sign(b: Builder, best: Value, signs: Value) -> Value:
    """`best`, whose sign, where it is zero, is in `signs`."""
    magnitude = b.binary("shli", b.bitcast(best, signs.type), 1)
    sign = b.binary("andi", signs, 1 << (signs.type.width - 1))
    zero = b.compare_integers("eq", magnitude, b.like(0, magnitude))
    return b.select(zero, b.bitcast(sign, best.type), best)


def _integer(b: Builder, value: Value):
    return b.types.i64 if value.type == b.types.f64 else b.types.i32
