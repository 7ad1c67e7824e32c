"""Slices, updates, gathers and scatters of arrays with dynamic sizes.

Starts are clamped to the present sizes, and indices are out of bounds beyond them, as if the arrays ended there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...hlo.attributes import PadDim
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..building import Builder
from .values import DynamicRule, Sized, inside, least, leaves_of, masked, plain, present, sizes_of, static, zero

Dims = Mapping[int, Instruction | None]
"""A scalar for each of some dimensions; None where the dimension has its full size."""


def _limited(b: Builder, start: Instruction, most: Instruction) -> Instruction:
    """The smaller of start indices and `most`, which holds s32 scalars that are not negative."""
    dtype = start.shape.dtype
    if dtype.bits < 32:
        start, dtype = b.convert(start, DType.S32), DType.S32
    return b.binary(Op.MINIMUM, start, b.convert(most, dtype))


def _last(b: Builder, size: Instruction, taken: Instruction | int) -> Instruction:
    """The largest valid start of a slice of `taken` elements; 0 if the slice is larger than the dimension."""
    return b.binary(Op.MAXIMUM, b.binary(Op.SUBTRACT, size, taken), 0)


def _scalars(b: Builder, starts: Sequence[Sized]) -> list[Instruction]:
    """One start scalar per dimension, also if the op has all starts in one vector (the older form)."""
    values = [s.value for s in starts]
    if len(values) == 1 and values[0].shape.rank == 1:
        (count,) = values[0].shape.dims
        return [b.reshape(b.slice_in(values[0], 0, k, k + 1), ()) for k in range(count)]
    return values


def _clamped(b: Builder, x: Sized, starts: Sequence[Sized], most: Dims) -> list[Sized]:
    """The starts, each limited to `most` of its dimension."""
    dtype = starts[0].value.shape.dtype if starts else DType.S32
    wide = DType.S32 if dtype.bits < 32 else dtype
    made = []
    for d, start in enumerate(_scalars(b, starts)):
        limit = most.get(d)
        made.append(b.convert(start, wide) if limit is None else _limited(b, start, limit))
    return [Sized(start, {}) for start in made]


def dynamic_slice(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    x, *starts = xs
    taken = i.attributes["dynamic_slice_sizes"]
    sized = {d: n for d in range(len(x.dims)) if (n := x.of(d)) is not None}
    clamped = _clamped(b, x, starts, {d: _last(b, n, taken[d]) for d, n in sized.items()})
    return plain(i, b, [x, *clamped], {d: b.binary(Op.MINIMUM, n, taken[d]) for d, n in sized.items()})


def dynamic_update_slice(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Elements of the update beyond its sizes leave the array unchanged."""
    x, update, *starts = xs
    rank = len(x.dims)
    sized = [d for d in range(rank) if x.of(d) is not None or update.of(d) is not None]
    clamped = _clamped(b, x, starts, {d: _last(b, present(b, x, d), present(b, update, d)) for d in sized})
    sizes = {d: x.of(d) for d in range(rank)}
    if not update.sizes:
        return plain(i, b, [x, update, *clamped], sizes)
    room = [PadDim(0, n if update.of(d) is not None else 0) for d, n in enumerate(update.dims)]
    grown = b.pad(b.plain(x.value), zero(b, x.value.shape.dtype), room)  # so that an update may extend beyond the bound
    places = [b.binary(Op.MAXIMUM, s.value, 0) for s in clamped]
    old = b.dynamic_slice(grown, places, update.dims)
    test = inside(b, update)
    new = old if test is None else b.select(test, b.plain(update.value), old)
    whole = b.dynamic_update_slice(grown, new, places)
    for d, n in enumerate(x.dims):
        whole = b.slice_in(whole, d, 0, n)
    return Sized(whole, sizes_of(sizes))


# --- gather ----------------------------------------------------------------------------------------------------------


def gather(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """Slices of a whole dimension keep its size; batch dimensions keep those of the indices.

    A gather from an array without present elements is zero. None if the index vector has a dynamic size.
    """
    x, indices = xs
    a, taken = i.attributes, i.attributes["slice_sizes"]
    if indices.of(a["index_vector_dim"]) is not None:
        return None
    dropped = {*a.get("collapsed_slice_dims", ()), *a.get("operand_batching_dims", ())}
    offsets = [d for d in range(len(x.dims)) if d not in dropped]
    sizes: dict[int, Instruction | None] = {}
    for d, to in zip(offsets, a["offset_dims"], strict=True):
        size = x.of(d)
        sizes[to] = None if size is None or taken[d] == 1 != x.dims[d] else b.binary(Op.MINIMUM, size, taken[d])
    batch = [d for d in range(len(indices.dims)) if d != a["index_vector_dim"]]
    rest = [d for d in range(i.shape.rank) if d not in a["offset_dims"]]
    sizes |= {to: indices.of(d) for d, to in zip(batch, rest, strict=True)}
    most = {d: _last(b, n, taken[d]) for d in range(len(x.dims)) if (n := x.of(d)) is not None}
    limits = _vector(b, i, "start_index_map", x, indices, most)
    kept = indices.value if limits is None else _limited(b, indices.value, limits)
    made = plain(i, b, [x, Sized(kept, {})], sizes)
    size = least(b, [n for d in range(len(x.dims)) if (n := x.of(d)) is not None and taken[d]])
    if size is None:
        return made
    nothing = b.constant(0, i.shape.dtype, i.shape.dims)
    return Sized(b.select(b.compare(size, "GT", 0), b.plain(made.value), nothing), made.sizes)


def _vector(b: Builder, i: Instruction, key: str, x: Sized, indices: Sized, most: Dims) -> Instruction | None:
    """An s32 array like the indices, with `most` of the dimension of each component; None if it limits none of them."""
    named, at = i.attributes[key], i.attributes["index_vector_dim"]
    if not any(most.get(d) is not None for d in named):
        return None
    parts = [most.get(d) for d in named]
    scalars = [b.constant(n, DType.S32) if p is None else p for p, n in zip(parts, (x.dims[d] for d in named))]
    if at == len(indices.dims):
        return b.broadcast(scalars[0], indices.dims)
    vector = b.concatenate([b.reshape(p, (1,)) for p in scalars], 0)
    return b.broadcast(vector, indices.dims, (at,))


# --- scatter ---------------------------------------------------------------------------------------------------------


def scatter(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """Ignore indices beyond their sizes, and windows that do not fit within the array's sizes."""
    a, many = i.attributes, len(xs) // 2
    arrays, indices, updates = xs[:many], xs[many], xs[many + 1 :]
    if indices.of(a["index_vector_dim"]) is not None:
        return None
    sizes = {d: least(b, [x.of(d) for x in arrays]) for d in range(len(arrays[0].dims))}
    if _windows_are_full(i, arrays, updates):
        made = plain(i, b, [*arrays, Sized(_known(i, b, arrays[0], indices, updates), {}), *updates], {})
    else:
        made = _by_element(i, b, arrays, indices, updates)
    return leaves_of(made, sizes)


def _windows(i: Instruction, rank: int) -> list[tuple[int, int]]:
    """(dimension of the operand, dimension of the updates) for each window dimension of a scatter."""
    a = i.attributes
    gone = {*a.get("inserted_window_dims", ()), *a.get("input_batching_dims", ())}
    return list(zip((d for d in range(rank) if d not in gone), a.get("update_window_dims", ()), strict=True))


def _windows_are_full(i: Instruction, arrays: Sequence[Sized], updates: Sequence[Sized]) -> bool:
    """Whether windows have dynamic sizes only where they span a whole dimension of that size."""
    at = i.attributes["scatter_dims_to_operand_dims"]
    return all(
        u.of(w) is None or (x.of(d) is not None and x.dims[d] == u.dims[w] and d not in at)
        for x, u in zip(arrays, updates, strict=True)
        for d, w in _windows(i, len(x.dims))
    )


def _known(i: Instruction, b: Builder, x: Sized, indices: Sized, updates: Sequence[Sized]) -> Instruction:
    """The indices, replaced by one out of bounds where they are beyond their sizes or their window does not fit."""
    a, value = i.attributes, indices.value
    if value.shape.dtype.bits < 32:
        value = b.convert(value, DType.S32)
    dtype = value.shape.dtype
    nowhere = b.constant(-1 if dtype.is_signed else 2**dtype.bits - 1, dtype)
    batch = [d for d in range(len(indices.dims)) if d != a["index_vector_dim"]]
    free = [d for d in range(len(updates[0].dims)) if d not in a.get("update_window_dims", ())]
    sizes = {d: least(b, [indices.of(d), *(u.of(f) for u in updates)]) for d, f in zip(batch, free, strict=True)}
    value = masked(b, Sized(value, sizes_of(sizes)), batch, nowhere)
    extents = {d: updates[0].dims[w] for d, w in _windows(i, len(x.dims))}
    most = {d: b.binary(Op.SUBTRACT, n, extents[d]) for d in extents if (n := x.of(d)) is not None and extents[d] > 1}
    limits = _vector(b, i, "scatter_dims_to_operand_dims", x, Sized(value, {}), most)
    if limits is None:
        return value
    fits = b.compare(b.convert(value, DType.S64), "LE", b.convert(limits, DType.S64))
    return b.select(fits, b.plain(value), b.broadcast(nowhere, value.shape.dims))


def _moved(b: Builder, x: Sized, order: Sequence[int]) -> Sized:
    return Sized(b.transpose(b.plain(x.value), order), sizes_of({k: x.of(d) for k, d in enumerate(order)}))


def _by_element(i: Instruction, b: Builder, arrays: Sequence[Sized], indices: Sized, updates: Sequence[Sized]) -> Sized:
    """The same scatter with an index vector for each element of the updates."""
    e = _Elements.of(i, b, arrays, indices, updates)
    sizes = {k: least(b, [indices.of(d), *(u.of(k) for u in e.updates)]) for k, d in enumerate(e.batch)}
    sizes |= {k: least(b, [u.of(k) for u in e.updates]) for k in range(len(e.batch), len(e.dims))}
    valid = inside(b, Sized(e.updates[0].value, sizes_of(sizes)))
    assert valid is not None
    places = []
    for d in range(e.rank):
        first, extent = e.start(b, d), b.constant(1, DType.S32)
        place = first
        if d in e.window_of:
            k = e.window_of[d]
            place = b.binary(Op.ADD, first, b.iota(DType.S64, e.dims, k))
            extent = sizes.get(k) or b.constant(e.dims[k], DType.S32)
        last = b.convert(b.binary(Op.SUBTRACT, present(b, arrays[0], d), extent), DType.S64)
        fits = b.binary(Op.AND, b.compare(first, "GE", 0), b.compare(first, "LE", last))
        valid = b.binary(Op.AND, valid, fits)
        places.append(place)
    return Sized(_scatter_each(i, b, arrays, e, _columns(b, places, valid, e.dims)), {})


@dataclass(frozen=True)
class _Elements:
    """A scatter by elements of its updates, whose dimensions are the batch dimensions, then the window dimensions.

    window_of: {dimension of the array: dimension of the updates that counts along it}. batch: dimensions of the indices
    without the index vector. vectors: the indices as s64.
    """

    instruction: Instruction
    rank: int
    updates: Sequence[Sized]
    window_of: Mapping[int, int]
    batch: Sequence[int]
    vectors: Instruction

    @classmethod
    def of(
        cls, i: Instruction, b: Builder, arrays: Sequence[Sized], indices: Sized, updates: Sequence[Sized]
    ) -> _Elements:
        rank = len(arrays[0].dims)
        windows, at = dict(_windows(i, rank)), i.attributes["index_vector_dim"]
        free = [d for d in range(len(updates[0].dims)) if d not in windows.values()]
        moved = [_moved(b, u, [*free, *windows.values()]) for u in updates]
        window_of = {d: len(free) + n for n, d in enumerate(windows)}
        batch = [d for d in range(len(indices.dims)) if d != at]
        return cls(i, rank, moved, window_of, batch, b.convert(b.plain(indices.value), DType.S64))

    @property
    def dims(self) -> tuple[int, ...]:
        return self.updates[0].dims

    def start(self, b: Builder, d: int) -> Instruction:
        """The start of each element's window in dimension d of the array."""
        a = self.instruction.attributes
        batching = dict(zip(a.get("input_batching_dims", ()), a.get("scatter_indices_batching_dims", ()), strict=True))
        components = list(a["scatter_dims_to_operand_dims"])
        if d in batching:
            return b.iota(DType.S64, self.dims, self.batch.index(batching[d]))
        if d not in components:
            return b.constant(0, DType.S64, self.dims)
        at, k, given = a["index_vector_dim"], components.index(d), self.vectors.shape.dims
        part = self.vectors if at == len(given) else b.slice_in(self.vectors, at, k, k + 1)
        part = b.reshape(part, [given[n] for n in self.batch])
        if not self.batch:
            return b.broadcast(b.reshape(part, ()), self.dims)
        return b.broadcast(part, self.dims, tuple(range(len(self.batch))))


def _columns(b: Builder, places: Sequence[Instruction], valid: Instruction, dims: tuple[int, ...]) -> Instruction:
    """An index vector for each element, out of bounds where `valid` is false."""
    nowhere = b.constant(-1, DType.S64, dims)
    columns = [b.reshape(b.select(valid, p, nowhere), (*dims, 1)) for p in places]
    return b.concatenate(columns, len(dims)) if columns else b.constant(0, DType.S64, (*dims, 0))


def _scatter_each(
    i: Instruction, b: Builder, arrays: Sequence[Sized], e: _Elements, indices: Instruction
) -> Instruction:
    """The scatter of single elements, each at its own index vector."""
    everywhere = tuple(range(e.rank))
    return b.op(
        Op.SCATTER, static(i.shape).without_layout(), *(b.plain(x.value) for x in arrays), indices,
        *(u.value for u in e.updates), update_window_dims=(), inserted_window_dims=everywhere,
        scatter_dims_to_operand_dims=everywhere, index_vector_dim=len(e.dims), to_apply=i.attributes["to_apply"],
    )  # fmt: skip


RULES: dict[Op, DynamicRule] = {
    Op.DYNAMIC_SLICE: dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: dynamic_update_slice,
    Op.GATHER: gather,
    Op.SCATTER: scatter,
}
