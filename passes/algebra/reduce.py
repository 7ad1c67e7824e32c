"""Rules for reduce and reduce-window of moved, broadcast, padded, concatenated or empty data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.analysis.windows import running
from ...hlo.attributes import Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ...hlo.shapes import array, tuple_shape
from ..building import Builder, apply_pointwise, identity_of, is_pointwise, sole_binary
from ..cleanup.constant_folding import number_of, splat_of
from ..cleanup.prune import parameters_of, region_of
from .rule import is_zero, rule, spread_over

IDEMPOTENT = (Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR)
"""Idempotent reductions: a value counts the same once or twice, in any order."""

LARGE_PART = 1 << 12
"""Minimum number of elements of every part for splitting a reduction of a concatenate.

One loop over the concatenate would have to find the part of each element.
"""

MOST_PARTS = 8

REASSOCIATED = "the order of the summands changes"


def _reduction(i: Instruction) -> Op | None:
    """The one op of a reduce of one array; None if its region is anything else."""
    return sole_binary(i.attributes["to_apply"]) if len(i.operands) == 2 else None


def _reduced(
    b: Builder, i: Instruction, x: Instruction, dims: Sequence[int], start: Instruction | None = None
) -> Instruction:
    """The same reduction of array x along `dims`, from `start` if given."""
    kept = [n for d, n in enumerate(x.shape.dims) if d not in dims]
    region = i.attributes["to_apply"]
    return b.op(
        Op.REDUCE,
        array(i.shape.dtype, *kept),
        x,
        start or i.operands[1],
        dimensions=tuple(sorted(dims)),
        to_apply=region,
    )


def _is_identity(start: Instruction, op: Op) -> bool:
    number = number_of(start)
    wanted = identity_of(op, start.shape.dtype)
    return number is not None and wanted is not None and bool(number == wanted)


def _any_order(op: Op | None) -> bool:
    return op in (Op.ADD, Op.MULTIPLY, Op.XOR, *IDEMPOTENT)


def reduce_of_reduce(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(reduce(x)) → one reduce over both sets of dimensions, if both start at the identity."""
    inner, op = i.operands[0], _reduction(i)
    if inner.opcode is not Op.REDUCE or op is None or not _any_order(op) or op is not _reduction(inner):
        return None
    a, c = splat_of(i.operands[1]), splat_of(inner.operands[1])
    if a is None or c is None or a.literal != c.literal or not (op in IDEMPOTENT or _is_identity(a, op)):
        return None
    if op not in IDEMPOTENT and (not b.is_sole(inner) or i.shape.dtype in NARROW):
        return None
    kept = [d for d in range(inner.operands[0].shape.rank) if d not in inner.dimensions]
    return _reduced(b, i, inner.operands[0], [*inner.dimensions, *(kept[d] for d in i.dimensions)])


NARROW = frozenset({DType.F16, DType.BF16})
"""Types for which the evaluator rounds a sum once, while two sums round twice."""


def sums_beside_others(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(x, y, …) → (reduce(x), reduce(y, …)), if x is a long sum that nothing else in the region reads."""
    region, count = i.attributes["to_apply"], len(i.operands) // 2
    if count < 2 or region.root.opcode is not Op.TUPLE or _folded(i) <= MOST_IN_ONE_CHAIN:
        return None
    sums = [k for k in range(count) if _is_sum_apart(region, k)]
    rest = [k for k in range(count) if k not in sums]
    parts = dict(zip(sums, (_part(i, b, [k]) for k in sums), strict=True))
    if not sums:
        return None
    if len(rest) == 1:
        parts[rest[0]] = _part(i, b, rest)
    elif rest:
        parts.update(zip(rest, b.elements(_part(i, b, rest)), strict=True))
    return b.tuple([parts[k] for k in range(count)])


MOST_IN_ONE_CHAIN = 32
"""A sum of at most this many elements is one chain on every stack."""

WIDE = frozenset({DType.F32, DType.F64, DType.C64, DType.C128})
"""Types of sums that gain accuracy. A sum of narrow floats beside others rounds at each step."""


def _folded(i: Instruction) -> int:
    """How many elements make one of the result."""
    return math.prod(i.operands[0].shape.dims[d] for d in i.dimensions)


def _is_sum_apart(region: Computation, k: int) -> bool:
    """Whether result k of a region is the sum of its two parameters, and no other result depends on them."""
    values, count = region.root.operands, len(region.parameters) // 2
    own, value = {k, k + count}, values[k]
    if value.opcode is not Op.ADD or value.shape.dtype not in WIDE:
        return False
    if any(o.opcode is not Op.PARAMETER for o in value.operands) or parameters_of([value]) != own:
        return False
    return own.isdisjoint(parameters_of(v for n, v in enumerate(values) if n != k))


def _part(i: Instruction, b: Builder, kept: Sequence[int]) -> Instruction:
    """The reduction of some of its operands."""
    region, count = i.attributes["to_apply"], len(i.operands) // 2
    numbers = [*kept, *(count + k for k in kept)]
    shapes = [i.shape.elements[k].without_layout() for k in kept]
    own = region_of(region, numbers, [region.root.operands[k] for k in kept])
    b.computations.append(Computation(b.names.fresh(region.name), own.instructions, own.root, own.attributes))
    return b.op(
        Op.REDUCE,
        shapes[0] if len(kept) == 1 else tuple_shape(*shapes),
        *(i.operands[n] for n in numbers),
        dimensions=i.dimensions,
        to_apply=b.computations[-1],
    )


MOST_LAYERS = 8
"""Arrays of a stack of which a reduction is a chain of its region: numpy.select has one more than conditions."""

ORDERING = frozenset({Op.COMPARE, Op.SELECT, Op.MAXIMUM, Op.MINIMUM, Op.PARAMETER, Op.CONSTANT, Op.TUPLE})
"""Ops of a region on floats that do not round, so that a chain is what stacks compute, who add in wider types."""


def reduce_of_stack(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(concatenate(x, y, …), iota) along it, of one place each → region(region(initial values, x, 0), y, 1) …"""
    region, count, x = i.attributes["to_apply"], len(i.operands) // 2, i.operands[0]
    if x.opcode is not Op.CONCATENATE or len(i.dimensions) != 1 or len(x.operands) > MOST_LAYERS or count < 2:
        return None
    if i.dimensions != x.dimensions or not b.is_sole(x):
        return None
    if not is_pointwise(region) or any(s.opcode not in ORDERING for s in region.instructions if not _is_exact(s)):
        return None
    if not all(_has_layers(operand, x.dimensions[0]) for operand in i.operands[:count]):
        return None
    found = [b.broadcast(start, i.shape.elements[0].dims) for start in i.operands[count:]]
    for number in range(len(x.operands)):
        layers = [_layer(b, operand, x.dimensions[0], number) for operand in i.operands[:count]]
        found = apply_pointwise(b, region, [*found, *layers])
    return b.tuple(found)


def _is_exact(i: Instruction) -> bool:
    return i.shape.is_array and not i.shape.dtype.is_float and not i.shape.dtype.is_complex


def _has_layers(x: Instruction, d: int) -> bool:
    """Whether an array is a stack along a dimension, or the numbers of its places there."""
    if x.opcode is Op.IOTA:
        return x.attributes["iota_dimension"] == d
    return x.opcode is Op.CONCATENATE and x.dimensions == (d,) and all(o.shape.dims[d] == 1 for o in x.operands)


def _layer(b: Builder, x: Instruction, d: int, number: int) -> Instruction:
    """The array of a number in a stack along a dimension, without that dimension."""
    dims = [n for k, n in enumerate(x.shape.dims) if k != d]
    if x.opcode is Op.IOTA:
        return b.broadcast(b.constant(number, x.shape.dtype), dims)
    return b.reshape(x.operands[number], dims)


def reduce_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """reduce over no elements → the initial value."""
    if len(i.operands) != 2 or i.operands[0].shape.size or not i.shape.size:
        return None
    return b.broadcast(i.operands[1], i.shape.dims)


def reduce_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """maximum, minimum, and, or of a broadcast → that of its operand."""
    x, op = i.operands[0], _reduction(i)
    if x.opcode is not Op.BROADCAST or op not in IDEMPOTENT or not x.shape.size:
        return None
    source = x.operands[0]
    dims = [k for k, d in enumerate(x.dimensions) if d in i.dimensions]
    if len(dims) == len(i.dimensions) or list(x.dimensions) != sorted(x.dimensions):
        return None
    once = _reduced(b, i, source, dims) if dims else None
    left = [d for d in range(x.shape.rank) if d not in i.dimensions]
    places = [left.index(d) for d in x.dimensions if d in left]
    if once is not None:
        return spread_over(b, once, i.shape.dims, places)
    return _with_start(b, i, op, spread_over(b, source, i.shape.dims, places))


def _with_start(b: Builder, i: Instruction, op: Op | None, x: Instruction) -> Instruction:
    """op(initial value, x) for each element; x if the initial value is the identity."""
    if op is None or _is_identity(i.operands[1], op):
        return x
    return b.binary(op, b.broadcast(i.operands[1], x.shape.dims), x)


def sum_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """sum(broadcast(x)) → sum(x) · n, where each element of x occurs n times."""
    x, op = i.operands[0], _reduction(i)
    if op is not Op.ADD or x.opcode is not Op.BROADCAST or not x.shape.size:
        return None
    if not (i.shape.dtype.is_integer or i.shape.dtype in (DType.F32, DType.F64)) or not is_zero(i.operands[1]):
        return None
    source, places = x.operands[0], x.dimensions
    count = math.prod(x.shape.dims[d] for d in i.dimensions if d not in places)
    if count == 1 or list(places) != sorted(places):
        return None
    own = [k for k, d in enumerate(places) if d in i.dimensions]
    total = _reduced(b, i, source, own) if own else source
    left = [d for d in range(x.shape.rank) if d not in i.dimensions]
    product = b.binary(Op.MULTIPLY, total, count)
    return spread_over(b, product, i.shape.dims, [left.index(d) for d in places if d in left])


def reduce_of_concatenate(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(concatenate(x, y)) → op(reduce(x), reduce(y)), for large arrays joined along a reduced dimension."""
    x, op = i.operands[0], _reduction(i)
    if x.opcode is not Op.CONCATENATE or x.dimensions[0] not in i.dimensions or op is None or not _any_order(op):
        return None
    identity, dtype = identity_of(op, i.shape.dtype), i.shape.dtype
    if identity is None or (dtype in NARROW and op not in IDEMPOTENT):
        return None
    if len(x.operands) > MOST_PARTS or min(o.shape.size for o in x.operands) < LARGE_PART:
        return None
    first, *rest = x.operands
    total = _reduced(b, i, first, i.dimensions)
    for o in rest:
        total = b.binary(op, total, _reduced(b, i, o, i.dimensions, b.constant(identity, dtype)))
    return total


def reduce_of_reshape(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(reshape(x)) → reduce(x), if each reduced dimension consists of whole dimensions of x."""
    x, op = i.operands[0], _reduction(i)
    if x.opcode is not Op.RESHAPE or not _any_order(op) or not i.shape.size or not x.shape.size:
        return None
    source, dims = x.operands[0], []
    for old, new in _groups(source.shape.dims, x.shape.dims):
        if any(d in i.dimensions for d in new):
            if not all(d in i.dimensions or x.shape.dims[d] == 1 for d in new):
                return None
            dims += old
        elif [source.shape.dims[d] for d in old if source.shape.dims[d] != 1] != [
            x.shape.dims[d] for d in new if x.shape.dims[d] != 1
        ]:
            return None
    if not dims:
        return None
    return b.reshape(_reduced(b, i, source, dims), i.shape.dims)


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The shortest pairs of runs of dimensions, old and new, with equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    j = k = 0
    while j < len(old) or k < len(new):
        left, right, a, c = [], [], 1, 1
        while True:
            if a <= c and j < len(old) and (a < c or not left):
                a *= old[j]
                left.append(j)
                j += 1
            elif k < len(new) and (c < a or not right):
                c *= new[k]
                right.append(k)
                k += 1
            else:
                break
            if a == c and left and right:
                break
        groups.append((left, right))
    return groups


def reduce_of_transpose(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(transpose(x)) → reduce(x), if the remaining dimensions keep their order."""
    x = i.operands[0]
    if x.opcode is not Op.TRANSPOSE or not _any_order(_reduction(i)):
        return None
    left = [x.dimensions[d] for d in range(x.shape.rank) if d not in i.dimensions]
    return _reduced(b, i, x.operands[0], [x.dimensions[d] for d in i.dimensions]) if left == sorted(left) else None


def reduce_of_reverse(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(reverse(x)) → reduce(x), if only reduced dimensions are reversed."""
    x = i.operands[0]
    plain = x.opcode is Op.REVERSE and set(x.dimensions) <= set(i.dimensions) and _any_order(_reduction(i))
    return _reduced(b, i, x.operands[0], i.dimensions) if plain else None


def reduce_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(pad(x)) → reduce(x), if only reduced dimensions are padded, and by the initial value, the identity."""
    x, op = i.operands[0], _reduction(i)
    if x.opcode is not Op.PAD or op is None or not _any_order(op) or not x.operands[0].shape.size:
        return None
    start, fill = splat_of(i.operands[1]), splat_of(x.operands[1])
    if start is None or fill is None or start.literal != fill.literal or not _is_identity(start, op):
        return None
    for d, p in enumerate(x.attributes["padding"]):
        if min(p.low, p.high) < 0 or (d not in i.dimensions and (p.low or p.high or p.interior)):
            return None
    return _reduced(b, i, x.operands[0], i.dimensions)


# --- reduce-window ---------------------------------------------------------------------------------------------------


def _window(i: Instruction) -> tuple[WindowDim, ...]:
    """The window of each dimension; a scalar's text may omit the attribute."""
    return i.attributes["window"].dims if "window" in i.attributes else ()


def window_of_one(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window with windows of one element that cover the operand → op(initial value, x)."""
    op = _reduction(i)
    window = _window(i)
    plain = all(
        w.size == w.stride == w.lhs_dilate == 1 and not w.pad_low and not w.pad_high and n == m
        for w, n, m in zip(window, i.shape.dims, i.operands[0].shape.dims)
    )
    if op is None or not plain or len(window) != i.shape.rank or i.shape.dims != i.operands[0].shape.dims:
        return None
    return b.binary(op, b.broadcast(i.operands[1], i.shape.dims), i.operands[0])


def window_of_all(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window with windows of one element or of whole dimensions → reduce."""
    op, x = _reduction(i), i.operands[0]
    window = _window(i)
    if not _any_order(op) or len(window) != x.shape.rank or not i.shape.size:
        return None
    dims = []
    for d, (w, n, m) in enumerate(zip(window, x.shape.dims, i.shape.dims)):
        if w.lhs_dilate != 1 or w.rhs_dilate != 1 or w.pad_low or w.pad_high or (w.stride != 1 and m != 1):
            return None
        if w.size == n and m == 1:
            dims.append(d)
        elif w.size != 1 or n != m:
            return None
    return b.reshape(_reduced(b, i, x, dims), i.shape.dims) if dims else None


def window_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window(pad(x)) → reduce-window(x) with window padding, if pad and initial value are the identity."""
    x, window, op = i.operands[0], _window(i), _reduction(i)
    if op is None or x.opcode is not Op.PAD or len(window) != x.shape.rank or not x.operands[0].shape.size:
        return None
    start, fill = splat_of(i.operands[1]), splat_of(x.operands[1])
    if start is None or fill is None or start.literal != fill.literal or not _is_identity(start, op):
        return None
    if any(w.lhs_dilate != 1 for w in window) or running(i) is not None:
        return None  # a prefix sum of what is padded is one; of x alone it would be windows of any length
    made = []
    for w, p in zip(window, x.attributes["padding"], strict=True):
        low, high = w.pad_low + p.low, w.pad_high + p.high
        if min(p.low, p.high, w.pad_low, w.pad_high) < 0:
            return None
        made.append(replace(w, pad_low=low, pad_high=high, lhs_dilate=p.interior + 1))
    kept = {k: v for k, v in i.attributes.items() if k not in ("metadata", "sharding", "window")}
    return b.op(
        Op.REDUCE_WINDOW, i.shape.without_layout(), x.operands[0], i.operands[1], window=Window(tuple(made)), **kept
    )


RULES = (
    rule(Op.REDUCE, reduce_of_nothing),
    rule(Op.REDUCE, sums_beside_others, REASSOCIATED, 8),
    rule(Op.REDUCE, reduce_of_stack),
    rule(Op.REDUCE, reduce_of_reduce, REASSOCIATED, 8),
    rule(Op.REDUCE, reduce_of_broadcast),
    rule(Op.REDUCE, sum_of_broadcast, "n sums round n times, a product once", 8),
    rule(Op.REDUCE, reduce_of_concatenate, REASSOCIATED, 8),
    rule(Op.REDUCE, reduce_of_reshape, REASSOCIATED, 8),
    rule(Op.REDUCE, reduce_of_transpose, REASSOCIATED, 8),
    rule(Op.REDUCE, reduce_of_reverse, REASSOCIATED, 8),
    rule(Op.REDUCE, reduce_of_pad, REASSOCIATED, 8),
    rule(Op.REDUCE_WINDOW, window_of_one),
    rule(Op.REDUCE_WINDOW, window_of_all, REASSOCIATED, 8),
    rule(Op.REDUCE_WINDOW, window_of_pad),
)
