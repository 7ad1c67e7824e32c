"""Data movement: maps an index of the result to the element that it comes from. Values stay raw, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...codegen.field.element import constants
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Value
from ..core.elements import Scalar, decode, encode, flatten, raw_type, scalar_types, unflatten, wrap_small
from ..core.graph import Buffer, Node
from ..core.index_arithmetic import limits_of
from ..loops.elemental import Elemental, ElementRule, Indices, Linear, Reads, Reshaped, load_element
from ..numerics.convert import convert_to
from .pieces import concatenate


def select(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    condition = yield node.inputs[0], () if not node.inputs[0].dims else index, False
    first, second = (yield node.inputs[1], index, raw), (yield node.inputs[2], index, raw)
    chosen = [e.b.select(flatten(condition)[0], x, y) for x, y in zip(flatten(first), flatten(second), strict=True)]
    return unflatten(chosen, node.output.dtype)


def broadcast(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    source = node.inputs[0]
    if isinstance(index, Linear):
        return (yield source, _zeros(source), raw)
    return (
        yield (
            source,
            tuple(0 if source.dims[i] == 1 else index[d] for i, d in enumerate(node.attributes.get("dimensions", ()))),
            raw,
        )
    )


def _zeros(buffer: Buffer) -> Indices:
    return (0,) * len(buffer.dims)


def copy(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    return (yield node.inputs[0], index, raw)


def reshape(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    if not isinstance(index, Linear):
        dims = node.output.dims
        index = Reshaped.of(regroup(e.b, index, dims, node.inputs[0].dims), _place(e.b, index, dims))
    return (yield node.inputs[0], index, raw)


def bitcast(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    """The element at the same place in memory; if the types differ, as another type of the same width."""
    source, target = node.inputs[0], node.output
    if not isinstance(index, Linear):
        to, via = _memory_order(target), _memory_order(source)
        slowest_first, dims = tuple(index[d] for d in to), [target.dims[d] for d in to]
        physical = regroup(e.b, slowest_first, dims, [source.dims[d] for d in via])
        logical: list[Index] = [0] * len(via)
        for d, i in zip(via, physical, strict=True):
            logical[d] = i
        same = target.shape.is_row_major and isinstance(index, Reshaped)
        place = _place(e.b, index if same else slowest_first, dims)
        index = Reshaped.of(tuple(logical), place) if source.shape.is_row_major else tuple(logical)
    if source.dtype is target.dtype:
        return (yield source, index, raw)
    return _reinterpret(e.b, (yield source, index, True), source.dtype, target.dtype, raw)


def _memory_order(buffer: Buffer) -> list[int]:
    """Dimensions, slowest first."""
    return list(reversed(buffer.shape.minor_to_major))


def _reinterpret(b: Builder, value: Scalar, source: DType, target: DType, raw: bool) -> Scalar:
    if not isinstance(value, tuple):
        value = _whole_pred(b, b.bitcast(value, raw_type(b.types, target)), source, target)
    return value if raw else decode(b, target, value)


def _whole_pred(b: Builder, byte: Value, source: DType, target: DType) -> Value:
    """Any byte but 0 is a true pred, which is stored as 1."""
    if target is not DType.PRED or source is DType.PRED:
        return byte
    return b.extui(b.compare_integers("ne", byte, b.constant(0, b.types.i8)), b.types.i8)


def regroup(b: Builder, index: Sequence[Index], dims: Sequence[int], target: Sequence[int]) -> Indices:
    """The index of the same element after a row-major reshape. Runs of dimensions with equal products are converted
    separately.
    """
    if 0 in dims or 0 in target:  # no element is ever requested
        return (0,) * len(target)
    result: list[Index] = []
    i = j = 0
    while i < len(dims) or j < len(target):
        i0, j0 = i, j
        left = right = 1
        if i < len(dims):
            left, i = dims[i], i + 1
        if j < len(target):
            right, j = target[j], j + 1
        while left != right:
            if left < right:
                left, i = left * dims[i], i + 1
            else:
                right, j = right * target[j], j + 1
        result += _split(b, _join(b, index[i0:i], dims[i0:i]), target[j0:j])
    return tuple(result)


def _place(b: Builder, index: Indices, dims: Sequence[int]) -> Index:
    """The number of an element in row-major order."""
    return index.place if isinstance(index, Reshaped) else _join(b, index, dims)


def _join(b: Builder, index: Sequence[Index], dims: Sequence[int]) -> Index:
    total: Index = 0
    for i, size in zip(index, dims, strict=True):
        total = b.add(b.mul(total, size), i if size != 1 else 0)
    return total


def _split(b: Builder, offset: Index, dims: Sequence[int]) -> list[Index]:
    result: list[Index] = []
    for d, size in enumerate(dims):
        part = b.div(offset, max(math.prod(dims[d + 1 :]), 1))
        if size == 1:
            part = 0
        elif math.prod(dims[:d]) > 1:
            part = b.rem(part, size)
        result.append(part)
    return result


def transpose(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    moved: list[Index] = [0] * len(index)
    for i, d in zip(index, node.attributes["dimensions"], strict=True):
        moved[d] = i
    return (yield node.inputs[0], tuple(moved), raw)


def slice_(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    bounds = node.attributes["slice"]
    return (
        yield (
            node.inputs[0],
            tuple(e.b.add(e.b.mul(i, s.stride), s.start) for i, s in zip(index, bounds, strict=True)),
            raw,
        )
    )


def reverse(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    flipped, dims = node.attributes["dimensions"], node.output.dims
    return (
        yield node.inputs[0], tuple(e.b.sub(dims[d] - 1, i) if d in flipped else i for d, i in enumerate(index)), raw
    )


def iota(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    b, dtype = e.b, node.output.dtype
    d = node.attributes["iota_dimension"]
    i = b.materialize(index[0] if isinstance(index, Linear) else index[d])
    value = (
        convert_to(b, DType.S32, dtype, b.trunci(i, b.types.i32))
        if node.output.dims[d] < 2**31
        else convert_to(b, DType.S64, dtype, i)
    )
    if dtype in (DType.S32, DType.S64) and node.output.dims[d] < 2**31:
        b.remember(("position", value), (i, node.output.dims[d]))  # for indices: LLVM does not see through the width
    return encode(b, dtype, value) if raw else value
    yield


def pad(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    """The operand's element if there is one, otherwise the padding value."""
    b, source = e.b, node.inputs[0]
    conditions: list[Value] = []
    place: list[Index] = []
    for i, size, p in zip(index, source.dims, node.attributes["padding"], strict=True):
        if not (p.low or p.high or p.interior):
            place.append(i)
            continue
        shifted = b.sub(i, p.low)
        step = p.interior + 1
        end = max((size - 1) * step + 1, 0)
        low, high = limits_of(shifted) or (-1, end + 1)
        if high <= 0 or low >= end:
            return (yield node.inputs[1], (), raw)
        if low < 0 or high > end:
            conditions.append(b.compare_integers("ult", b.materialize(shifted), b.constant(end, b.types.i64)))
        if step > 1:
            conditions.append(b.compare_integers("eq", b.materialize(b.rem(shifted, step)), b.constant(0, b.types.i64)))
        place.append(b.div(shifted, step))
    if not conditions:
        return (yield source, tuple(place), raw)
    return (yield from _either(e, node, conditions, (source, tuple(place), raw), (node.inputs[1], (), raw)))


def _either(e: Elemental, node: Node, conditions: list[Value], yes, no) -> Reads:
    """Read one of two elements; the other one is not read."""
    b, raw = e.b, yes[2]
    branch = b.branch(b.all_of(conditions), scalar_types(b.types, node.output.dtype, raw))
    for side, request in enumerate((yes, no)):
        with branch.side(side) as results:
            results += flatten((yield request))
    return unflatten(branch.values, node.output.dtype)


def clamped_starts(e: Elemental, indices: Sequence[Buffer], dims: Sequence[int], sizes: Sequence[int]):
    """Start indices of a dynamic slice, clamped so that the slice stays inside (a generator of reads)."""
    b, starts = e.b, list[Index]()
    for buffer, whole, size in zip(indices, dims, sizes, strict=True):
        if whole == size:
            starts.append(0)
            continue
        value = flatten((yield buffer, (), False))[0]
        wide = convert_to(b, buffer.dtype, DType.S64, value)
        if buffer.dtype is DType.U64:
            wide = b.binary("minui", flatten(wide)[0], whole - size)
        else:
            wide = b.least(b.greatest(flatten(wide)[0], 0), whole - size)
        starts.append(wide)
    return starts


def dynamic_slice(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    source = node.inputs[0]
    starts = yield from clamped_starts(e, node.inputs[1:], source.dims, node.output.dims)
    return (yield source, tuple(e.b.add(i, s) for i, s in zip(index, starts, strict=True)), raw)


def dynamic_update_slice(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    b, (target, update) = e.b, node.inputs[:2]
    starts = yield from clamped_starts(e, node.inputs[2:], target.dims, update.dims)
    conditions, place = [], []
    for i, start, size, whole in zip(index, starts, update.dims, target.dims, strict=True):
        at = b.sub(i, start)
        if size != whole:
            conditions.append(b.compare_integers("ult", b.materialize(at), b.constant(size, b.types.i64)))
        place.append(at)
    if not conditions:
        return (yield update, tuple(place), raw)
    return (yield from _either(e, node, conditions, (update, tuple(place), raw), (target, index, raw)))


def bitcast_convert(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    """The same bits. If the widths differ, the last dimension is merged into wider elements or split out of them."""
    source, target = node.inputs[0], node.output
    b, have, want = e.b, source.dtype, target.dtype
    if _memory_bits(have) == _memory_bits(want):
        return _reinterpret(b, (yield source, index, True), have, want, raw)
    have_bits, want_bits = _memory_bits(have), _memory_bits(want)
    if have_bits > want_bits:  # split: the last index selects the part, lowest first
        value = flatten((yield source, index[:-1], True))[0]
        wide = b.bitcast(value, b.types.integer(have.bytes * 8))
        shift = b.materialize(b.mul(index[-1], want_bits))
        amount = shift if have_bits == 64 else b.trunci(shift, wide.type)
        part = b.binary("shrui", wide, amount)
        if have_bits > 8:
            part = b.trunci(part, b.types.integer(want.bytes * 8))
    else:
        wide_type = b.types.integer(want.bytes * 8)
        part = b.constant(0, wide_type)
        for k in range(want_bits // have_bits):
            value = flatten((yield source, (*index, k), True))[0]
            bits = b.bitcast(value, b.types.integer(have.bytes * 8))
            if have_bits < 8:
                bits = b.binary("andi", bits, (1 << have_bits) - 1)
            if want_bits > 8:
                bits = b.extui(bits, wide_type)
            part = b.binary("ori", part, b.binary("shli", bits, k * have_bits))
    if want_bits < 8:
        part = wrap_small(b, want, part) if want.is_integer else b.binary("andi", part, (1 << want.bits) - 1)
    part = _whole_pred(b, b.bitcast(part, raw_type(b.types, want)), have, want)
    return part if raw else decode(b, want, part)


def _memory_bits(dtype: DType) -> int:
    """The width in bits that bitcast-convert assumes; a pred has 8."""
    return 8 if dtype is DType.PRED else dtype.bits


def constant(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    b, dtype = e.b, node.output.dtype
    assert node.literal is not None
    array = node.literal.array
    if not array.size:  # read in a loop without iterations
        array = np.zeros((1,) * array.ndim, dtype.numpy)
    elements = raw_elements(array, node.output)
    if len(elements) == 1 or (elements == elements[0]).all():
        value = _immediate(b, elements[0], dtype)
    else:
        held = elements.reshape(-1)
        held = constants(held, dtype.component) if held.dtype.kind == "f" else held
        value = load_element(b, b.array(held), dtype, e.offset(node.output, index))
    return value if raw else decode(b, dtype, value)
    yield


def raw_elements(array: np.ndarray, buffer: Buffer) -> np.ndarray:
    """[element, part] as raw numpy values (integers of the storage width, or f32 and f64), in memory order."""
    flat = np.ascontiguousarray(np.transpose(array, _memory_order(buffer))).reshape(-1)
    dtype = buffer.dtype
    if dtype.component not in (DType.F32, DType.F64):
        flat = constants(flat, dtype)
    if dtype.component in (DType.F32, DType.F64):
        return flat.view(dtype.component.numpy).reshape(flat.size, -1)
    if dtype.bits < 8 and dtype.is_integer:
        flat = flat.astype(np.int8 if dtype.is_signed else np.uint8)
    return flat.view(np.dtype(f"u{dtype.bytes}")).reshape(flat.size, 1)


def _immediate(b: Builder, values: np.ndarray, dtype: DType) -> Scalar:
    type = raw_type(b.types, dtype)
    parts = [b.number(v, type) for v in values]
    return unflatten(parts, dtype)


def map_(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    operands = []
    for buffer in node.inputs:
        operands.append((yield buffer, index, False))
    value = e.apply(node.bodies[0], operands)[number]
    return encode(e.b, node.outputs[number].dtype, value) if raw else value


RULES: dict[Op, ElementRule] = {
    Op.BITCAST: bitcast,
    Op.BITCAST_CONVERT: bitcast_convert,
    Op.BROADCAST: broadcast,
    Op.CONCATENATE: concatenate,
    Op.CONSTANT: constant,
    Op.COPY: copy,
    Op.DYNAMIC_SLICE: dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: dynamic_update_slice,
    Op.IOTA: iota,
    Op.MAP: map_,
    Op.PAD: pad,
    Op.RESHAPE: reshape,
    Op.REVERSE: reverse,
    Op.SELECT: select,
    Op.SLICE: slice_,
    Op.TRANSPOSE: transpose,
}
