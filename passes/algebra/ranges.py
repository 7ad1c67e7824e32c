"""Bounds of an integer value, found by looking at most DEEPEST instructions up its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from .rule import integer_of

Range = tuple[int, int]

DEEPEST = 5
MOST_ELEMENTS = 256
"""Maximum size of a constant whose elements are inspected."""


def type_range(dtype: DType) -> Range:
    """All values of an integer type; (0, 1) for pred."""
    if dtype is DType.PRED:
        return 0, 1
    return (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.is_signed else (0, 2**dtype.bits - 1)


def range_of(x: Instruction, depth: int = DEEPEST, known: Mapping[Instruction, Range] = MappingProxyType({})) -> Range:
    """(least, greatest) element of a non-empty integer or pred array.

    known: ranges that the caller knows already, by instruction.
    """
    if x in known:
        return known[x]
    whole = type_range(x.shape.dtype)
    rule = RANGES.get(x.opcode)
    if rule is None or not depth:
        return whole
    found = rule(x, lambda o: range_of(o, depth - 1, known))
    return found if found is not None and whole[0] <= found[0] and found[1] <= whole[1] else whole


Look = Callable[[Instruction], Range]


def _constant(x: Instruction, look: Look) -> Range | None:
    if x.literal.is_elided or not 0 < x.shape.size <= MOST_ELEMENTS:
        return None
    values = [int(v) for v in x.literal.array.flat]
    return min(values), max(values)


def _iota(x: Instruction, look: Look) -> Range:
    return 0, max(x.shape.dims[x.attributes["iota_dimension"]] - 1, 0)


def _same(x: Instruction, look: Look) -> Range:
    return look(x.operands[0])


def _convert(x: Instruction, look: Look) -> Range | None:
    source = x.operands[0]
    return look(source) if source.shape.dtype.is_integer or source.shape.dtype is DType.PRED else None


def _add(x: Instruction, look: Look) -> Range:
    (a, b), (c, d) = look(x.operands[0]), look(x.operands[1])
    return a + c, b + d


def _subtract(x: Instruction, look: Look) -> Range:
    (a, b), (c, d) = look(x.operands[0]), look(x.operands[1])
    return a - d, b - c


def _multiply(x: Instruction, look: Look) -> Range:
    (a, b), (c, d) = look(x.operands[0]), look(x.operands[1])
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def _divide(x: Instruction, look: Look) -> Range | None:
    by, (low, high) = integer_of(x.operands[1]), look(x.operands[0])
    return (low // by, high // by) if by is not None and by > 0 and low >= 0 else None


def _remainder(x: Instruction, look: Look) -> Range | None:
    by, (low, high) = integer_of(x.operands[1]), look(x.operands[0])
    if by is None or by <= 0:
        return None
    return max(low, 1 - by) if low < 0 else 0, min(high, by - 1) if high > 0 else 0


def _and(x: Instruction, look: Look) -> Range | None:
    """An operand that is never negative is an upper bound of the result."""
    tops = [high for low, high in map(look, x.operands) if low >= 0]
    return (0, min(tops)) if tops else None


def _minimum(x: Instruction, look: Look) -> Range:
    (a, b), (c, d) = look(x.operands[0]), look(x.operands[1])
    return min(a, c), min(b, d)


def _maximum(x: Instruction, look: Look) -> Range:
    (a, b), (c, d) = look(x.operands[0]), look(x.operands[1])
    return max(a, c), max(b, d)


def _clamp(x: Instruction, look: Look) -> Range:
    (a, b), (c, d), (e, f) = map(look, x.operands)
    return min(max(c, a), e), min(max(d, b), f)


def _select(x: Instruction, look: Look) -> Range:
    (a, b), (c, d) = look(x.operands[1]), look(x.operands[2])
    return min(a, c), max(b, d)


def _shift_right(x: Instruction, look: Look) -> Range | None:
    by, (low, high) = integer_of(x.operands[1]), look(x.operands[0])
    return (low >> by, high >> by) if by is not None and 0 <= by < x.shape.dtype.bits and low >= 0 else None


RANGES: dict[Op, Callable[[Instruction, Look], Range | None]] = {
    Op.CONSTANT: _constant,
    Op.IOTA: _iota,
    Op.BROADCAST: _same,
    Op.RESHAPE: _same,
    Op.TRANSPOSE: _same,
    Op.SLICE: _same,
    Op.REVERSE: _same,
    Op.COPY: _same,
    Op.DYNAMIC_SLICE: _same,
    Op.CONVERT: _convert,
    Op.ADD: _add,
    Op.SUBTRACT: _subtract,
    Op.MULTIPLY: _multiply,
    Op.DIVIDE: _divide,
    Op.REMAINDER: _remainder,
    Op.AND: _and,
    Op.MINIMUM: _minimum,
    Op.MAXIMUM: _maximum,
    Op.CLAMP: _clamp,
    Op.SELECT: _select,
    Op.SHIFT_RIGHT_LOGICAL: _shift_right,
    Op.SHIFT_RIGHT_ARITHMETIC: _shift_right,
}
"""Range rules by opcode. A range that exceeds the type may have wrapped: `range_of` then returns the type's range."""


def known_starts(i: Instruction, first: int) -> list[int | None]:
    """The clamped start along each dimension of operand 0; None where it is unknown.

    first: operand number of the first index.
    """
    x, indices = i.operands[0], i.operands[first:]
    sizes = i.attributes["dynamic_slice_sizes"] if i.opcode is Op.DYNAMIC_SLICE else i.operands[1].shape.dims
    room = [n - s for n, s in zip(x.shape.dims, sizes)]
    if indices and indices[0].shape.rank:  # all starts in one vector
        if indices[0].opcode is not Op.CONSTANT or indices[0].literal.is_elided:
            return [0 if not m else None for m in room]
        numbers: list[int | None] = [int(v) for v in indices[0].literal.array.flat]
        return [min(max(n or 0, 0), m) for n, m in zip(numbers, room)]
    found: list[int | None] = []
    for index, m in zip(indices, room):
        low, high = range_of(index)
        at = 0 if not m or high <= 0 else m if low >= m else integer_of(index)
        found.append(None if at is None else min(max(at, 0), m))
    return found
