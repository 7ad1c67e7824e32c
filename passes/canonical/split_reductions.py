"""Large reductions to a few numbers become two: to some PARTS numbers each, which threads may share, and of these.

So do long running sums (split_running.py) and deep products (split_dots.py). An arg max along rows is found by value
(places.py), or is of lanes first. The parts depend on the shape only, so no result depends on the number of
threads (docs/adr/0033-threads.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, array, tuple_shape
from ..building import Builder, identity_of, sole_binary
from ..expansion import expand_ops
from .places import arg_extremum, counts, goes_by_value, value_then_place
from .split_dots import product_in_parts
from .split_running import running_in_parts

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

LEAST_BY_VALUE = 1 << 10
"""Minimum elements for which the place of an extremum is found by its value: four microseconds, one by one."""

LEAST_PLACED = 1 << 14
"""Minimum elements for which an arg max has a place in each lane of its rows."""

MOST_LANES = 32
"""Lanes of a row at most, and elements of each at least: the lanes' places are compared one by one in the end."""

NARROW_COLUMNS, EIGHT = 16, 8
"""Columns below which, unless they are a multiple of the second, several rows are one line of a part, each place of
which is reduced by itself: LLVM fills no vectors with so few.
"""

LONGEST_LINE = 128
"""Elements of a line at most: they fit in registers."""

EVEN = 1 << 8
"""What a length that has no even parts is cut to a multiple of; the rest is reduced by itself."""

SHORT_ROW = 16
"""Minimum elements of a row whose dimensions stay apart where elements depend on their places."""

LEAST_LINES = 8
"""Lines of a part, at least."""

NARROW = frozenset({DType.F16, DType.BF16})
"""Types whose sums and products are of f32 and round once."""


def split_reductions(module: Module) -> Module:
    """Divide large reductions, long running sums and deep products outside kernels."""
    return expand_ops(module, {Op.DOT: product_in_parts, Op.REDUCE: in_parts, Op.REDUCE_WINDOW: running_in_parts})


def in_parts(i: Instruction, b: Builder) -> Instruction | None:
    """The reduction of partial reductions; None if it is small, or its region is none that starts several times.

    Sums of f16 and bf16 are of f32 inside, so that they round once.
    """
    count = len(i.operands) // 2
    arrays, starts, region = i.operands[:count], i.operands[count:], i.attributes["to_apply"]
    if not all(x.shape.is_row_major for x in arrays):
        return None
    dims, dtype, size = arrays[0].shape.dims, arrays[0].shape.dtype, arrays[0].shape.size
    found = division(dims, i.dimensions, not any(map(_has_places, arrays))) if size >= LARGE else None
    if count == 2 and size >= LEAST_BY_VALUE and arg_extremum(region):
        divided: Division = found or (dims, tuple(i.dimensions), None)
        in_order = counts(arrays[1], i.dimensions)
        if in_order and goes_by_value(arrays, starts, region, *divided[:2]):
            return _by_value(b, arrays[0], starts, region, divided, i.shape)
        if size < LEAST_PLACED:
            return None
        lanes = lanes_of(*divided[:2]) if in_order else 1
        if found or lanes > 1:
            return _twice(b, arrays, starts, starts, region, divided, i.shape, lanes)
        return _in_two(i, b, starts) if size >= LARGE or in_order else None
    op = sole_binary(region) if count == 1 else None
    neutral = None if op is None else identity_of(op, dtype)
    if neutral is None or size < LARGE:
        return None
    if found is None:
        exact = dtype.is_integer or op not in (Op.ADD, Op.MULTIPLY)
        return _in_two(i, b, [b.constant(neutral, dtype)]) if exact else None
    if op not in (Op.ADD, Op.MULTIPLY) or not dtype.is_float or dtype.bits >= 32:
        return _twice(b, arrays, starts, [b.constant(neutral, dtype)], region, found, i.shape, _rows(arrays[0], found))
    if dtype not in NARROW:
        return None
    region = b.region("wide", [array(DType.F32)] * 2, lambda b, p: b.binary(op, p[0], p[1]))
    values, start = b.convert(arrays[0], DType.F32), b.convert(starts[0], DType.F32)
    shape = array(DType.F32, *i.shape.dims)
    firsts = [b.constant(neutral, DType.F32)]
    return b.convert(_twice(b, [values], [start], firsts, region, found, shape, _rows(values, found)), dtype)


def _twice(
    b: Builder,
    arrays: Sequence[Instruction],
    starts: Sequence[Instruction],
    firsts: Sequence[Instruction],
    region: Computation,
    divided: Division,
    result: Shape,
    rows: int = 1,
) -> Instruction:
    """The partial reductions, which begin with `firsts`, and the reduction of these, which begins with `starts`.

    rows: how many neighbours along the last reduced dimension are one line, each place of which is reduced by itself.
    """
    dims, reduced, place = divided
    columns, last = math.prod(dims[reduced[-1] + 1 :]), reduced[-1]
    lines = dims if rows == 1 else (*dims[:last], dims[last] // rows, rows * columns)
    kept = [n for d, n in enumerate(lines) if d not in reduced]
    shapes = [array(x.shape.dtype, *kept) for x in arrays]
    parts = [b.op(Op.RESHAPE, array(x.shape.dtype, *lines), x) for x in arrays]
    shape = shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)
    partial = b.op(Op.REDUCE, shape, *parts, *firsts, dimensions=reduced, to_apply=region)
    values = [partial] if len(shapes) == 1 else b.elements(partial)
    over = [] if place is None else [place]
    if rows > 1:
        values = [b.reshape(x, (*kept[:-1], rows, *dims[last + 1 :])) for x in values]
        over.append(len(kept) - 1)
    if len(arrays) > 1 and rows > 1 and arrays[0].shape.dtype.is_float:
        region = _by_number(b, region)
    return b.op(Op.REDUCE, result, *values, *starts, dimensions=tuple(over), to_apply=region)


def _by_value(
    b: Builder, x: Instruction, starts: Sequence[Instruction], region: Computation, divided: Division, result: Shape
) -> Instruction:
    """An arg max whose places are found by value; in parts, if there are few rows."""
    dims, (d,), parts = divided
    if parts is None:
        return b.tuple(value_then_place(b, x, starts, region, d, None))
    kept = [n for k, n in enumerate(dims) if k != d]
    number = starts[1].shape.dtype
    offsets = b.binary(Op.MULTIPLY, b.iota(number, kept, parts), dims[d])
    partial = value_then_place(b, b.op(Op.RESHAPE, array(x.shape.dtype, *dims), x), starts, region, d, offsets)
    return b.op(Op.REDUCE, result, *partial, *starts, dimensions=(parts,), to_apply=region)


def _in_two(i: Instruction, b: Builder, firsts: Sequence[Instruction]) -> Instruction | None:
    """The reduction of a length that has even parts, and of what is left behind it, which begins with `firsts`; None if
    that does not help either.
    """
    count = len(i.operands) // 2
    arrays, d = i.operands[:count], min(i.dimensions)
    dims = arrays[0].shape.dims
    length = dims[d] - dims[d] % EVEN
    if len(i.dimensions) != 1 or length in (0, dims[d]):
        return None

    def part(first: int, last: int, starts: Sequence[Instruction]) -> Instruction:
        parts = [_range(x, d, first, last, b) for x in arrays]
        return i.replace(name=b.names.fresh(i.name), operands=(*parts, *starts))

    head = in_parts(part(0, length, i.operands[count:]), b)
    if head is None:
        return None
    both = [[x] if count == 1 else b.elements(x) for x in (head, b.add(part(length, dims[d], firsts)))]
    joined = [b.concatenate([b.reshape(v, (1, *v.shape.dims)) for v in pair], 0) for pair in zip(*both, strict=True)]
    return b.op(Op.REDUCE, i.shape, *joined, *firsts, dimensions=(0,), to_apply=i.attributes["to_apply"])


def _range(x: Instruction, d: int, first: int, last: int, b: Builder) -> Instruction:
    """A range of a dimension. Numbers that count from 0 are an iota again."""
    if first == 0 and counts(x, (d,)):
        return b.iota(x.shape.dtype, (*x.shape.dims[:d], last, *x.shape.dims[d + 1 :]), d)
    return b.slice_in(x, d, first, last)


def _rows(x: Instruction, divided: Division) -> int:
    rows = rows_of_line(*divided[:2])
    return rows if rows > 1 and _is_in_order(x) else 1


def _is_in_order(x: Instruction) -> bool:
    """Whether all that an array is made of in one kernel is read in its memory order, whatever its shape."""
    stack, seen = [x], {x}
    while stack:
        i = stack.pop()
        if i.shape.rank and not (i.opcode in _IN_ORDER or i.opcode in ELEMENTWISE):
            if i.opcode is not Op.BROADCAST or i.operands[0].shape.size != 1:
                return False
            continue
        new = {*i.operands} - seen if i.opcode is not Op.PARAMETER else set()
        seen |= new
        stack += new
    return True


_IN_ORDER = frozenset({Op.PARAMETER, Op.RESHAPE})


def rows_of_line(dims: Sequence[int], reduced: Sequence[int]) -> int:
    """How many neighbours along the last reduced dimension are one line with their columns; 1 for none."""
    last = reduced[-1]
    columns, count = math.prod(dims[last + 1 :]), dims[last]
    if not 1 < columns < NARROW_COLUMNS or columns % EIGHT == 0:
        return 1
    fits = [n for n in range(2, LONGEST_LINE // columns + 1) if count % n == 0 and count // n >= LEAST_LINES]
    return max(fits, key=lambda n: (math.gcd(n * columns, 2 * EIGHT), n), default=1)


def lanes_of(dims: Sequence[int], reduced: Sequence[int]) -> int:
    """Into how many neighbours a row is divided for the place of its extremum, each of which has one of its own; 1 for
    columns. Along a row LLVM makes no vectors of places.
    """
    length = dims[reduced[-1]]
    if math.prod(dims[reduced[-1] + 1 :]) > 1:
        return 1
    fits = [n for n in range(8, MOST_LANES + 1) if length % n == 0 and length // n >= MOST_LANES]
    return max(fits, key=lambda n: (math.gcd(n, 4), n), default=1)


Division = tuple[tuple[int, ...], tuple[int, ...], int | None]
"""Dimensions of an array in parts, those that the partial reductions reduce, and the one of parts in their results."""


def division(dims: tuple[int, ...], reduced: Sequence[int], merged: bool = True) -> Division | None:
    """How an array is divided; None if there are many results, or no even parts. merged: whether neighbouring reduced
    dimensions become one.
    """
    kept = math.prod(n for d, n in enumerate(dims) if d not in reduced)
    fastest = max(d for d, size in enumerate(dims) if size != 1)
    if kept > (FEW if fastest in reduced else FEW_COLUMNS):
        return None
    runs = [list(run) for inside, run in groupby(range(len(dims)), lambda d: d in reduced) if inside]
    run = max(runs, key=lambda run: math.prod(dims[d] for d in run))
    most = min(2 * PARTS, math.prod(dims) // (LEAST_IN_PART * kept))
    if not merged and len(run) > 1 and dims[run[-1]] >= SHORT_ROW:
        apart = [(d, n) for d in run[:-1] if (n := _parts(dims[d], most)) is not None]
        if apart:
            d, parts = apart[0]
            others = [k if k < d else k + 1 for k in reduced if k != d]
            shape = (*dims[:d], parts, dims[d] // parts, *dims[d + 1 :])
            return shape, tuple(sorted([*others, d + 1])), sum(k not in reduced for k in range(d))
    count = math.prod(dims[d] for d in run)
    parts_of_all = _parts(count, most)
    if parts_of_all is None:
        return None
    first = run[0]
    shape = (*dims[:first], parts_of_all, count // parts_of_all, *dims[run[-1] + 1 :])
    others = [d if d < first else d - len(run) + 2 for d in reduced if d not in run]
    return shape, tuple(sorted([*others, first + 1])), sum(d not in reduced for d in range(first))


def _parts(count: int, most: int) -> int | None:
    even = [n for n in range(LEAST_PARTS, most + 1) if count % n == 0]
    return min(even, key=lambda n: abs(n - PARTS), default=None)


def _has_places(x: Instruction) -> bool:
    """Whether elements depend on their place along several dimensions: merged, each would divide to find it."""
    stack, seen = [x], {x}
    while stack:
        i = stack.pop()
        if i.shape.rank > 1 and (i.opcode is Op.IOTA or (i.opcode is Op.BROADCAST and i.operands[0].shape.size != 1)):
            return True
        new = {*i.operands} - seen if i.opcode in ELEMENTWISE or i.opcode is Op.BROADCAST else set()
        seen |= new
        stack += new
    return False


def _by_number(b: Builder, region: Computation) -> Computation:
    """The same region but for two NaNs, of which it takes the one with the lesser number, not the first operand."""
    shapes = [p.shape for p in sorted(region.parameters, key=lambda p: p.parameter_number)]

    def make(b: Builder, p: list[Instruction]) -> Instruction:
        value, number = b.inline(region, p).operands
        nans = b.binary(Op.AND, b.compare(p[0], "NE", p[0]), b.compare(p[2], "NE", p[2]))
        least = b.select(nans, b.binary(Op.MINIMUM, p[1], p[3]), number)
        return b.op(Op.TUPLE, region.root.shape, value, least)

    return b.region("place", shapes, make)
