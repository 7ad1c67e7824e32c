"""Shape inference for gather and scatter."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Instruction
from ..opcodes import Op
from ..shapes import UNBOUNDED, Shape, tuple_shape
from .rules import arrays, broken, called, dims_in_range, make, same_dims, same_dtype, same_size


def _index_dims(i: Instruction, label: str, indices: Shape) -> list[int]:
    """The sizes of the index array without index_vector_dim. If that equals the rank, vectors of size 1 are implied."""
    at = i.attributes["index_vector_dim"]
    if not indices.dtype.is_integer:
        broken(i, label, f"indices must be integers, not {indices.dtype.value}")
    if not 0 <= at <= indices.rank:
        broken(i, label, f"index_vector_dim {at} is outside [0, {indices.rank}]")
    return [s for d, s in enumerate(indices.dims) if d != at]


def gather(i: Instruction) -> Shape:
    """GATHER1: the operands are arrays. GATHER2: the indices are integers and index_vector_dim is in range. GATHER3:
    offset_dims are sorted, distinct and in range. GATHER4: start_index_map has one distinct entry per index component.
    GATHER5: collapsed and batching dimensions are distinct, in range and sorted. GATHER6: there is one slice size per
    dimension, not above its bound, and at most 1 in a collapsed or batching dimension. GATHER7: batching dimensions of
    operand and indices match in number and size. GATHER8: there is one offset dimension per remaining slice dimension.
    """
    x, indices = arrays(i, "GATHER1")
    a = i.attributes
    batch = _index_dims(i, "GATHER2", indices)
    offset, collapsed, sizes = a["offset_dims"], a["collapsed_slice_dims"], a["slice_sizes"]
    batching, index_batching = a.get("operand_batching_dims", ()), a.get("start_indices_batching_dims", ())
    rank = len(batch) + len(offset)
    dims_in_range(i, "GATHER3", "offset_dims", offset, rank)
    if list(offset) != sorted(offset):
        broken(i, "GATHER3", f"offset_dims {offset} are not sorted")
    _index_map(i, "GATHER4", "start_index_map", indices, x.rank)
    dims_in_range(i, "GATHER5", "collapsed_slice_dims and operand_batching_dims", (*collapsed, *batching), x.rank)
    if list(collapsed) != sorted(collapsed) or list(batching) != sorted(batching):
        broken(i, "GATHER5", "collapsed_slice_dims and operand_batching_dims must be sorted")
    if len(sizes) != x.rank or not all(isinstance(size, int) for size in sizes):
        broken(i, "GATHER6", f"{len(sizes)} slice sizes for {x}")
    for d, (size, bound) in enumerate(zip(sizes, x.dims, strict=True)):
        gone = d in collapsed or d in batching
        if size < 0 or (size > bound and bound != UNBOUNDED) or (gone and size > 1):
            broken(
                i,
                "GATHER6",
                f"slice size {size} of dimension {d} does not suit its bound {bound}"
                + (" and its being collapsed" if gone else ""),
            )
    _batching_pairs(i, "GATHER7", x, indices, batching, index_batching)
    window = [s for d, s in enumerate(sizes) if d not in collapsed and d not in batching]
    if len(window) != len(offset):
        broken(i, "GATHER8", f"{len(offset)} offset_dims for {len(window)} slice dimensions that remain")
    batch_sizes, window_sizes = iter(batch), iter(window)
    return make(x.dtype, [next(window_sizes) if d in offset else next(batch_sizes) for d in range(rank)])


def _index_map(i: Instruction, label: str, key: str, indices: Shape, rank: int) -> None:
    mapping, at = i.attributes[key], i.attributes["index_vector_dim"]
    components = indices.dims[at] if at < indices.rank else 1
    if not same_size(len(mapping), components):
        broken(i, label, f"{key} has {len(mapping)} entries for {components} index components")
    dims_in_range(i, label, key, mapping, rank)


def _batching_pairs(
    i: Instruction, label: str, x: Shape, indices: Shape, dims: tuple[int, ...], index_dims: tuple[int, ...]
) -> None:
    if len(dims) != len(index_dims):
        broken(i, label, f"{len(dims)} operand and {len(index_dims)} index batching dimensions")
    dims_in_range(i, label, "index batching dimensions", index_dims, indices.rank)
    for d, e in zip(dims, index_dims, strict=True):
        if e == i.attributes["index_vector_dim"] or not same_size(x.dims[d], indices.dims[e]):
            broken(i, label, f"batching dimension {d} of {x} does not match dimension {e} of {indices}")


def scatter(i: Instruction) -> Shape:
    """SCATTER1: the operands are N arrays of one shape, indices, and N updates of the arrays' types. SCATTER2: the
    indices are integers and index_vector_dim is in range. SCATTER3: update_window_dims are sorted, distinct and in
    range. SCATTER4: scatter_dims_to_operand_dims has one distinct entry per index component. SCATTER5: inserted and
    batching dimensions are distinct, in range and sorted. SCATTER6: window, inserted and batching dimensions together
    are as many as the operand's. SCATTER7: windows fit into the operand. SCATTER8: the other dimensions of an update
    have the sizes of the index dimensions. SCATTER9: batching dimensions of operand and indices match in number and
    size. SCATTER10: the update computation takes and returns scalars of the right number and types.
    """
    shapes = arrays(i, "SCATTER1")
    if len(shapes) % 2 == 0:
        broken(i, "SCATTER1", f"takes operands, indices and as many updates, not {len(shapes)} operands")
    n = len(shapes) // 2
    xs, indices, updates = shapes[:n], shapes[n], shapes[n + 1 :]
    a, x = i.attributes, shapes[0]
    if not all(same_dims(other, x) for other in xs):
        broken(i, "SCATTER1", "the operands must have one shape")
    batch = _index_dims(i, "SCATTER2", indices)
    window, inserted = a["update_window_dims"], a["inserted_window_dims"]
    batching = a.get("input_batching_dims", ())
    _index_map(i, "SCATTER4", "scatter_dims_to_operand_dims", indices, x.rank)
    dims_in_range(i, "SCATTER5", "inserted_window_dims and input_batching_dims", (*inserted, *batching), x.rank)
    if list(inserted) != sorted(inserted) or list(batching) != sorted(batching):
        broken(i, "SCATTER5", "inserted_window_dims and input_batching_dims must be sorted")
    if len(window) + len(inserted) + len(batching) != x.rank:
        broken(
            i,
            "SCATTER6",
            f"{len(window)} window, {len(inserted)} inserted and {len(batching)} batching dimensions do "
            f"not make up {x}",
        )
    _batching_pairs(i, "SCATTER9", x, indices, batching, a.get("scatter_indices_batching_dims", ()))
    for operand, update in zip(xs, updates, strict=True):
        _scatter_update(i, operand, update, batch, window, (*inserted, *batching))
    _scatter_region(i, xs, updates)
    return xs[0] if n == 1 else tuple_shape(*xs)


def _scatter_update(
    i: Instruction, x: Shape, update: Shape, batch: list[int], window: tuple[int, ...], gone: tuple[int, ...]
) -> None:
    dims_in_range(i, "SCATTER3", "update_window_dims", window, update.rank)
    if list(window) != sorted(window):
        broken(i, "SCATTER3", f"update_window_dims {window} are not sorted")
    if not same_dtype(x.dtype, update.dtype):
        broken(i, "SCATTER1", f"the update {update} must have the type of {x}")
    bounds = [s for d, s in enumerate(x.dims) if d not in gone]
    for d, bound in zip(window, bounds, strict=True):
        if update.dims[d] > bound and UNBOUNDED not in (update.dims[d], bound):
            broken(i, "SCATTER7", f"dimension {d} of the update {update} exceeds the operand's {bound}")
    rest = [s for d, s in enumerate(update.dims) if d not in window]
    if len(rest) != len(batch) or not all(map(same_size, rest, batch)):
        broken(i, "SCATTER8", f"the update's other sizes {rest} must be those of the indices, {batch}")


def _scatter_region(i: Instruction, xs: tuple[Shape, ...], updates: tuple[Shape, ...]) -> None:
    region = called(i, "to_apply", "SCATTER10")
    parameters = region.parameters
    want = [s.dtype for s in (*xs, *updates)]
    if len(parameters) != len(want):
        broken(i, "SCATTER10", f"'{region.name}' takes {len(parameters)} parameters, not {len(want)}")
    for p, dtype in zip(parameters, want, strict=True):
        if p.shape.rank or not same_dtype(p.shape.dtype, dtype):
            broken(i, "SCATTER10", f"parameter '{p.name}' of '{region.name}' must be {dtype.value}[], not {p.shape}")
    results = [leaf for _, leaf in region.root.shape.leaves()]
    if len(results) != len(xs) or any(
        r.rank or not same_dtype(r.dtype, x.dtype) for r, x in zip(results, xs, strict=True)
    ):
        broken(i, "SCATTER10", f"'{region.name}' returns {region.root.shape}, not a scalar for each operand")


INFER: dict[Op, Callable[[Instruction], Shape]] = {Op.GATHER: gather, Op.SCATTER: scatter}
