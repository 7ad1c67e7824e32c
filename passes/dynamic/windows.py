"""Reductions, windows, sorts and scans over dimensions with dynamic sizes: elements beyond a size are ignored."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.attributes import Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, array, tuple_shape
from ..building import Builder, identity_of, sole_binary
from ..expand.select_and_scatter import select_then_scatter
from .values import DynamicRule, Sized, inside, least, leaves_of, plain, sizes_of, static

# --- reductions ------------------------------------------------------------------------------------------------------


def reduce(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    arrays = xs[: len(xs) // 2]
    left = [d for d in range(len(arrays[0].dims)) if d not in i.dimensions]
    sizes = {to: least(b, [x.of(d) for x in arrays]) for to, d in enumerate(left)}
    return leaves_of(_folded(i, b, xs, i.dimensions), sizes)


def _folded(i: Instruction, b: Builder, xs: Sequence[Sized], dimensions: Sequence[int]) -> Sized:
    """A reduce or reduce-window that ignores elements beyond the sizes of `dimensions`.

    They are replaced by the identity element of the region's op. If it has none, a pred array is reduced alongside that
    says which elements are present.
    """
    many = len(xs) // 2
    arrays = [Sized(x.value, {k: s for k, s in x.sizes.items() if k[1] in dimensions}) for x in xs[:many]]
    sizes = {d: least(b, [x.of(d) for x in arrays]) for d in dimensions}
    there = inside(b, Sized(arrays[0].value, sizes_of(sizes)))
    return folded(i, b, [x.value for x in arrays], [x.value for x in xs[many:]], there)


def folded(
    i: Instruction, b: Builder, arrays: Sequence[Instruction], starts: Sequence[Instruction], there: Instruction | None
) -> Sized:
    """The reduce or reduce-window of the elements where the pred array `there` is true; None: of all elements."""
    unsized = [Sized(x, {}) for x in (*arrays, *starts)]
    if there is None:
        return plain(i, b, unsized, {})
    many, dtype = len(arrays), arrays[0].shape.dtype
    opcode = sole_binary(i.attributes["to_apply"]) if many == 1 else None
    # for complex numbers, 1 · (∞ + i) is not ∞ + i
    neutral = None if opcode is None or dtype.is_complex else identity_of(opcode, dtype)
    if neutral is not None:
        fill = b.constant(neutral, dtype, arrays[0].shape.dims)
        return plain(i, b, [Sized(b.select(there, b.plain(arrays[0]), fill), {}), *unsized[1:]], {})
    results = i.shape.elements if i.shape.is_tuple else (i.shape,)
    shapes = (*(static(r).without_layout() for r in results), array(DType.PRED, *results[0].dims))
    kept = {k: v for k, v in i.attributes.items() if k in ("dimensions", "window")}
    both = b.op(
        i.opcode, tuple_shape(*shapes), *map(b.plain, arrays), there, *starts, b.constant(True, DType.PRED),
        to_apply=_of_those_there(b, i.attributes["to_apply"]), **kept,
    )  # fmt: skip
    parts = b.elements(both)[:many]
    return Sized(b.tuple(parts) if i.shape.is_tuple else parts[0], {})


def _of_those_there(b: Builder, region: Computation) -> Computation:
    """The region with a pred per side: if one side is not present, the result is the other side."""
    many = len(region.parameters) // 2
    scalars = [p.shape for p in region.parameters]
    flag = array(DType.PRED)

    def combine(b: Builder, p: list[Instruction]) -> Instruction:
        left, first, right, second = p[:many], p[many], p[many + 1 : -1], p[-1]
        root = b.inline(region, [*left, *right])
        made = b.elements(root) if root.shape.is_tuple else [root]
        results = [
            b.select(first, b.select(second, new, old), b.convert(other, old.shape.dtype))
            for new, old, other in zip(made, left, right, strict=True)
        ]
        return b.tuple([*results, b.binary(Op.OR, first, second)])

    return b.region("reducer", [*scalars[:many], flag, *scalars[many:], flag], combine)


# --- windows ---------------------------------------------------------------------------------------------------------


def is_trivial(w: WindowDim) -> bool:
    """Whether the window reads each element alone."""
    return (w.size, w.stride, w.pad_low, w.pad_high, w.lhs_dilate) == (1, 1, 0, 0, 1)


def reach_of(w: WindowDim) -> int:
    """Number of elements from the first to the last that the window covers, including the gaps of dilation."""
    return 1 + w.rhs_dilate * (w.size - 1)


def windowed(b: Builder, size: Instruction, w: WindowDim, reach: Instruction | int | None = None) -> Instruction:
    """Number of window positions over a dimension of present size `size`.

    reach: the extent of the window, if not that of `w`.
    """
    if is_trivial(w) and reach is None:
        return size
    spread = b.binary(Op.MAXIMUM, b.binary(Op.SUBTRACT, size, 1), 0)
    length = b.binary(Op.ADD, b.binary(Op.MULTIPLY, spread, w.lhs_dilate), b.binary(Op.MINIMUM, size, 1))
    room = b.binary(Op.ADD, length, w.pad_low + w.pad_high + w.stride)
    room = b.binary(Op.SUBTRACT, room, reach_of(w) if reach is None else reach)
    return b.binary(Op.DIVIDE, b.binary(Op.MAXIMUM, room, 0), w.stride)


def reduce_window(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    arrays, window = xs[: len(xs) // 2], i.attributes.get("window", Window(()))
    met = [d for d, w in enumerate(window.dims) if not is_trivial(w)]
    sizes = {}
    for d, w in enumerate(window.dims):
        size = least(b, [x.of(d) for x in arrays])
        sizes[d] = None if size is None else windowed(b, size, w)
    return leaves_of(_folded(i, b, xs, met), sizes)


def select_and_scatter(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """Windows never choose elements beyond a size; windows beyond the sizes of the source choose nothing."""
    x, source, init = xs
    still = i.replace(operands=(x.value, source.value, init.value), shape=static(i.shape))
    made = select_then_scatter(still, b, inside(b, x), inside(b, source))
    return None if made is None else Sized(made, x.sizes)


# --- sorts -----------------------------------------------------------------------------------------------------------


def sort(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Sort elements beyond the size to the end: the comparator compares presence first."""
    (d,) = i.dimensions
    size = least(b, [x.of(d) for x in xs])
    sizes = {k: least(b, [x.of(k) for x in xs]) for k in range(len(xs[0].dims))}
    if size is None:
        return leaves_of(plain(i, b, xs, {}), sizes)
    there = b.compare(b.iota(DType.S32, xs[0].dims, d), "LT", size)
    region = i.attributes["to_apply"]
    scalars = [array(x.value.shape.dtype) for x in xs for _ in range(2)] + [array(DType.PRED)] * 2

    def order(b: Builder, p: list[Instruction]) -> Instruction:
        *values, first, second = p
        same = b.compare(first, "EQ", second)
        return b.select(same, b.inline(region, values), first)

    comparator = b.region("comparator", scalars, order)
    shapes = tuple(static(x.value.shape).without_layout() for x in xs)
    both = b.op(
        Op.SORT, Shape(DType.TUPLE, elements=(*shapes, array(DType.PRED, *xs[0].dims))),
        *(b.plain(x.value) for x in xs), there, dimensions=i.dimensions, to_apply=comparator,
        is_stable=i.attributes.get("is_stable", False),
    )  # fmt: skip
    parts = b.elements(both)[: len(xs)]
    return leaves_of(Sized(b.tuple(parts) if i.shape.is_tuple else parts[0], {}), sizes)


def topk(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """The first k elements, or fewer if the dimension has fewer."""
    (x,) = xs
    last, k = len(x.dims) - 1, i.shape.elements[0].dims[-1]
    size = x.of(last)
    sizes = {d: x.of(d) for d in range(last)} | {last: None if size is None else b.binary(Op.MINIMUM, size, k)}
    if size is None:
        return leaves_of(plain(i, b, xs, {}), sizes)
    dtype, direction = x.value.shape.dtype, "GT" if i.attributes.get("largest", True) else "LT"
    total = {"type": "TOTALORDER"} if dtype.is_float else {}
    scalars = [array(d) for d in (dtype, dtype, DType.S32, DType.S32)]
    region = b.region("comparator", scalars, lambda b, p: b.compare(p[0], direction, p[1], **total))
    numbers = b.iota(DType.S32, x.dims, last)
    shape = tuple_shape(array(dtype, *x.dims), array(DType.S32, *x.dims))
    attributes = {"dimensions": (last,), "is_stable": True, "to_apply": region}
    whole = Instruction(Op.SORT, i.name, shape, (x.value, numbers), attributes, i.location)
    parts = b.elements(sort(whole, b, [x, Sized(numbers, {})]).value)
    return leaves_of(Sized(b.tuple([b.slice_in(p, last, 0, k) for p in parts]), {}), sizes)


# --- one element after another ---------------------------------------------------------------------------------------


def scan(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """Keep the carries in iterations beyond the size.

    Other dimensions may have dynamic sizes only if the region is elementwise; None if it is not.
    """
    (d,), carried = i.dimensions, i.attributes.get("num_carries", len(xs) // 2)
    inputs, carries = xs[: len(xs) - carried], xs[len(xs) - carried :]
    region, rank = i.attributes["to_apply"], len(inputs[0].dims)
    rest = [k for k in range(rank) if k != d]
    known = [[x.of(k) for x in inputs] + [c.of(n) for c in carries] for n, k in enumerate(rest)]
    beside = {n: least(b, sizes) for n, sizes in enumerate(known)}
    if any(beside.values()) and not _is_elementwise(region, inputs[0].value.shape.dims, d):
        return None
    size = least(b, [x.of(d) for x in inputs])
    made = plain(i, b, xs, {}) if size is None else Sized(_scan_of_those_there(i, b, xs, size), {})
    shapes = i.shape.elements if i.shape.is_tuple else (i.shape,)
    along = {k: beside[n] for n, k in enumerate(rest)} | {d: size}
    found = {}
    for n in range(len(shapes)):
        by_dimension = along if n < len(shapes) - carried else beside
        found |= {((n,) if i.shape.is_tuple else (), k): s for k, s in by_dimension.items() if s is not None}
    return Sized(made.value, found)


def _is_elementwise(region: Computation, dims: Sequence[int], d: int) -> bool:
    """Whether each element of a scan's results depends only on the same position of the slices."""
    wanted = tuple(n for k, n in enumerate(dims) if k != d)
    return all(
        o.shape.dims == wanted and (o.opcode in ELEMENTWISE or o.opcode is Op.PARAMETER or _is_uniform(o))
        for o in region.instructions
        if o.shape.is_array and not (o.opcode is Op.CONSTANT and not o.shape.rank)
    )


def _is_uniform(i: Instruction) -> bool:
    return i.opcode is Op.BROADCAST and not i.operands[0].shape.rank


def _scan_of_those_there(i: Instruction, b: Builder, xs: Sequence[Sized], size: Instruction) -> Instruction:
    (d,), region = i.dimensions, i.attributes["to_apply"]
    carried = i.attributes.get("num_carries", len(xs) // 2)
    many = len(xs) - carried
    flags = (*[1] * d, xs[0].dims[d])
    there = b.compare(b.iota(DType.S32, flags, d), "LT", size)
    shapes = [p.shape for p in region.parameters]

    def step(b: Builder, p: list[Instruction]) -> Instruction:
        *slices, flag = p[: many + 1]
        old, test = p[many + 1 :], b.reshape(flag, ())
        root = b.inline(region, [*slices, *old])
        leaves = (b.elements(root) if root.shape.is_tuple else [root]) if root.opcode is not Op.TUPLE else root.operands
        cut = len(leaves) - carried
        kept = [b.select(test, b.plain(n), b.plain(o)) for n, o in zip(leaves[cut:], old, strict=True)]
        results = [*leaves[:cut], *kept]
        return b.tuple(results) if i.shape.is_tuple else results[0]

    computation = b.region("step", [*shapes[:many], array(DType.PRED, *[1] * d), *shapes[many:]], step)
    attributes = {k: v for k, v in i.attributes.items() if k in ("dimensions", "num_carries", "is_reverse")}
    values = [x.value for x in xs]
    operands = (*values[:many], there, *values[many:])
    return b.op(Op.SCAN, static(i.shape).without_layout(), *operands, **attributes, to_apply=computation)


RULES: dict[Op, DynamicRule] = {
    Op.REDUCE: reduce,
    Op.REDUCE_WINDOW: reduce_window,
    Op.SCAN: scan,
    Op.SELECT_AND_SCATTER: select_and_scatter,
    Op.SORT: sort,
    Op.TOPK: topk,
}
