"""Rules that move elementwise ops before data movement: before a broadcast, a transpose or a reshape of a product."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.ir import Instruction
from ...hlo.opclasses import ELEMENTWISE, EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from ..cleanup.constant_folding import splat_of
from .rule import rule, spread_over

MOVED = tuple(
    sorted(
        ELEMENTWISE - {Op.STOCHASTIC_CONVERT, Op.COPY, Op.BITCAST_CONVERT, Op.RNG, Op.REDUCE_PRECISION},
        key=lambda op: op.value,
    )
)
"""Elementwise ops that may be exchanged with data movement."""


def elementwise_of_broadcasts(i: Instruction, b: Builder) -> Instruction | None:
    """f(broadcast(x), broadcast(y)) → broadcast(f(x, y)), for scalars, and for arrays if f is expensive."""
    spreads = [o for o in i.operands if o.opcode is Op.BROADCAST]
    first = next((o for o in spreads if o.operands[0].shape.rank), spreads[0] if spreads else None)
    if first is None or not i.shape.rank:
        return None
    source, places = first.operands[0], first.dimensions
    if source.shape.rank and (i.opcode not in EXPENSIVE or source.shape.size >= i.shape.size):
        return None
    inner = [_before(o, Op.BROADCAST, places, source.shape.dims, b) for o in i.operands]
    if any(o is None for o in inner) or all(splat_of(o) is not None for o in i.operands):
        return None
    return spread_over(b, _moved(i, source.shape.dims, inner, b), i.shape.dims, places)


def elementwise_of_transposes(i: Instruction, b: Builder) -> Instruction | None:
    """f(transpose(x), transpose(y)) → transpose(f(x, y)), if the transposes are equal and have no other use."""
    first = next((o for o in i.operands if o.opcode is Op.TRANSPOSE), None)
    if first is None or any(o.opcode is Op.TRANSPOSE and not b.is_sole(o) for o in i.operands):
        return None
    dims = first.operands[0].shape.dims
    inner = [_before(o, Op.TRANSPOSE, first.dimensions, dims, b) for o in i.operands]
    return None if any(o is None for o in inner) else b.transpose(_moved(i, dims, inner, b), first.dimensions)


def _before(
    o: Instruction, opcode: Op, dimensions: tuple[int, ...], dims: tuple[int, ...], b: Builder
) -> Instruction | None:
    """The value of an operand before a move `opcode` with `dimensions`, in shape `dims`; None without such a move."""
    if o.opcode is opcode and o.dimensions == dimensions and o.operands[0].shape.dims == dims:
        return o.operands[0]
    return b.broadcast(o.operands[0], dims) if o.opcode is Op.BROADCAST and not o.operands[0].shape.rank else None


def _moved(i: Instruction, dims: tuple[int, ...], operands: Sequence[Instruction | None], b: Builder) -> Instruction:
    """The same op on operands of shape `dims`."""
    kept = {k: v for k, v in i.attributes.items() if k not in ("metadata", "sharding")}
    return b.op(i.opcode, array(i.shape.dtype, *dims), *(o for o in operands if o is not None), **kept)


PRODUCTS = frozenset({Op.DOT, Op.CONVOLUTION})

MOST_STEPS = 6
"""Maximum number of elementwise ops to follow back to a product."""


def elementwise_of_reshaped_product(i: Instruction, b: Builder) -> Instruction | None:
    """f(reshape(dot), y) → reshape(f(dot, reshape(y))), so that f fuses with the dot; the same for convolutions."""
    reshaped = next((o for o in i.operands if o.opcode is Op.RESHAPE and _is_made_of_product(o.operands[0])), None)
    if reshaped is None or not i.shape.size or any(o.shape.dims != i.shape.dims for o in i.operands):
        return None
    dims = reshaped.operands[0].shape.dims
    if not all(_reshapes(o, dims) for o in i.operands):
        return None
    return b.reshape(_moved(i, dims, [_reshaped(o, dims, b) for o in i.operands], b), i.shape.dims)


def _is_made_of_product(x: Instruction, steps: int = MOST_STEPS) -> bool:
    """Whether x is a product, or elementwise ops on a product."""
    if x.opcode in PRODUCTS:
        return x.shape.rank > 0
    if x.opcode not in ELEMENTWISE or not steps:
        return False
    return any(o.shape.dims == x.shape.dims and _is_made_of_product(o, steps - 1) for o in x.operands)


def _reshapes(x: Instruction, dims: tuple[int, ...]) -> bool:
    """Whether x has an equivalent of shape `dims` that costs nothing.

    This is so if x is a reshape from `dims`, is in memory, or is a broadcast whose dimensions the reshape keeps.
    """
    if x.opcode is Op.BROADCAST:
        places = _places(x.shape.dims, dims)
        return all(d in places for d in x.dimensions)
    if x.opcode is Op.RESHAPE:
        return x.operands[0].shape.dims == dims
    return x.opcode in (Op.PARAMETER, Op.GET_TUPLE_ELEMENT)


def _reshaped(x: Instruction, dims: tuple[int, ...], b: Builder) -> Instruction:
    if x.opcode is Op.BROADCAST:
        places = _places(x.shape.dims, dims)
        return spread_over(b, x.operands[0], dims, [places[d] for d in x.dimensions])
    return x.operands[0] if x.opcode is Op.RESHAPE else b.reshape(x, dims)


def _places(old: Sequence[int], new: Sequence[int]) -> dict[int, int]:
    """The dimensions that a reshape keeps, as {position before it: position after it}."""
    ends = {(math.prod(new[:d]), n): d for d, n in enumerate(new) if n != 1}
    starts = ((d, (math.prod(old[:d]), n)) for d, n in enumerate(old))
    return {d: ends[start] for d, start in starts if start in ends}


RULES = (
    rule(MOVED, elementwise_of_broadcasts),
    rule(MOVED, elementwise_of_transposes),
    rule(MOVED, elementwise_of_reshaped_product),
)
