"""Custom calls whose windows XLA pads by the present sizes.

With padding_type=PADDING_SAME a window has ceil(size / stride) positions. Half of the padding that they need, rounded
down, precedes the first element. The amount is known at run time only, so the array is shifted by it and then read by a
window without padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...hlo.attributes import PadDim, Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ..building import Builder
from ..expand.select_and_scatter import select_then_scatter
from .convolution import convolution
from .values import DynamicRule, Sized, inside, leaves_of, masked, present, sizes_of, zero
from .windows import folded, reach_of


@dataclass(frozen=True)
class _Shift:
    """The shift of one dimension.

    before: the padding at run time, at most `room` elements. length: number of elements that the windows cover.
    """

    before: Instruction
    room: int
    length: int


def _pads_by_size(i: Instruction) -> bool:
    """Whether the call uses PADDING_SAME; PADDING_VALID pads nothing."""
    return i.attributes.get("padding_type", "PADDING_VALID") == "PADDING_SAME"


def _forward(b: Builder, size: Instruction, reach: int, stride: int) -> tuple[Instruction, Instruction]:
    """(number of window positions, padding before the first element) with PADDING_SAME."""
    count = b.binary(Op.DIVIDE, b.binary(Op.ADD, size, stride - 1), stride)
    met = b.binary(Op.ADD, b.binary(Op.MULTIPLY, b.binary(Op.SUBTRACT, count, 1), stride), reach)
    padding = b.binary(Op.MAXIMUM, b.binary(Op.SUBTRACT, met, size), 0)
    return count, b.binary(Op.DIVIDE, padding, 2)


def _shifted(b: Builder, x: Instruction, fill: Instruction, shifts: Mapping[int, _Shift]) -> Instruction:
    dims = x.shape.dims
    room = [PadDim(s.room, max(s.length - n, 0)) if (s := shifts.get(d)) else PadDim(0, 0) for d, n in enumerate(dims)]
    grown = b.pad(b.plain(x), fill, room)
    starts = [zero(b, DType.S32)] * len(dims)
    for d, s in shifts.items():
        starts[d] = b.binary(Op.SUBTRACT, b.constant(s.room, DType.S32), s.before)
    return b.dynamic_slice(grown, starts, [shifts[d].length if d in shifts else n for d, n in enumerate(dims)])


def _bare(w: WindowDim) -> WindowDim:
    return replace(w, pad_low=0, pad_high=0, lhs_dilate=1)


def _rest(x: Sized, b: Builder, shifts: Mapping[int, _Shift], interior: Sequence[PadDim] = ()) -> Sized:
    """The array shifted, zero beyond its sizes, keeping the sizes of its other dimensions only."""
    fill = zero(b, x.value.shape.dtype)
    value = masked(b, x, list(shifts), fill)
    if interior:
        value = b.pad(b.plain(value), fill, interior)
    return Sized(_shifted(b, value, fill, shifts), {k: s for k, s in x.sizes.items() if k[1] not in shifts})


def _convolved(i: Instruction, b: Builder, xs: Sequence[Sized], dims: Sequence[WindowDim]) -> Sized | None:
    kept = ("dim_labels", "feature_group_count", "batch_group_count", "operand_precision", "algorithm")
    attributes = {k: v for k, v in i.attributes.items() if k in kept} | {"window": Window(tuple(dims))}
    operands = tuple(x.value for x in xs)
    plain = Instruction(Op.CONVOLUTION, i.name, i.shape.without_layout(), operands, attributes, i.location)
    return convolution(plain, b, xs)


def _resized(made: Sized | None, sizes: Mapping[int, Instruction]) -> Sized | None:
    return None if made is None else Sized(made.value, {**made.sizes, **sizes_of(sizes)})


def convolution_forward(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    x, kernel = xs
    labels, dims = i.attributes["dim_labels"], list(i.attributes["window"].dims)
    shifts, sizes = {}, {}
    for n, (d, to) in enumerate(zip(labels.input_spatial, labels.output_spatial, strict=True)):
        size, w = x.of(d), dims[n]
        if size is not None and _pads_by_size(i):
            sizes[to], before = _forward(b, size, reach_of(w), w.stride)
            length = max(i.shape.dims[to] - 1, 0) * w.stride + reach_of(w)
            shifts[d], dims[n] = _Shift(before, reach_of(w), length), _bare(w)
    return _resized(_convolved(i, b, [_rest(x, b, shifts), kernel], dims), sizes)


def convolution_input_grad(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    wanted, gradient, kernel = xs
    dynamic = i.shape.dynamic or (False,) * i.shape.rank
    labels, dims = i.attributes["dim_labels"], list(i.attributes["window"].dims)
    shifts, sizes = {}, {}
    interior = [PadDim(0, 0)] * len(gradient.dims)
    for n, (d, to) in enumerate(zip(labels.input_spatial, labels.output_spatial, strict=True)):
        w, bound = dims[n], i.shape.dims[to]
        if gradient.of(d) is None and not dynamic[to]:
            continue
        size = b.reshape(b.slice_in(b.convert(b.plain(wanted.value), DType.S32), 0, to, to + 1), ())
        sizes[to] = b.binary(Op.MAXIMUM, b.binary(Op.MINIMUM, size, bound), 0)
        low = b.constant(reach_of(w) - 1, DType.S32)
        if _pads_by_size(i):
            low = b.binary(Op.SUBTRACT, low, _forward(b, sizes[to], reach_of(w), w.lhs_dilate)[1])
        shifts[d], dims[n] = _Shift(low, reach_of(w), max(bound - 1, 0) * w.stride + reach_of(w)), _bare(w)
        interior[d] = PadDim(0, 0, w.lhs_dilate - 1)
    return _resized(_convolved(i, b, [_rest(gradient, b, shifts, interior), kernel], dims), sizes)


def convolution_kernel_grad(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    x, gradient = xs
    labels, dims = i.attributes["dim_labels"], list(i.attributes["window"].dims)
    shifts = {}
    spatial = zip(labels.input_spatial, labels.kernel_spatial, labels.output_spatial, strict=True)
    for n, (d, k, to) in enumerate(spatial):
        if x.of(d) is None and gradient.of(k) is None:
            continue
        w, taken = dims[n], max(i.shape.dims[to] - 1, 0) * dims[n].stride
        before = _forward(b, present(b, x, d), taken + 1, w.rhs_dilate)[1] if _pads_by_size(i) else zero(b, DType.S32)
        shifts[d], dims[n] = _Shift(before, taken + 1, taken + reach_of(w)), _bare(w)
    return _convolved(i, b, [_rest(x, b, shifts), gradient], dims)


# --- windows ---------------------------------------------------------------------------------------------------------


def _same_windows(
    i: Instruction, b: Builder, x: Sized, places: Sequence[int]
) -> tuple[dict[int, _Shift], dict[int, Instruction | None], Window]:
    """(shifts of dimensions with sizes, number of window positions there, the window without padding).

    places: bounds of the numbers of positions.
    """
    shifts: dict[int, _Shift] = {}
    counts: dict[int, Instruction | None] = {}
    dims = []
    for d, w in enumerate(i.attributes["window"].dims):
        size = x.of(d)
        if size is not None:
            count, before = _forward(b, size, reach_of(w), w.stride)
            counts[d] = count
            shifts[d], w = _Shift(before, reach_of(w), max(places[d] - 1, 0) * w.stride + reach_of(w)), _bare(w)
        dims.append(w)
    return shifts, counts, Window(tuple(dims))


def _there(b: Builder, x: Sized, shifts: Mapping[int, _Shift]) -> Instruction | None:
    test = inside(b, x)
    return None if test is None else _shifted(b, test, b.constant(False, DType.PRED), shifts)


def reduce_window(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    if len(xs) != 2:
        return None
    x, start = xs
    shifts, counts, window = _same_windows(i, b, x, i.shape.dims)
    value = _shifted(b, x.value, zero(b, x.value.shape.dtype), shifts)
    attributes = {"window": window, "to_apply": i.called()[0]}
    plain = Instruction(
        Op.REDUCE_WINDOW, i.name, i.shape.without_layout(), (value, start.value), attributes, i.location
    )
    return leaves_of(folded(plain, b, [value], [start.value], _there(b, x, shifts)), counts)


def select_and_scatter(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    x, source, init = xs
    shifts, _, window = _same_windows(i, b, x, source.dims)
    value = _shifted(b, x.value, zero(b, x.value.shape.dtype), shifts)
    select, scatter = i.called()
    attributes = {"window": window, "select": select, "scatter": scatter}
    operands = (value, source.value, init.value)
    plain = Instruction(Op.SELECT_AND_SCATTER, i.name, value.shape, operands, attributes, i.location)
    made = select_then_scatter(plain, b, _there(b, x, shifts), inside(b, source))
    if made is None:
        return None
    room = [PadDim(0, max(n + s.room - s.length, 0) if (s := shifts.get(d)) else 0) for d, n in enumerate(x.dims)]
    starts = [shifts[d].before if d in shifts else zero(b, DType.S32) for d in range(len(x.dims))]
    back = b.dynamic_slice(b.pad(made, init.value, room), starts, x.dims)
    return Sized(back, x.sizes)


TARGETS: dict[str, DynamicRule] = {
    "DynamicConvolutionForward": convolution_forward,
    "DynamicConvolutionInputGrad": convolution_input_grad,
    "DynamicConvolutionKernelGrad": convolution_kernel_grad,
    "DynamicReduceWindowSamePadding": reduce_window,
    "DynamicSelectAndScatterSamePadding": select_and_scatter,
}
"""Rules by custom-call target."""
