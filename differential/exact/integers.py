"""Integers of a draw: usual ones, any, or those at the ends of their range."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import ShapeIndex
from ..fake_inputs import Constraint, constraint_of, uses


class Integers(Enum):
    USUAL = auto()  # as for any test: small, and indices within their arrays
    ANY = auto()  # of the whole type, and indices a little beyond their arrays
    ENDS = auto()  # few: 0, ±1, the ends of the type; indices at the ends of their arrays


CLAMPED = frozenset({Op.DYNAMIC_SLICE, Op.DYNAMIC_UPDATE_SLICE, Op.GATHER, Op.SCATTER})
"""Opcodes that clamp or skip indices beyond an array."""

BEYOND = 3
"""How far indices lie beyond their arrays at most."""


def redrawn(
    x: np.ndarray,
    dtype: DType,
    kind: Integers,
    place: tuple[Module, Instruction, ShapeIndex],
    random: np.random.Generator,
) -> np.ndarray:
    """Other integers for a leaf of a parameter, where its uses take them; else `x`. place: module, parameter, leaf."""
    constraint = constraint_of(*place)
    if kind is Integers.USUAL or constraint.is_sorted or constraint.unique or constraint.start is not None:
        return x
    opcodes = {user.opcode for user, _ in uses(place[0].entry, *place[1:])}
    if constraint.bound is not None and not opcodes <= CLAMPED:
        return x
    low, high = (
        (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)
    )
    if kind is Integers.ENDS:
        few = _few(constraint, low, high)
        return random.choice(np.array(few, np.int64 if low else np.uint64), x.shape).astype(dtype.numpy)
    if constraint.bound is not None:
        low, high = max(low, -BEYOND), min(high, constraint.bound + BEYOND)
    wide = np.int64 if low < 0 else np.uint64
    drawn = random.integers(low, high, x.shape, wide, endpoint=True)
    return np.asarray(drawn, wide).astype(dtype.numpy)


def _few(constraint: Constraint, low: int, high: int) -> list[int]:
    wanted: tuple[int, ...]
    if constraint.bound is not None:
        wanted = (-1, 0, 1, constraint.bound - 1, constraint.bound)
    else:
        wanted = (low, low + 1, -1, 0, 1, 2, high - 1, high)
    return sorted({n for n in wanted if low <= n <= high})
