"""Sort → Batcher's bitonic network as one loop: its body is one stage, so the code stays small for any length.

A stage compares each element with the one `distance` away (a power of two), which two dynamic slices of the padded
array fetch. Ties are broken by the elements' first places: the result is stable, and any comparator permutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..attributes import PadDim
from ..dtypes import DType
from ..ir import Computation, Instruction, Module
from ..opcodes import Op
from .building import Builder, apply_pointwise, is_pointwise
from .expansion import expand_ops


def expand_sort(module: Module) -> Module:
    """Replace every sort outside kernels whose comparator is pointwise."""
    return expand_ops(module, {Op.SORT: bitonic_sort})


def bitonic_sort(i: Instruction, b: Builder) -> Instruction | None:
    comparator = i.attributes["to_apply"]
    if not is_pointwise(comparator) or not is_mirrored(comparator):
        return None
    rank = i.operands[0].shape.rank
    dimension = i.dimensions[0] if i.dimensions else rank - 1
    length, size = i.operands[0].shape.dims[dimension], i.operands[0].shape.size
    if length <= 1 or not size:
        return b.tuple(i.operands) if i.shape.is_tuple else i.operands[0]
    order = [d for d in range(rank) if d != dimension] + [dimension]
    back = [order.index(d) for d in range(rank)]
    moved = [b.transpose(b.plain(x), order) for x in i.operands]
    rows = [b.reshape(x, (size // length, length)) for x in moved]
    done = _network(b, comparator, rows, length)
    results = [b.transpose(b.reshape(x, m.shape.dims), back) for x, m in zip(done, moved, strict=True)]
    return b.tuple(results) if i.shape.is_tuple else results[0]


def is_mirrored(comparator: Computation) -> bool:
    """Whether a comparator that is one comparison compares the same function of both sides.

    One that does not is no order: the result then depends on the algorithm, and HLO promises none.
    """
    root = comparator.root
    if root.opcode is not Op.COMPARE:
        return True
    left, right = root.operands
    return _key(left, 0) == _key(right, 1)


def _key(i: Instruction, side: int) -> object:
    """The structure of a scalar expression; parameters by their pair, and whether they are of `side`."""
    if i.opcode is Op.PARAMETER:
        return i.parameter_number // 2, i.parameter_number % 2 == side
    literal = i.literal if i.opcode is Op.CONSTANT else None
    return i.opcode, i.shape, literal, i.attributes.get("direction"), tuple(_key(o, side) for o in i.operands)


def _network(b: Builder, comparator: Computation, rows: Sequence[Instruction], length: int) -> list[Instruction]:
    """Rows of [count, length], sorted."""
    width = 1 << (length - 1).bit_length()
    extra = [PadDim(0, 0), PadDim(0, width - length)]
    padded = [b.pad(x, b.constant(0, x.shape.dtype), extra) for x in rows]
    places = b.iota(DType.S32, (rows[0].shape.dims[0], width), 1)
    two, one = b.constant(2, DType.S32), b.constant(1, DType.S32)

    def step(b: Builder, values: list[Instruction]) -> list[Instruction]:
        block, distance, *arrays = values
        arrays = _stage(b, comparator, arrays, block, distance, length)
        last = b.compare(distance, "EQ", 1)
        bigger = b.binary(Op.MULTIPLY, block, 2)
        return [
            b.select(last, bigger, block),
            b.select(last, block, b.binary(Op.SHIFT_RIGHT_LOGICAL, distance, 1)),
            *arrays,
        ]

    done = b.loop([two, one, *padded, places], lambda b, v: b.compare(v[0], "LE", width), step)
    return [b.slice_in(x, 1, 0, length) for x in done[2:-1]]


def _stage(
    b: Builder,
    comparator: Computation,
    arrays: Sequence[Instruction],
    block: Instruction,
    distance: Instruction,
    length: int,
) -> list[Instruction]:
    """One stage: pairs `distance` apart put in order, ascending or descending by the bit `block` of the place.

    arrays: the operands and, last, the elements' first places. Those from `length` on are padding and go last.
    """
    dims = arrays[0].shape.dims
    position = b.iota(DType.S32, dims, 1)
    upper = b.compare(b.binary(Op.AND, position, distance), "NE", 0)
    rising = b.compare(b.binary(Op.AND, position, block), "EQ", 0)
    others = [_partner(b, x, distance, upper) for x in arrays]
    place, other_place = arrays[-1], others[-1]
    before = apply_pointwise(b, comparator, _pairs(others[:-1], arrays[:-1]))[0]
    after = apply_pointwise(b, comparator, _pairs(arrays[:-1], others[:-1]))[0]
    earlier = b.compare(other_place, "LT", place)
    less = b.select(b.compare(before, "EQ", after), earlier, before)
    if length != dims[1]:
        padding = b.compare(b.binary(Op.MAXIMUM, place, other_place), "GE", length)
        less = b.select(padding, earlier, less)
    take = b.compare(b.compare(upper, "NE", rising), "EQ", less)
    return [b.select(take, other, x) for other, x in zip(others, arrays, strict=True)]


def _pairs(left: Sequence[Instruction], right: Sequence[Instruction]) -> list[Instruction]:
    return [x for pair in zip(left, right, strict=True) for x in pair]


def _partner(b: Builder, x: Instruction, distance: Instruction, upper: Instruction) -> Instruction:
    """x[p - distance] where `upper`, else x[p + distance]."""
    half = x.shape.dims[1] // 2
    wide = b.pad(x, b.constant(0, x.shape.dtype), [PadDim(0, 0), PadDim(half, half)])
    zero, middle = b.constant(0, DType.S32), b.constant(half, DType.S32)
    below = b.dynamic_slice(wide, [zero, b.binary(Op.SUBTRACT, middle, distance)], x.shape.dims)
    above = b.dynamic_slice(wide, [zero, b.binary(Op.ADD, middle, distance)], x.shape.dims)
    return b.select(upper, below, above)
