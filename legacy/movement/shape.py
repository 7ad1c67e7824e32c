"""Opcodes that only move elements: each rule turns an index of the result into indices of its operands."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue
from ..core.registers import I32, I64, Register
from ..loops.elemental import Elemental, ElementRule, Index, Reads, same_order
from ..loops.form import Fit, Results, Task, form
from ..loops.leaf import Leaf
from ..loops.linear import is_bitcast_transpose, is_reshaping_broadcast
from ..loops.memory import constant_array, immediate, is_splat, load
from ..loops.nest import Modes, modes_of, nest, writes
from ..numerics.convert import bits_of, convert, from_bits
from .concatenate import concatenate
from .padded_rows import must_be_only

SHORT_ROW = 8
"""Elements of a row whose interleaved stores LLVM joins to vectors."""


def constant(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    if instruction.shape.size == 1 or is_splat(instruction.literal):
        return immediate(instruction.literal)
    pointer = constant_array(e.code, instruction)
    return load(e.code, pointer, instruction.shape.dtype, index.offset(instruction.shape))
    yield


def broadcast(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand = instruction.operands[0]
    if operand.shape.rank == instruction.shape.rank and instruction.dimensions == tuple(range(operand.shape.rank)):
        return (yield operand, index.within(operand.shape))
    if operand.shape.size == 1:
        return (yield operand, e.scalar(operand.shape))
    if is_reshaping_broadcast(instruction):
        return (yield operand, reshape_index(e.code, index, instruction.shape, operand.shape))
    multi = index.multi
    return (yield operand, Index.at(e.code, operand.shape, [multi[d] for d in instruction.dimensions]))


def reshape(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand = instruction.operands[0]
    return (yield operand, reshape_index(e.code, index, instruction.shape, operand.shape))


def reshape_index(code: Code, index: Index, result: Shape, operand: Shape) -> Index:
    """The position in the operand of the element at `index` of the result: the same place in logical order."""
    if operand.size == 1:
        return Index.at(code, operand, (0,) * operand.rank)
    if index.linear is not None and result.is_row_major and operand.is_row_major:
        return Index(code, operand.dims, tuple(reversed(range(operand.rank))), linear=index.linear)
    positions: list[IndexValue] = [0] * operand.rank
    for result_group, operand_group in _equal_groups(result.dims, operand.dims):
        _reshape_group(code, index, result.dims, result_group, operand.dims, operand_group, positions)
    linear = None
    if result.is_row_major and operand.is_row_major:
        linear = code.weighted_sum(index.multi, result.strides)
    return Index(code, operand.dims, operand.minor_to_major, tuple(positions), linear)


def _equal_groups(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Split the dimensions of two shapes of equal size into runs with equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        left, right = [], []
        p = q = 1
        while True:
            if p <= q and i < len(a) and (p < q or not left):
                p, i = p * a[i], i + 1
                left.append(i - 1)
            elif q < p or (not right and j < len(b)):
                q, j = q * b[j], j + 1
                right.append(j - 1)
            elif p == q:
                break
            else:
                p, i = p * a[i], i + 1
                left.append(i - 1)
        while i < len(a) and a[i] == 1:
            left.append(i)
            i += 1
        while j < len(b) and b[j] == 1:
            right.append(j)
            j += 1
        groups.append((left, right))
    return groups


def _reshape_group(
    code: Code,
    index: Index,
    result: Sequence[int],
    result_group: list[int],
    operand: Sequence[int],
    operand_group: list[int],
    positions: list[IndexValue],
) -> None:
    live = [d for d in operand_group if operand[d] != 1]
    live_result = [d for d in result_group if result[d] != 1]
    if len(live) == len(live_result) == 1:
        positions[live[0]] = index.multi[live_result[0]]
        return
    weight, weights = 1, []
    for d in reversed(live_result):
        weights.append(weight)
        weight *= result[d]
    flat = code.weighted_sum([index.multi[d] for d in live_result], list(reversed(weights)))
    parts = code.split(flat, [operand[d] for d in live])
    for d, part in zip(live, parts, strict=True):
        positions[d] = part


def bitcast(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    """The same bytes in memory order. The dtype may differ if its width does not."""
    operand = instruction.operands[0]
    result, source = instruction.shape, operand.shape
    if source.dims == result.dims and same_order(result.dims, result.minor_to_major, source.minor_to_major):
        value = yield operand, index.within(source)
    else:
        inner = Index.flat(e.code, source, index.offset(result))
        value = yield operand, inner
    if source.dtype is result.dtype:
        return value
    return from_bits(e.code, result.dtype, bits_of(e.code, source.dtype, value))


def transpose(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand = instruction.operands[0]
    if index.positions is None and is_bitcast_transpose(instruction):
        return (yield operand, Index.flat(e.code, operand.shape, index.offset(instruction.shape)))
    positions: list[IndexValue] = [0] * operand.shape.rank
    for position, d in zip(index.multi, instruction.dimensions, strict=True):
        positions[d] = position
    return (yield operand, Index.at(e.code, operand.shape, positions))


def slice_(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand, code = instruction.operands[0], e.code
    positions = [
        code.add(code.multiply(i, d.stride), d.start)
        for i, d in zip(index.multi, instruction.attributes["slice"], strict=True)
    ]
    return (yield operand, Index.at(code, operand.shape, positions))


def reverse(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand, code = instruction.operands[0], e.code
    positions = [
        code.subtract(operand.shape.dims[d] - 1, i) if d in instruction.dimensions else i
        for d, i in enumerate(index.multi)
    ]
    return (yield operand, Index.at(code, operand.shape, positions))


def pad(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand, filler = instruction.operands
    code = e.code
    outside = yield filler, e.scalar(filler.shape)
    if operand.shape.size == 0:
        return outside
    positions, conditions = [], []
    for i, size, d in zip(index.multi, operand.shape.dims, instruction.attributes["padding"], strict=True):
        position, more = _unpad(code, i, size, d.low, d.high, d.interior)
        positions.append(position)
        conditions += more
    if any(isinstance(c, bool) and not c for c in conditions):
        return outside
    checks = [c for c in conditions if isinstance(c, ir.Value)]
    if not checks:
        return (yield operand, Index.at(code, operand.shape, positions))
    branch = code.branch(functools.reduce(code.b.and_, checks))
    inside = yield operand, Index.at(code, operand.shape, positions)
    branch.otherwise()
    return branch.join(inside, outside)


def _unpad(
    code: Code, i: IndexValue, size: int, low: int, high: int, interior: int
) -> tuple[IndexValue, list[ir.Value | bool]]:
    """(position in the operand, conditions under which the operand has an element there)."""
    if low <= 0 and high <= 0 and interior == 0:
        return code.add(i, -low), []
    moved = code.add(i, -low)
    step, b = interior + 1, code.b
    if isinstance(moved, int):
        return max(moved, 0) // step, [0 <= moved < (size - 1) * step + 1 and moved % step == 0]
    end = (size - 1) * step + 1
    first, last = code.limits.of(moved) or (-1, end + 1)
    conditions: list[ir.Value | bool] = []
    if last <= 0 or first >= end:
        conditions.append(False)
    elif first < 0 or last > end:
        conditions.append(b.icmp_unsigned("<", moved, I64(end)))
    if step == 1:
        return moved, conditions
    conditions.append(b.icmp_unsigned("==", b.urem(moved, I64(step)), I64(0)))
    quotient = b.udiv(moved, I64(step))
    code.define(quotient, code.scope)
    return quotient, conditions


def write_padded(e: Elemental, results: Results, short: Modes | None, steps: None) -> None:
    """Write the padding value everywhere, then the operand over it."""
    code, leaf = e.code, results.first
    operand, filler = leaf.instruction.operands
    if short is not None:
        nest(e, leaf.shape, writes(e, results), None, short)
        return
    outside = e.number(filler)
    with code.loop(leaf.shape.size) as i:
        leaf.write(e, Index.flat(code, leaf.shape, i), outside)
    starts, sizes = [], []
    for size, result, d in zip(
        operand.shape.dims, leaf.shape.dims, leaf.instruction.attributes["padding"], strict=True
    ):
        step = d.interior + 1
        first = max(0, -(d.low // step))
        last = min(size - 1, (result - 1 - d.low) // step)
        starts.append(first)
        sizes.append(last - first + 1)
    if min(sizes, default=1) <= 0:
        return
    inner = Shape(operand.shape.dtype, tuple(sizes), leaf.shape.layout)

    def copy(positions: list[IndexValue]) -> None:
        taken = [code.add(p, s) for p, s in zip(positions, starts, strict=True)]
        value = e.value(operand, Index.at(code, operand.shape, taken))
        moved = [
            code.add(code.multiply(p, d.interior + 1), d.low)
            for p, d in zip(taken, leaf.instruction.attributes["padding"], strict=True)
        ]
        leaf.write(e, Index.at(code, leaf.shape, moved), value)

    nest(e, inner, copy, None, modes_of(e.view, inner))


@form("padded/pieces", write_padded)
def padded(task: Task) -> Fit:
    """A padded array: the padding value everywhere, and the operand over it.

    Parameters: for rows so short that the value of each element is chosen, the modes of loops; else None.
    """
    must_be_only(task, Op.PAD)
    short = modes_of(task.view, task.results.shape) if _has_short_rows(task.results.first) else None
    return Fit(short, in_steps=task.partition is None)


def _has_short_rows(leaf: Leaf) -> bool:
    """Whether rows have a few elements, as pixels do, and become longer: LLVM makes vectors of stores that fill whole
    rows, and writes part of a row element by element. Pairs of a complex number it does not join.
    """
    fast, padding = leaf.shape.minor_to_major[0] if leaf.shape.rank else 0, leaf.instruction.attributes["padding"]
    if leaf.shape.rank < 2 or leaf.shape.dims[fast] > SHORT_ROW or leaf.shape.dtype.is_complex:
        return False
    if any(d.interior for d in padding):
        return False
    return padding[fast].low >= 0 and padding[fast].high >= 0 and padding[fast].low + padding[fast].high > 0


def iota(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    code, dtype = e.code, instruction.shape.dtype
    position = code.value(index.multi[instruction.attributes["iota_dimension"]])
    if max(instruction.shape.dims) < 1 << 31:  # before AVX-512, no instruction makes floats of 64-bit vectors
        return convert(code, DType.S32, dtype, code.b.trunc(position, I32))
    return convert(code, DType.S64, dtype, position)
    yield


def dynamic_slice(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand, *starts = instruction.operands
    code = e.code
    positions = []
    for i, start, size, length in zip(index.multi, starts, operand.shape.dims, instruction.shape.dims, strict=True):
        register = yield start, e.scalar(start.shape)
        positions.append(code.add(clamped_start(code, start, register, size - length), i))
    return (yield operand, Index.at(code, operand.shape, positions))


def clamped_start(code: Code, start: Instruction, register: Register, limit: int) -> IndexValue:
    """A dynamic start index, clamped to [0, limit]."""
    if limit == 0:
        return 0
    return code.maximum(code.minimum(widened_start(code, start, register), limit), 0)


def widened_start(code: Code, start: Instruction, register: Register) -> IndexValue:
    """A dynamic start index as an i64; larger u64 numbers become the largest i64."""
    scope, code.scope = code.scope, code.home([register])
    key = ("start", id(register))
    wide = code.scope.memo.get(key)
    if wide is None:
        dtype = start.shape.dtype
        target = DType.U64 if dtype.is_unsigned else DType.S64
        wide = convert(code, dtype, target, register)
        if dtype is DType.U64:
            wide = code.b.select(code.b.icmp_signed("<", wide, I64(0)), I64((1 << 63) - 1), wide)
        code.scope.memo[key] = wide
        code.define(wide, code.scope)
    code.scope = scope
    return wide


def dynamic_update_slice(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    operand, update, *starts = instruction.operands
    code = e.code
    positions, condition = [], None
    for i, start, size, length in zip(index.multi, starts, operand.shape.dims, update.shape.dims, strict=True):
        register = yield start, e.scalar(start.shape)
        moved = code.subtract(i, clamped_start(code, start, register, size - length))
        positions.append(moved)
        if length != size:
            inside = code.b.icmp_unsigned("<", code.value(moved), I64(length))
            condition = inside if condition is None else code.b.and_(condition, inside)
    if condition is None:
        return (yield update, Index.at(code, update.shape, positions))
    branch = code.branch(condition)
    new = yield update, Index.at(code, update.shape, positions)
    branch.otherwise()
    old = yield operand, index.within(operand.shape)
    return branch.join(new, old)


def bitcast_convert(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    """The same bits as another dtype. If the widths differ, the minor logical dimension is added or removed."""
    operand, code = instruction.operands[0], e.code
    source, target = operand.shape.dtype, instruction.shape.dtype
    if operand.shape.rank == instruction.shape.rank:
        value = yield operand, index.within(operand.shape)
        return from_bits(code, target, bits_of(code, source, value))
    if operand.shape.rank < instruction.shape.rank:
        *outer, part = index.multi
        value = yield operand, Index.at(code, operand.shape, outer)
        bits = bits_of(code, source, value)
        distance = code.value(code.multiply(part, _stored_bits(target)))
        shifted = code.b.lshr(bits, _resized(code, distance, bits.type))
        return from_bits(code, target, _resized(code, shifted, ir.IntType(8 * target.bytes)))
    total = None
    type_ = ir.IntType(8 * target.bytes)
    for k in range(operand.shape.dims[-1]):
        value = yield operand, Index.at(code, operand.shape, (*index.multi, k))
        bits = _resized(code, bits_of(code, source, value), type_)
        placed = code.b.shl(bits, type_(k * _stored_bits(source)))
        total = placed if total is None else code.b.or_(total, placed)
    assert total is not None
    return from_bits(code, target, total)


def _stored_bits(dtype: DType) -> int:
    """The width in bits that bitcast-convert assumes: a pred has 8."""
    return 8 if dtype is DType.PRED else dtype.bits


def _resized(code: Code, bits: ir.Value, type_: ir.IntType) -> ir.Value:
    width = bits.type.width
    return (
        bits if width == type_.width else code.b.zext(bits, type_) if width < type_.width else code.b.trunc(bits, type_)
    )


def tuple_(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    raise AssertionError("a tuple has no element: its leaves are asked for one by one")
    yield


def get_tuple_element(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    source, number = instruction.operands[0], instruction.attributes["index"]
    if source.opcode is Op.TUPLE:
        return (yield source.operands[number], index.within(source.operands[number].shape))
    values = yield source, index.within(source.shape.elements[number])
    return values[number]


def map_(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    return e.apply(instruction.called()[0], (yield from e.read(instruction.operands, index)))


RULES: dict[Op, ElementRule] = {
    Op.CONSTANT: constant,
    Op.BROADCAST: broadcast,
    Op.RESHAPE: reshape,
    Op.BITCAST: bitcast,
    Op.TRANSPOSE: transpose,
    Op.SLICE: slice_,
    Op.REVERSE: reverse,
    Op.CONCATENATE: concatenate,
    Op.PAD: pad,
    Op.IOTA: iota,
    Op.DYNAMIC_SLICE: dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: dynamic_update_slice,
    Op.BITCAST_CONVERT: bitcast_convert,
    Op.TUPLE: tuple_,
    Op.GET_TUPLE_ELEMENT: get_tuple_element,
    Op.MAP: map_,
}
