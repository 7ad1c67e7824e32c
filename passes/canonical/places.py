"""Reductions to an extremum and its place (arg max). Along rows in memory, the extremum is found first, and then the
first place that has it: two walks of one row kernel, of which LLVM makes vectors, while it makes none of places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder

SHORTEST = 9
"""Elements of a row, at least."""

LEAST_ROWS, MOST_OF_FEW = 4, 1 << 16
"""Rows, at least, and elements of fewer, at most: of more elements they are no row kernel."""

_NOWHERE = np.iinfo(np.int32).max
"""Behind all places of a row, which are computed in s32."""

_FLOATS = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})
_TYPES = _FLOATS | {t for t in DType if t.is_integer and t.bits >= 8}

_BY_ELEMENT = ELEMENTWISE | {Op.BROADCAST, Op.RESHAPE, Op.CONSTANT, Op.IOTA}
_MOVED = frozenset(
    {
        *(Op.TRANSPOSE, Op.REVERSE, Op.SLICE, Op.PAD, Op.CONCATENATE, Op.GATHER, Op.DYNAMIC_SLICE),
        *(Op.DYNAMIC_UPDATE_SLICE, Op.SCATTER, Op.BITCAST, Op.COPY),
    }
)
"""Ops that need not be in a row kernel: their results would be stored for the two walks."""


def arg_extremum(region: Computation) -> tuple[Op, bool] | None:
    """(maximum or minimum, whether the lesser number goes first) of a region that takes the greater (or smaller) of two
    values with its number, a NaN before all others, and of equal values the smaller (or greater) number; else None.

    It is associative, and a start counts once, however often it is there. Of JAX's argmax and argmin.
    """
    parameters: dict[int, Instruction] = {p.parameter_number: p for p in region.parameters}
    root = region.root
    if len(parameters) != 4 or root.opcode is not Op.TUPLE:
        return None
    a, first, other, second = (parameters[n] for n in range(4))
    if len(root.operands) != 2 or root.operands[1].opcode is not Op.SELECT:
        return None
    value, (takes_number, *numbers) = root.operands[0], root.operands[1].operands
    if numbers != [first, second] or takes_number.opcode is not Op.OR:
        return None
    order = _INTEGER_ORDER.get(value.opcode)
    if order is not None:  # of integers, whose selection is simplified
        takes = next((o for o in takes_number.operands if _compares(o, a, other, (order,))), value)
        if {*value.operands} != {a, other} or takes is value or a.shape.dtype.is_float:
            return None
    elif value.opcode is Op.SELECT and value.operands[1:] == (a, other):
        takes = value.operands[0]
    else:
        return None
    tests = _either(takes)
    orders = [t for t in tests if _compares(t, a, other, ("GT", "LT"))]
    nans = [t for t in tests if _compares(t, a, a, ("NE",))]
    if len(orders) != 1 or len(tests) != 1 + len(nans) or (a.shape.dtype.is_float and not nans):
        return None
    if takes not in takes_number.operands:
        return None
    ties = [o for o in takes_number.operands if o is not takes]
    if len(ties) != 1 or ties[0].opcode is not Op.AND:
        return None
    same = [_compares(t, a, other, ("EQ",)) for t in ties[0].operands]
    before = [_compares(t, first, second, ("LT", "GT")) for t in ties[0].operands]
    if sorted(zip(same, before, strict=True)) != [(False, True), (True, False)]:
        return None
    extremum = Op.MAXIMUM if (order or orders[0].attributes["direction"]) == "GT" else Op.MINIMUM
    return extremum, ties[0].operands[before.index(True)].attributes["direction"] == "LT"


def goes_by_value(
    arrays: Sequence[Instruction],
    starts: Sequence[Instruction],
    region: Computation,
    dims: Sequence[int],
    reduced: Sequence[int],
) -> bool:
    """Whether places along rows are found by value. dims, reduced: how the arrays are divided.

    Of several NaNs the first counts, so the lesser number must, and numbers must grow. The start is not NaN.
    """
    x, number, found = arrays[0], arrays[1].shape.dtype, arg_extremum(region)
    if found is None or not found[1] or x.shape.dtype not in _TYPES or not number.is_integer or len(reduced) != 1:
        return False
    (d,), start = reduced, starts[0]
    rows, length = math.prod(dims) // dims[d], dims[d]
    if math.prod(dims[d + 1 :]) > 1 or length < SHORTEST or (rows < LEAST_ROWS and rows * length > MOST_OF_FEW):
        return False
    if start.opcode is not Op.CONSTANT or bool(np.isnan(start.literal.array.astype(np.float64))):
        return False
    counted = max(x.shape.dims) <= np.iinfo(number.numpy).max and length <= _NOWHERE
    return counted and _stays_in_place(x)


def value_then_place(
    b: Builder, x: Instruction, starts: Sequence[Instruction], region: Computation, d: int, offsets: Instruction | None
) -> list[Instruction]:
    """The extrema along dimension d, and their places.

    offsets: what is added to the places.
    """
    found = arg_extremum(region)
    assert found is not None
    start, number = starts
    dims, dtype = [n for k, n in enumerate(x.shape.dims) if k != d], number.shape.dtype
    extremum = b.region("extremum", [array(x.shape.dtype)] * 2, lambda b, p: b.binary(found[0], p[0], p[1]))
    most = b.op(Op.REDUCE, array(x.shape.dtype, *dims), x, start, dimensions=(d,), to_apply=extremum)
    kept = [k for k in range(x.shape.rank) if k != d]
    here = b.compare(x, "EQ", b.broadcast(most, x.shape.dims, kept))
    if x.shape.dtype.is_float:
        here = b.binary(Op.OR, here, b.compare(x, "NE", x))
    places = b.select(here, b.iota(DType.S32, x.shape.dims, d), b.constant(_NOWHERE, DType.S32, x.shape.dims))
    least = b.reduce(places, Op.MINIMUM, _NOWHERE, (d,))
    place = b.convert(least, dtype)
    if offsets is not None:
        place = b.binary(Op.ADD, place, offsets)
    given = b.broadcast(number, dims)
    first = b.select(b.compare(least, "EQ", _NOWHERE), given, b.binary(Op.MINIMUM, place, given))
    return [most, b.select(b.compare(most, "EQ", b.broadcast(start, dims)), first, place)]


def _stays_in_place(x: Instruction) -> bool:
    """Whether all that is computed for an element lies at its place: nothing is moved in front of the reduction."""
    stack, seen = [x], {x}
    while stack:
        i = stack.pop()
        if i.opcode in _MOVED and i.shape.size > 1:
            return False
        if i.opcode in _BY_ELEMENT:
            stack += {*i.operands} - seen
            seen.update(i.operands)
    return True


def counts(numbers: Instruction, reduced: Sequence[int]) -> bool:
    """Whether numbers grow along the one reduced dimension, so that the first of several NaNs has the least."""
    if len(reduced) != 1:
        return False
    source = numbers.operands[0] if numbers.opcode is Op.RESHAPE else numbers
    if source.opcode is not Op.IOTA:
        return False
    (d,), along = reduced, source.attributes["iota_dimension"]
    if source is numbers:
        return d == along
    return numbers.shape.dims[d] == numbers.shape.size == source.shape.dims[along]  # a single row


_INTEGER_ORDER = {Op.MAXIMUM: "GT", Op.MINIMUM: "LT"}


def _either(test: Instruction) -> tuple[Instruction, ...]:
    return test.operands if test.opcode is Op.OR else (test,)


def _compares(i: Instruction, left: Instruction, right: Instruction, directions: Sequence[str]) -> bool:
    plain = i.opcode is Op.COMPARE and i.attributes.get("type") != "TOTALORDER"
    return plain and i.operands == (left, right) and i.attributes["direction"] in directions
