"""Shape inference for opcodes with a window or a computation: reduce, reduce-window, convolution, map, sort, scan, …"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..attributes import ConvolutionDims, Window, WindowDim
from ..dtypes import DType
from ..ir import Computation, Instruction
from ..opcodes import Op
from ..records import replace
from ..shapes import UNBOUNDED, Shape, tuple_shape
from .rules import (
    arrays,
    broken,
    called,
    check_parameters,
    dims_in_range,
    higher,
    is_dynamic,
    make,
    one_dimension,
    same,
    same_dims,
    same_dtype,
    same_size,
    same_up_to_precision,
)

ONE = Window(())


def scalar(dtype: DType) -> Shape:
    return Shape(dtype)


def check_reducer(
    i: Instruction, label: str, region: Computation, inputs: Sequence[Shape], inits: Sequence[Shape]
) -> None:
    """Checks a reducer: it takes N accumulators and N elements, all scalars, and returns N accumulators."""
    n, parameters = len(inputs), region.parameters
    if len(parameters) != 2 * n:
        broken(i, label, f"'{region.name}' takes {len(parameters)} parameters, not {2 * n}")
    root = region.root.shape
    results = root.elements if root.is_tuple else (root,)
    if len(results) != n or any(r.rank or not r.is_array for r in results):
        broken(i, label, f"'{region.name}' returns {root}, not {n} scalar{'s' * (n > 1)}")
    for k in range(n):
        accumulator, element = parameters[k].shape, parameters[n + k].shape
        if not same(results[k], accumulator):
            broken(i, label, f"parameter {k} of '{region.name}' has shape {accumulator}, its result {results[k]}")
        if not same_up_to_precision(results[k], inits[k]):
            broken(i, label, f"'{region.name}' returns {results[k]}, but the init value has shape {inits[k]}")
        if element.rank or not same_dtype(element.dtype, inputs[k].dtype):
            broken(i, label, f"parameter {n + k} of '{region.name}' has shape {element}, not {inputs[k].dtype.value}[]")
        if not same_dtype(element.dtype, results[k].dtype):
            broken(i, label, f"'{region.name}' combines {element} with {results[k]}")


def _inputs_and_inits(i: Instruction, label: str) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    shapes = arrays(i, label)
    if not shapes or len(shapes) % 2:
        broken(i, label, f"takes as many init values as inputs, not {len(shapes)} operands")
    n = len(shapes) // 2
    for s in shapes[1:n]:
        if not same_dims(s, shapes[0]):
            broken(i, label, f"inputs {shapes[0]} and {s} differ in shape")
    return shapes[:n], shapes[n:]


def _results(i: Instruction, label: str, region: Computation, dims: Sequence[int], dynamic: Sequence[bool]) -> Shape:
    root = region.root.shape
    results = [make(r.dtype, dims, dynamic) for r in (root.elements if root.is_tuple else (root,))]
    return tuple_shape(*results) if root.is_tuple else results[0]


def reduce(i: Instruction) -> Shape:
    """REDUCE1: the operands are arrays: N inputs of one shape and N init values. REDUCE2: `dimensions` are distinct and
    in range. REDUCE3: the reducer is valid (check_reducer).
    """
    inputs, inits = _inputs_and_inits(i, "REDUCE1")
    x = inputs[0]
    dims_in_range(i, "REDUCE2", "dimensions", i.dimensions, x.rank)
    region = called(i, "to_apply", "REDUCE3")
    check_reducer(i, "REDUCE3", region, inputs, inits)
    keep = [d for d in range(x.rank) if d not in i.dimensions]
    dynamic = [any(is_dynamic(s, d) for s in inputs) for d in keep]
    return _results(i, "REDUCE3", region, [x.dims[d] for d in keep], dynamic)


def dilated(size: int, dilation: int) -> int:
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_size(size: int, w: WindowDim) -> int:
    """Number of outputs of a window that moves over a dimension of this size."""
    if size == UNBOUNDED:
        return UNBOUNDED
    base = dilated(size, w.lhs_dilate) + w.pad_low + w.pad_high
    reach = dilated(w.size, w.rhs_dilate)
    return 0 if base == 0 or reach > base else (base - reach) // w.stride + 1


def window_sizes(i: Instruction, label: str, sizes: Sequence[int], window: Window) -> list[int]:
    """Checks a window over dimensions of these sizes and returns the sizes of the output."""
    if len(window.dims) != len(sizes):
        broken(i, label, f"the window has {len(window.dims)} dimensions, not {len(sizes)}")
    for d, w in enumerate(window.dims):
        if w.size <= 0 or w.stride <= 0 or w.lhs_dilate < 1 or w.rhs_dilate < 1:
            broken(i, label, f"dimension {d} of the window needs a positive size, stride and dilations")
    return [window_size(s, w) for s, w in zip(sizes, window.dims, strict=True)]


def reduce_window(i: Instruction) -> Shape:
    """REDWIN1: the operands are arrays: N inputs of one shape and N init values. REDWIN2: the window is valid
    (window_sizes). REDWIN3: the reducer is valid (check_reducer).
    """
    inputs, inits = _inputs_and_inits(i, "REDWIN1")
    x = inputs[0]
    window = i.attributes.get("window", ONE)
    sizes = window_sizes(i, "REDWIN2", x.dims, window)
    region = called(i, "to_apply", "REDWIN3")
    check_reducer(i, "REDWIN3", region, inputs, inits)
    return _results(i, "REDWIN3", region, sizes, x.dynamic)


def select_and_scatter(i: Instruction) -> Shape:
    """SELSCAT1: the operands are arrays. SELSCAT2: `select` compares two elements. SELSCAT3: `scatter` is a valid
    reducer. SELSCAT4: the window is valid. SELSCAT5: the source has the window's output shape.
    """
    x, source, init = arrays(i, "SELSCAT1")
    choose, combine = called(i, "select", "SELSCAT2"), called(i, "scatter", "SELSCAT3")
    check_parameters(i, "SELSCAT2", choose, (scalar(x.dtype),) * 2, loose=True)
    if not same(choose.root.shape, scalar(DType.PRED)):
        broken(i, "SELSCAT2", f"'{choose.name}' returns {choose.root.shape}, not pred[]")
    check_reducer(i, "SELSCAT3", combine, (source,), (init,))
    sizes = window_sizes(i, "SELSCAT4", x.dims, i.attributes.get("window", ONE))
    if not same_dims(source, make(x.dtype, sizes)) or not same_dtype(source.dtype, x.dtype):
        broken(i, "SELSCAT5", f"the source {source} must have the window's output shape {make(x.dtype, sizes)}")
    return x


def _labels_fit(i: Instruction, d: ConvolutionDims, lhs: Shape, rhs: Shape) -> None:
    sides = (
        ("input", lhs.rank, (d.input_batch, d.input_feature, *d.input_spatial)),
        ("kernel", rhs.rank, (d.kernel_input_feature, d.kernel_output_feature, *d.kernel_spatial)),
    )
    for side, rank, dims in sides:
        if sorted(dims) != list(range(rank)):
            broken(i, "CONV2", f"dim_labels name {len(dims)} dimensions of the {side}, which has {rank}")


def convolution(i: Instruction) -> Shape:
    """CONV1: the operands are arrays, both complex or both real. CONV2: dim_labels name each dimension once. CONV3:
    group counts are positive; at most one of them is above 1. CONV4: input features = feature_group_count × kernel
    input features. CONV5: output features are a multiple of both group counts. CONV6: the batch is a multiple of
    batch_group_count. CONV7: the window has the kernel's sizes. CONV8: the window is valid.
    """
    lhs, rhs, *_ = arrays(i, "CONV1")
    d = i.attributes["dim_labels"]
    if not isinstance(d, ConvolutionDims):
        broken(i, "CONV2", "dim_labels with '?' belong to custom calls only")
    window = i.attributes.get("window", ONE)
    groups, batches = i.attributes.get("feature_group_count", 1), i.attributes.get("batch_group_count", 1)
    if lhs.dtype.is_complex != rhs.dtype.is_complex:
        broken(i, "CONV1", f"element types of {lhs} and {rhs} differ")
    _labels_fit(i, d, lhs, rhs)
    if groups < 1 or batches < 1 or (groups > 1 and batches > 1):
        broken(i, "CONV3", f"feature_group_count={groups} and batch_group_count={batches}: both ≥ 1, one of them 1")
    features, kernel = lhs.dims[d.input_feature], rhs.dims[d.kernel_input_feature]
    if UNBOUNDED not in (features, kernel) and (features % groups or features // groups != kernel):
        broken(
            i,
            "CONV4",
            f"{features} input features in {groups} groups need {features // groups} kernel input "
            f"features, not {kernel}",
        )
    out = rhs.dims[d.kernel_output_feature]
    if out != UNBOUNDED and (out % groups or out % batches):
        broken(i, "CONV5", f"{out} output features are not a multiple of the {max(groups, batches)} groups")
    batch = lhs.dims[d.input_batch]
    if batch != UNBOUNDED and batch % batches:
        broken(i, "CONV6", f"a batch of {batch} is not a multiple of batch_group_count={batches}")
    kernel_sizes = [rhs.dims[k] for k in d.kernel_spatial]
    if len(window.dims) != len(kernel_sizes) or not all(map(same_size, kernel_sizes, [w.size for w in window.dims])):
        broken(
            i,
            "CONV7",
            f"the window's sizes {[w.size for w in window.dims]} are not the kernel's {kernel_sizes}",
            "write window={size=…}",
        )
    spatial = window_sizes(i, "CONV8", [lhs.dims[k] for k in d.input_spatial], window)
    dims, dynamic = [0] * lhs.rank, [False] * lhs.rank
    dims[d.output_batch] = UNBOUNDED if batch == UNBOUNDED else batch // batches
    dims[d.output_feature] = out
    dynamic[d.output_batch] = is_dynamic(lhs, d.input_batch)
    for n, size in enumerate(spatial):
        dims[d.output_spatial[n]] = size
        dynamic[d.output_spatial[n]] = is_dynamic(lhs, d.input_spatial[n]) or is_dynamic(rhs, d.kernel_spatial[n])
    return make(higher(lhs.dtype, rhs.dtype), dims, dynamic)


def map_(i: Instruction) -> Shape:
    """MAP1: the operands are arrays of one shape. MAP2: `dimensions`, if present, lists all dimensions in order. MAP3:
    the computation takes one scalar per operand and returns a scalar.
    """
    shapes = arrays(i, "MAP1")
    if not shapes or any(not same_dims(s, shapes[0]) for s in shapes):
        broken(i, "MAP1", "needs operands of one shape")
    dims = i.attributes.get("dimensions")
    if dims and list(dims) != list(range(shapes[0].rank)):
        broken(i, "MAP2", f"dimensions={dims} must list all {shapes[0].rank} dimensions in order")
    region = called(i, "to_apply", "MAP3")
    check_parameters(i, "MAP3", region, [scalar(s.dtype) for s in shapes], loose=True)
    if region.root.shape.rank or not region.root.shape.is_array:
        broken(i, "MAP3", f"'{region.name}' returns {region.root.shape}, not a scalar")
    return replace(shapes[0], dtype=region.root.shape.dtype)


def sort(i: Instruction) -> Shape:
    """SORT1: the operands are arrays of one shape. SORT2: `dimensions` names one dimension. SORT3: the comparator takes
    two elements of each operand and returns pred[].
    """
    shapes = arrays(i, "SORT1")
    if any(not same_dims(s, shapes[0]) for s in shapes):
        broken(i, "SORT1", "needs operands of one shape")
    one_dimension(i, "SORT2", shapes[0].rank)
    if "to_apply" in i.attributes:
        region = called(i, "to_apply", "SORT3")
        check_parameters(i, "SORT3", region, [scalar(s.dtype) for s in shapes for _ in range(2)], loose=True)
        if not same(region.root.shape, scalar(DType.PRED)):
            broken(i, "SORT3", f"'{region.name}' returns {region.root.shape}, not pred[]")
    return shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)


def topk(i: Instruction) -> Shape:
    """TOPK1: the operand is an array that is not a scalar. TOPK2: 0 ≤ k ≤ the size of its last dimension."""
    (x,) = arrays(i, "TOPK1")
    k = i.attributes["k"]
    if not x.rank:
        broken(i, "TOPK1", "needs an operand with a dimension")
    if not 0 <= k <= x.dims[-1] and x.dims[-1] != UNBOUNDED:
        broken(i, "TOPK2", f"k={k} is outside [0, {x.dims[-1]}]")
    dims = (*x.dims[:-1], k)
    return tuple_shape(make(x.dtype, dims), make(DType.S32, dims))


def scan(i: Instruction) -> Shape:
    """SCAN1: the operands are arrays; the last num_carries of them are initial carries. SCAN2: `dimensions` names one
    dimension, in which all inputs have the same size. SCAN3: the computation takes a slice of each input and the
    carries, and returns slices of the outputs and the carries.
    """
    shapes = arrays(i, "SCAN1")
    carries = i.attributes.get("num_carries", len(shapes) // 2)
    n = len(shapes) - carries
    if n < 0 or not shapes:
        broken(i, "SCAN1", f"num_carries={carries} for {len(shapes)} operands")
    inputs, inits = shapes[:n], shapes[n:]
    d = one_dimension(i, "SCAN2", (inputs or shapes)[0].rank)
    if any(d >= s.rank or not same_size(s.dims[d], inputs[0].dims[d]) for s in inputs):
        broken(i, "SCAN2", f"inputs differ in the size of dimension {d}")
    region = called(i, "to_apply", "SCAN3")
    slices = [make(s.dtype, s.dims[:d] + s.dims[d + 1 :]) for s in inputs]
    check_parameters(i, "SCAN3", region, (*slices, *inits), loose=True)
    root = region.root.shape
    results = root.elements if root.is_tuple else (root,)
    outputs = len(results) - carries
    if outputs < 0 or not all(map(same_up_to_precision, results[outputs:], inits)):
        broken(i, "SCAN3", f"'{region.name}' returns {root}, which does not end with the carries")
    size = inputs[0].dims[d] if inputs else 0
    whole = [make(r.dtype, (*r.dims[:d], size, *r.dims[d:])) for r in results[:outputs]]
    return tuple_shape(*whole, *results[outputs:]) if root.is_tuple else (*whole, *results[outputs:])[0]


INFER: dict[Op, Callable[[Instruction], Shape]] = {
    Op.REDUCE: reduce,
    Op.REDUCE_WINDOW: reduce_window,
    Op.SELECT_AND_SCATTER: select_and_scatter,
    Op.CONVOLUTION: convolution,
    Op.MAP: map_,
    Op.SORT: sort,
    Op.TOPK: topk,
    Op.SCAN: scan,
}
