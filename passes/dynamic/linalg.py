"""Linear algebra on arrays with dynamic sizes: products beyond a size are zero, matrices continue as the identity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder
from ..expand.batch_norm import Present, gradients, inference, training
from .values import DynamicRule, Key, Sized, inside, least, masked, plain, sizes_of, static, zero

Pairs = list[tuple[int, int]]


def _only(x: Sized, sizes: Mapping[int, Instruction | None], b: Builder) -> Sized:
    """The array with zeros beyond these sizes."""
    known = sizes_of(sizes)
    return Sized(masked(b, Sized(x.value, known), [d for _, d in known], zero(b, x.value.shape.dtype)), {})


def _pairs(i: Instruction, kind: str) -> Pairs:
    a = i.attributes
    return list(zip(a.get(f"lhs_{kind}_dims", ()), a.get(f"rhs_{kind}_dims", ()), strict=True))


def dot(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    x, y = xs
    joined, batch = _pairs(i, "contracting"), _pairs(i, "batch")
    shared = {p: least(b, [x.of(p[0]), y.of(p[1])]) for p in [*joined, *batch]}
    values = [_only(side, {p[k]: shared[p] for p in joined}, b) for k, side in enumerate((x, y))]
    return plain(i, b, values, dict(enumerate(_sizes(x, y, joined, batch, shared))))


Shared = Mapping[tuple[int, int], Instruction | None]


def _sizes(
    x: Sized, y: Sized, joined: Pairs, batch: Pairs, shared: Shared, group: int = -1
) -> list[Instruction | None]:
    """Sizes of the result dimensions of a product: batch, free left, free right without the group dimension."""
    taken = [{p[k] for p in (*joined, *batch)} for k in (0, 1)]
    sizes = [shared[p] for p in batch]
    sizes += [x.of(d) for d in range(len(x.dims)) if d not in taken[0]]
    return sizes + [y.of(d) for d in range(len(y.dims)) if d not in taken[1] and d != group]


def ragged_dot(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Groups beyond the number of groups have no rows."""
    x, y, groups = xs
    (ragged,), last = i.attributes["lhs_ragged_dims"], len(groups.dims) - 1
    (group,) = i.attributes.get("rhs_group_dims", ()) or (-1,)
    joined, batch = _pairs(i, "contracting"), _pairs(i, "batch")
    shared = {p: least(b, [x.of(p[0]), y.of(p[1])]) for p in [*joined, *batch]}
    left = _only(x, {s: shared[s, t] for s, t in joined}, b)
    number = None if group < 0 else least(b, [y.of(group), groups.of(last)])
    right = _only(y, {t: shared[s, t] for s, t in joined} | ({} if group < 0 else {group: number}), b)
    counts = _only(groups, {d: groups.of(d) for d in range(last)} | {last: number or groups.of(last)}, b)
    sizes = _sizes(x, y, joined, batch, shared, group)
    if ragged in (s for s, _ in joined):
        sizes = [groups.of(last), *sizes]
    return plain(i, b, [left, right, counts], dict(enumerate(sizes)))


def _blocks(b: Builder, x: Sized, scale: Sized, d: int, size: Instruction | None) -> Instruction | None:
    """The number of scale elements that apply to elements of x within `size`."""
    if size is None:
        return scale.of(d)
    block = x.dims[d] // max(scale.dims[d], 1)
    met = b.binary(Op.DIVIDE, b.binary(Op.ADD, size, block - 1), max(block, 1))
    return least(b, [met, scale.of(d)])


def scaled_dot(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Each scale element applies to a block of operand elements whose length follows from the bounds."""
    x, y, *scales = xs
    joined, batch = _pairs(i, "contracting"), _pairs(i, "batch")
    shared = {p: least(b, [x.of(p[0]), y.of(p[1])]) for p in [*joined, *batch]}
    values = [_only(side, {p[k]: shared[p] for p in joined}, b) for k, side in enumerate((x, y))]
    for k, (side, scale) in enumerate(zip((x, y), scales, strict=True)):
        sizes = {p[k]: _blocks(b, side, scale, p[k], shared[p]) for p in joined if scale.dims}
        one = b.constant(1, scale.value.shape.dtype)  # some scale types have no zero
        values.append(Sized(masked(b, Sized(scale.value, sizes_of(sizes)), list(sizes), one), {}))
    return plain(i, b, values, dict(enumerate(_sizes(x, y, joined, batch, shared))))


# --- matrices --------------------------------------------------------------------------------------------------------


def _with_identity(b: Builder, x: Sized, size: Instruction | None) -> Instruction:
    """Square matrices in the last two dimensions, continued as the identity beyond `size`."""
    if size is None:
        return x.value
    rank, dtype = len(x.dims), x.value.shape.dtype
    row, column = (b.iota(DType.S32, x.dims, d) for d in (rank - 2, rank - 1))
    there = b.binary(Op.AND, b.compare(row, "LT", size), b.compare(column, "LT", size))
    return b.select(there, b.plain(x.value), b.convert(b.compare(row, "EQ", column), dtype))


def cholesky(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    (x,) = xs
    rank = len(x.dims)
    size = least(b, [x.of(rank - 2), x.of(rank - 1)])
    sizes = {d: x.of(d) for d in range(rank - 2)} | {rank - 2: size, rank - 1: size}
    return plain(i, b, [Sized(_with_identity(b, x, size), {})], sizes)


def triangular_solve(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    x, y = xs
    rank = len(x.dims)
    shared = rank - 2 if i.attributes.get("left_side", False) else rank - 1
    size = least(b, [x.of(rank - 2), x.of(rank - 1), y.of(shared)])
    sizes = {d: least(b, [x.of(d), y.of(d)]) for d in range(rank - 2)}
    sizes |= {d: y.of(d) for d in (rank - 2, rank - 1)} | {shared: size}
    return plain(i, b, [Sized(_with_identity(b, x, size), {}), _only(y, {shared: size}, b)], sizes)


def fft(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """The transformed dimensions must have static lengths."""
    (x,) = xs
    batch = range(len(x.dims) - len(i.attributes["fft_length"]))
    return plain(i, b, xs, {d: x.of(d) for d in batch}) if all(d in batch for _, d in x.sizes) else None


# --- batch normalisation ---------------------------------------------------------------------------------------------


def batch_norm(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Expanded here, because means divide by the number of present elements."""
    x, feature = xs[0], i.attributes["feature_index"]
    whole = [x, xs[-1]] if i.opcode is Op.BATCH_NORM_GRAD else [x]
    sizes = {d: least(b, [w.of(d) for w in whole]) for d in range(len(x.dims))}
    vectors = [v for v in xs[1:] if v not in whole]
    sizes[feature] = least(b, [sizes[feature], *(v.of(0) for v in vectors)])
    others = {d: s for d, s in sizes.items() if d != feature}
    still = i.replace(operands=tuple(o.value for o in xs), shape=static(i.shape))
    full = math.prod(n for d, n in enumerate(x.dims) if d != feature and others[d] is None)
    count = b.constant(full, DType.S64)
    for size in others.values():
        count = count if size is None else b.binary(Op.MULTIPLY, count, b.convert(size, DType.S64))
    there = Present(inside(b, Sized(x.value, sizes_of(others))), count)
    made = _EXPANSIONS[i.opcode](still, b, there)
    known: dict[Key, Instruction] = {}
    for n, (path, leaf) in enumerate(made.shape.leaves()):
        by_dimension = sizes if n == 0 else {0: sizes[feature]}
        assert leaf.rank == len(by_dimension)
        known |= {(path, d): s for d, s in by_dimension.items() if s is not None}
    return Sized(made, known)


_EXPANSIONS: dict[Op, Callable[[Instruction, Builder, Present | None], Instruction]] = {
    Op.BATCH_NORM_GRAD: gradients,
    Op.BATCH_NORM_INFERENCE: inference,
    Op.BATCH_NORM_TRAINING: training,
}

RULES: dict[Op, DynamicRule] = {
    **dict.fromkeys(_EXPANSIONS, batch_norm),
    Op.CHOLESKY: cholesky,
    Op.DOT: dot,
    Op.FFT: fft,
    Op.RAGGED_DOT: ragged_dot,
    Op.SCALED_DOT: scaled_dot,
    Op.TRIANGULAR_SOLVE: triangular_solve,
}
