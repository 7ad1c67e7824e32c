"""Opcodes that only move elements: the position in an operand of the element at a position of the result."""

from __future__ import annotations

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from .code import Place, Var
from .elemental import At, Elemental, ElementRule, Value, bits_of, from_bits, stored_bits
from .scalars import convert, wrap
from .types import c_type, constant, element


def _constant(e: Elemental, i: Instruction, at: At) -> Value:
    flat = np.ascontiguousarray(i.literal.array).reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    if (raw == raw[:1]).all():
        return e.code.constant(constant(i.literal))
    dtype, size = i.shape.dtype, i.shape.dtype.component.bytes
    if i not in e.arrays:
        order = np.asarray(i.literal.array).transpose(i.shape.minor_to_major[::-1]).reshape(-1)
        numbers = np.ascontiguousarray(order).view(f"u{size}").tolist()
        values = ", ".join(f"UINT64_C({n})" if size == 8 else str(n) for n in numbers)
        e.arrays[i] = f"static const uint{8 * size}_t table{len(e.arrays)}[] = {{{values}}};"
    name, place = f"table{list(e.arrays).index(i)}", e.offset(i.shape, at)
    if dtype.is_complex:
        parts = (f"tb_bits_{dtype.component.value}({name}[2 * ({place}) + {n}])" for n in range(2))
        text = f"tb_make_{dtype.value}({', '.join(parts)})"
    elif dtype in (DType.F32, DType.F64) or dtype is DType.PRED:
        text = from_bits(dtype, f"{name}[{place}]")
    else:
        text = wrap(dtype, f"{name}[{place}]") if dtype.is_integer else f"{name}[{place}]"
    return e.code.declare(c_type(dtype), text, *at)


def _broadcast(e: Elemental, i: Instruction, at: At) -> Value:
    return e.value(i.operands[0], tuple(at[d] for d in i.dimensions))


def _reshape(e: Elemental, i: Instruction, at: At) -> Value:
    operand, code = i.operands[0], e.code
    a = [d for d, n in enumerate(i.shape.dims) if n != 1]
    b = [d for d, n in enumerate(operand.shape.dims) if n != 1]
    positions: list[Place] = [0] * operand.shape.rank
    if [i.shape.dims[d] for d in a] == [operand.shape.dims[d] for d in b]:
        for d, target in zip(a, b, strict=True):
            positions[target] = at[d]
        return e.value(operand, tuple(positions))
    while a and b:  # runs of dimensions with equal products
        left, right = [a.pop(0)], [b.pop(0)]
        p, q = i.shape.dims[left[0]], operand.shape.dims[right[0]]
        while p != q:
            if p < q:
                left.append(a.pop(0))
                p *= i.shape.dims[left[-1]]
            else:
                right.append(b.pop(0))
                q *= operand.shape.dims[right[-1]]
        flat: Place = 0
        for d in left:
            flat = code.add(code.multiply(flat, i.shape.dims[d]), at[d])
        sizes = [operand.shape.dims[d] for d in right]
        for d, place in zip(right, code.split(flat, sizes, range(len(sizes))[::-1]), strict=True):
            positions[d] = place
    return e.value(operand, tuple(positions))


def _bitcast(e: Elemental, i: Instruction, at: At) -> Value:
    """The element at the same place in memory, whose type may differ but not its width."""
    operand, code = i.operands[0], e.code
    source, target = operand.shape, i.shape
    if source.dims == target.dims and source.strides == target.strides:
        place = at
    else:
        place = tuple(code.split(e.offset(target, at), source.dims, source.minor_to_major))
    value = e.single(operand, place)
    if source.dtype is target.dtype:
        return value
    return code.declare(c_type(target.dtype), from_bits(target.dtype, bits_of(source.dtype, value.text)), value)


def _transpose(e: Elemental, i: Instruction, at: At) -> Value:
    positions: list[Place] = [0] * len(at)
    for position, d in zip(at, i.dimensions, strict=True):
        positions[d] = position
    return e.value(i.operands[0], tuple(positions))


def _slice(e: Elemental, i: Instruction, at: At) -> Value:
    code = e.code
    bounds = i.attributes["slice"]
    places = (code.add(code.multiply(p, d.stride), d.start) for p, d in zip(at, bounds, strict=True))
    return e.value(i.operands[0], tuple(places))


def _reverse(e: Elemental, i: Instruction, at: At) -> Value:
    dims = i.shape.dims
    places = (e.code.subtract(dims[d] - 1, p) if d in i.dimensions else p for d, p in enumerate(at))
    return e.value(i.operands[0], tuple(places))


def chosen(e: Elemental, condition: str, dtype: DType, then, otherwise) -> Var:
    """The element of one of two branches; only that is computed."""
    code = e.code
    name = code.variable(c_type(dtype))
    with code.block(f"if ({condition})", barrier=True):
        code.line(f"{name} = {then()};")
    with code.block("else", barrier=True):
        code.line(f"{name} = {otherwise()};")
    return code.local(name)


def _pad(e: Elemental, i: Instruction, at: At) -> Value:
    operand, filler = i.operands
    outside = e.scalar(filler)
    if operand.shape.size == 0:
        return outside
    code, positions, conditions = e.code, [], []
    for place, size, d in zip(at, operand.shape.dims, i.attributes["padding"], strict=True):
        moved, step = code.subtract(place, d.low), d.interior + 1
        last = (size - 1) * step
        if isinstance(moved, int):
            if not 0 <= moved <= last or moved % step:
                return outside
            positions.append(moved // step)
            continue
        if d.low > 0 or d.high > 0 or step > 1:
            conditions.append(f"(uint64_t){moved} <= {last}")
        if step > 1:
            conditions.append(f"{moved} % {step} == 0")
        positions.append(moved if step == 1 else code.declare("int64_t", f"{moved} / {step}", moved))
    if not conditions:
        return e.value(operand, tuple(positions))
    inside = " && ".join(conditions)
    return chosen(e, inside, i.shape.dtype, lambda: e.value(operand, tuple(positions)), lambda: outside)


def _concatenate(e: Elemental, i: Instruction, at: At) -> Value:
    """By a chain of branches, of which one is taken."""
    code, d = e.code, i.dimensions[0]
    operands = [o for o in i.operands if o.shape.dims[d]]
    place = at[d]
    if isinstance(place, int):
        start = 0
        for operand in operands:
            if place < start + operand.shape.dims[d]:
                return e.value(operand, (*at[:d], place - start, *at[d + 1 :]))
            start += operand.shape.dims[d]
    name, start = code.variable(c_type(i.shape.dtype)), 0
    for number, operand in enumerate(operands):
        end = start + operand.shape.dims[d]
        head = f"if ({place} < {end})" if number == 0 else f"else if ({place} < {end})"
        with code.block("else" if number == len(operands) - 1 and number else head, barrier=True):
            inner = code.subtract(place, start)
            code.line(f"{name} = {e.value(operand, (*at[:d], inner, *at[d + 1 :]))};")
        start = end
    return code.local(name)


def _iota(e: Elemental, i: Instruction, at: At) -> Value:
    dtype, place = i.shape.dtype, at[i.attributes["iota_dimension"]]
    source = DType.U64 if dtype.is_unsigned else DType.S64
    text = f"({c_type(source)}){place}"
    return e.code.declare(c_type(dtype), convert(source, dtype, text), place)


def start_of(e: Elemental, start: Instruction, value: Var) -> Var:
    """A start index as an int64_t; larger numbers of u64 become the largest."""
    text = f"(int64_t){value}"
    if start.shape.dtype is DType.U64:
        text = f"{value} > INT64_MAX ? INT64_MAX : {text}"
    return e.code.declare("int64_t", text, value)


def starts_of(e: Elemental, starts, limits) -> list[Place]:
    """Start indices, clamped so that the slice lies in the operand."""
    found: list[Place] = []
    for start, limit in zip(starts, limits, strict=True):
        found.append(0 if limit <= 0 else e.code.clamp(start_of(e, start, e.scalar(start)), limit))
    return found


def _dynamic_slice(e: Elemental, i: Instruction, at: At) -> Value:
    operand, *starts = i.operands
    limits = [n - m for n, m in zip(operand.shape.dims, i.shape.dims, strict=True)]
    begins = starts_of(e, starts, limits)
    return e.value(operand, tuple(e.code.add(b, p) for b, p in zip(begins, at, strict=True)))


def _dynamic_update_slice(e: Elemental, i: Instruction, at: At) -> Value:
    operand, update, *starts = i.operands
    if update.shape.size == 0:
        return e.value(operand, at)
    limits = [n - m for n, m in zip(operand.shape.dims, update.shape.dims, strict=True)]
    begins = starts_of(e, starts, limits)
    places = tuple(e.code.subtract(p, b) for b, p in zip(begins, at, strict=True))
    sizes = zip(places, update.shape.dims, operand.shape.dims, strict=True)
    inside = " && ".join(f"(uint64_t){p} < {m}" for p, m, n in sizes if m != n)
    if not inside:
        return e.value(update, places)
    return chosen(e, inside, i.shape.dtype, lambda: e.value(update, places), lambda: e.value(operand, at))


def _bitcast_convert(e: Elemental, i: Instruction, at: At) -> Value:
    """The same bits as another type. If the widths differ, the last dimension is added or removed."""
    operand, code = i.operands[0], e.code
    source, target = operand.shape.dtype, i.shape.dtype
    type_ = c_type(target)
    if source is target:
        return e.value(operand, at)
    if operand.shape.rank == i.shape.rank:
        value = e.single(operand, at)
        if source is DType.C128 or target is DType.C128:
            return value
        return code.declare(type_, from_bits(target, bits_of(source, value.text)), value)
    if operand.shape.rank < i.shape.rank:
        value, part = e.single(operand, at[:-1]), at[-1]
        if source is DType.C128:
            chosen_part = f"{part} * {stored_bits(target)} < 64 ? {value}.re : {value}.im"
            half = code.declare("uint64_t", f"tb_f64_bits({chosen_part})", value, part)
            shifted = f"({half} >> (({part} * {stored_bits(target)}) & 63))"
            return code.declare(type_, from_bits(target, shifted), half, part)
        shifted = f"({bits_of(source, value.text)} >> ({part} * {stored_bits(target)}))"
        return code.declare(type_, from_bits(target, shifted), value, part)
    values = [e.single(operand, (*at, k)) for k in range(operand.shape.dims[-1])]
    if target is DType.C128:
        middle = len(values) // 2
        parts = [_joined(source, values[:middle]), _joined(source, values[middle:])]
        return code.declare(type_, f"tb_make_c128(tb_bits_f64({parts[0]}), tb_bits_f64({parts[1]}))", *values)
    return code.declare(type_, from_bits(target, f"({_joined(source, values)})"), *values)


def _joined(source: DType, values: list[Var]) -> str:
    return " | ".join(f"{bits_of(source, v.text)} << {k * stored_bits(source)}" for k, v in enumerate(values))


def _get_tuple_element(e: Elemental, i: Instruction, at: At) -> Value:
    source, number = i.operands[0], i.attributes["index"]
    if source.opcode is Op.TUPLE:
        return e.value(source.operands[number], at)
    values = e.value(source, at)
    assert isinstance(values, tuple)
    return values[number]


def _map(e: Elemental, i: Instruction, at: At) -> Value:
    return e.apply(i.called()[0], [e.single(o, at) for o in i.operands])


def _gather(e: Elemental, i: Instruction, at: At) -> Value:
    source, indices = i.operands
    code, a = e.code, i.attributes
    if not source.shape.size:
        return code.constant(element(source.shape.dtype, np.zeros((), source.shape.dtype.numpy)[()]))
    vector, offset_dims = a["index_vector_dim"], a["offset_dims"]
    batch = [p for d, p in enumerate(at) if d not in offset_dims]
    offsets = iter([at[d] for d in offset_dims])
    batching = dict(zip(a.get("operand_batching_dims", ()), a.get("start_indices_batching_dims", ()), strict=True))
    starts = index_vector(e, indices, vector, batch, a["start_index_map"])
    places: list[Place] = []
    for d, (size, length) in enumerate(zip(source.shape.dims, a["slice_sizes"], strict=True)):
        start: Place = 0
        if d in batching:
            start = batch[batching[d] - (batching[d] > vector)]
        elif d in starts:
            start = code.clamp(starts[d], size - max(length, 1))
        whole = d in a["collapsed_slice_dims"] or d in batching
        places.append(start if whole else code.add(start, next(offsets)))
    return e.value(source, tuple(places))


def index_vector(e: Elemental, indices: Instruction, vector: int, batch, components) -> dict[int, Var]:
    """Dimension of the operand → start index there, from the vector at a position of the batch."""
    found = {}
    for number, d in enumerate(components):
        at = list(batch)
        if vector < indices.shape.rank:
            at.insert(vector, number)
        found[d] = start_of(e, indices, e.single(indices, tuple(at)))
    return found


MOVEMENT: dict[Op, ElementRule] = {
    Op.BITCAST: _bitcast,
    Op.BITCAST_CONVERT: _bitcast_convert,
    Op.BROADCAST: _broadcast,
    Op.CONCATENATE: _concatenate,
    Op.CONSTANT: _constant,
    Op.DYNAMIC_SLICE: _dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: _dynamic_update_slice,
    Op.GATHER: _gather,
    Op.GET_TUPLE_ELEMENT: _get_tuple_element,
    Op.IOTA: _iota,
    Op.MAP: _map,
    Op.PAD: _pad,
    Op.RESHAPE: _reshape,
    Op.REVERSE: _reverse,
    Op.SLICE: _slice,
    Op.TRANSPOSE: _transpose,
}
