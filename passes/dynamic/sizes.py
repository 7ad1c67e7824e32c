"""Rules by opcode for arrays with dynamic sizes: arrays have their bounds as dimensions, sizes are s32 scalars.

Elements beyond the sizes are undefined; a rule masks them where they would matter. A rule takes (instruction, builder,
operands with sizes) and returns the result with its sizes. An opcode without a rule does not accept arrays with sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.attributes import PadDim, SliceDim
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.opset import BINARY
from ..building import Builder
from ..expand.topk import is_topk
from . import convolution, indexing, linalg, padding, windows
from .reshape import dynamic_reshape, reshape
from .values import DynamicRule, Sized, least, masked, plain, present, sizes_of, static, zero

# --- sizes themselves ------------------------------------------------------------------------------------------------


def set_dimension_size(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Truncate, or extend by zeros. The operand is returned unchanged if the result is declared static."""
    x, size = xs[0], xs[1].value
    (d,) = i.dimensions
    if not any(i.shape.dynamic):
        return x
    value = x.value
    if x.of(d) is not None:
        value = masked(b, x, [d], zero(b, value.shape.dtype))
    size = b.binary(Op.MAXIMUM, b.binary(Op.MINIMUM, b.convert(size, DType.S32), x.dims[d]), 0)
    return Sized(value, {**x.sizes, ((), d): size})


def get_dimension_size(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    return Sized(present(b, xs[0], i.dimensions[0]), {})


def custom_call(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """TopK, padded windows, and the two targets by which XLA's own padder converts to static arrays and back."""
    target, x = i.attributes["custom_call_target"], xs[0] if xs else None
    if is_topk(i):
        return windows.topk(i, b, xs)
    if target in padding.TARGETS:
        return padding.TARGETS[target](i, b, xs)
    if x is None or target not in SIZED_TARGETS:
        return None
    if target == "PadToStatic":
        value = masked(b, x, range(len(x.dims)), zero(b, x.value.shape.dtype))
        return Sized(b.tuple([b.plain(value), *(present(b, x, d) for d in range(len(x.dims)))]), {})
    dims, fill = i.shape.dims, zero(b, i.shape.dtype)
    room = [PadDim(0, n - m) for m, n in zip(x.dims, dims, strict=True)]
    sizes = [b.binary(Op.MINIMUM, b.binary(Op.MAXIMUM, s.value, 0), n) for s, n in zip(xs[1:], x.dims, strict=True)]
    return Sized(b.pad(b.plain(x.value), fill, room), sizes_of(dict(enumerate(sizes))))


SIZED_TARGETS = ("PadToStatic", "SliceToDynamic", *padding.TARGETS)
"""Custom calls whose rule also runs if no operand has sizes."""

# --- one element for one ---------------------------------------------------------------------------------------------


def elementwise(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """The result has the smallest size of its operands; elements beyond it are padding."""
    whole = [x for x in xs if len(x.dims) == i.shape.rank]
    return plain(i, b, xs, {d: least(b, [x.of(d) for x in whole]) for d in range(i.shape.rank)})


def binary(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """If both operands have a size and one of them is 1, broadcast that element, as XLA does."""
    values, sizes = [x.value for x in xs], {d: least(b, [x.of(d) for x in xs]) for d in range(i.shape.rank)}
    for d, size in sizes.items():
        pair = [x.of(d) for x in xs]
        if i.shape.dims[d] < 2 or size is None or None in pair or pair[0] is pair[1]:
            continue
        for k, (own, other) in enumerate((pair, pair[::-1])):
            assert own is not None and other is not None
            alone = b.binary(Op.AND, b.compare(own, "EQ", 1), b.compare(other, "GT", 1))
            values[k] = b.select(alone, _repeated(b, b.plain(values[k]), d), b.plain(values[k]))
            size = b.select(alone, other, size)
        sizes[d] = size
    return plain(i, b, [Sized(v, {}) for v in values], sizes)


def _repeated(b: Builder, x: Instruction, dimension: int) -> Instruction:
    """x with the first element along a dimension repeated at all positions."""
    rest = [d for d in range(x.shape.rank) if d != dimension]
    one = b.reshape(b.slice_in(x, dimension, 0, 1), [x.shape.dims[d] for d in rest])
    return b.op(Op.BROADCAST, x.shape.without_layout(), one, dimensions=tuple(rest))


def bitcast_convert(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    return plain(i, b, xs, {d: xs[0].of(d) for d in range(min(i.shape.rank, len(xs[0].dims)))})


def bitcast(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """Change the type to another of equal width.

    Other shapes are refused, because the bounds determine where elements are in memory.
    """
    before, after = ((s.dtype.bits, s.dims, s.minor_to_major) for s in (xs[0].value.shape, i.shape))
    return identity(i, b, xs) if before == after else None


def broadcast(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    return plain(i, b, xs, {to: xs[0].of(d) for d, to in enumerate(i.dimensions)})


def transpose(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    return plain(i, b, xs, {to: xs[0].of(d) for to, d in enumerate(i.dimensions)})


def reverse(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Reverse, then move the present elements to the front."""
    (x,), dims = xs, i.shape.dims
    sized = [d for d in i.dimensions if x.of(d) is not None]
    value = b.op(Op.REVERSE, static(i.shape).without_layout(), x.value, dimensions=i.dimensions)
    for d in sized:
        padded = b.pad(value, zero(b, i.shape.dtype), [PadDim(0, n if k == d else 0) for k, n in enumerate(dims)])
        first = b.binary(Op.SUBTRACT, b.constant(dims[d], DType.S32), present(b, x, d))
        starts = [first if k == d else zero(b, DType.S32) for k in range(len(dims))]
        value = b.dynamic_slice(padded, starts, dims)
    return Sized(value, x.sizes)


# --- parts and wholes ------------------------------------------------------------------------------------------------


def slice_(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    (x,) = xs
    sizes = {d: _sliced(b, x.of(d), s, x.dims[d]) for d, s in enumerate(i.attributes["slice"])}
    return plain(i, b, xs, sizes)


def _sliced(b: Builder, size: Instruction | None, s: SliceDim, bound: int) -> Instruction | None:
    if size is None or (s.start, s.limit, s.stride) == (0, bound, 1):
        return size
    reach = b.binary(Op.SUBTRACT, b.binary(Op.MINIMUM, size, s.limit), s.start - s.stride + 1)
    return b.binary(Op.DIVIDE, b.binary(Op.MAXIMUM, reach, 0), s.stride)


def concatenate(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Write each operand where the previous one ends, over the previous one's elements beyond its size."""
    (d,), rank = i.dimensions, i.shape.rank
    others = {k: least(b, [x.of(k) for x in xs]) for k in range(rank) if k != d}
    if all(x.of(d) is None for x in xs):
        return plain(i, b, xs, others)
    whole, end = b.constant(0, i.shape.dtype, i.shape.dims), zero(b, DType.S32)
    for x in xs:
        starts = [end if k == d else zero(b, DType.S32) for k in range(rank)]
        whole = b.dynamic_update_slice(whole, b.plain(x.value), starts)
        end = b.binary(Op.ADD, end, present(b, x, d))
    return Sized(whole, sizes_of({**others, d: end}))


def pad(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    x, fill = xs
    dims: dict[int, Instruction | None] = {}
    moved = []
    for d, p in enumerate(i.attributes["padding"]):
        size = x.of(d)
        if size is not None and (p.low or p.high or p.interior):
            moved.append(d)
            holes = b.binary(Op.MULTIPLY, b.binary(Op.MAXIMUM, b.binary(Op.SUBTRACT, size, 1), 0), p.interior)
            size = b.binary(Op.MAXIMUM, b.binary(Op.ADD, b.binary(Op.ADD, size, holes), p.low + p.high), 0)
        dims[d] = size
    value = Sized(masked(b, x, moved, fill.value), {})
    return plain(i, b, [value, fill], dims)


# --- tuples ----------------------------------------------------------------------------------------------------------


def tuple_(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    made = plain(i, b, xs, {})
    return Sized(made.value, {((n, *path), d): s for n, x in enumerate(xs) for (path, d), s in x.sizes.items()})


def get_tuple_element(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    number, made = i.attributes["index"], plain(i, b, xs, {})
    return Sized(made.value, {(p[1:], d): s for (p, d), s in xs[0].sizes.items() if p[0] == number})


def identity(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """The first operand, with its sizes."""
    return Sized(plain(i, b, xs, {}).value, xs[0].sizes)


RULES: dict[Op, DynamicRule] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(BINARY, binary),
    **convolution.RULES,
    **indexing.RULES,
    **linalg.RULES,
    **windows.RULES,
    Op.ADD_DEPENDENCY: identity,
    Op.BITCAST: bitcast,
    Op.BITCAST_CONVERT: bitcast_convert,
    Op.BROADCAST: broadcast,
    Op.CONCATENATE: concatenate,
    Op.CUSTOM_CALL: custom_call,
    Op.DOMAIN: identity,
    Op.DYNAMIC_RESHAPE: dynamic_reshape,
    Op.GET_DIMENSION_SIZE: get_dimension_size,
    Op.GET_TUPLE_ELEMENT: get_tuple_element,
    Op.MAP: elementwise,
    Op.OPT_BARRIER: identity,
    Op.PAD: pad,
    Op.RESHAPE: reshape,
    Op.REVERSE: reverse,
    Op.SET_DIMENSION_SIZE: set_dimension_size,
    Op.SLICE: slice_,
    Op.TRANSPOSE: transpose,
    Op.TUPLE: tuple_,
}
"""Rules by opcode. An opcode that is missing does not accept arrays with sizes."""

ALWAYS = frozenset({Op.DYNAMIC_RESHAPE, Op.GET_DIMENSION_SIZE, Op.SET_DIMENSION_SIZE})
"""Opcodes whose rule also runs if no operand has sizes."""

SOURCES = frozenset({Op.BROADCAST, Op.CONSTANT, Op.IOTA, Op.RNG_BIT_GENERATOR})
"""Opcodes that fill their result up to its bound where no operand has sizes, whatever its shape says."""
