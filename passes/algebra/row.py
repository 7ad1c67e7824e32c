"""What algebraic rules are made of: a row of the rule table, and the questions that rules ask about values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder, Rule
from ..cleanup.constant_folding import number_of

EXTREMES = (Op.MINIMUM, Op.MAXIMUM)


@dataclass(frozen=True)
class Row:
    """One rule. inexact: why results may differ, empty where they never do; ulp: by how much, of the result's type."""

    opcodes: tuple[Op, ...]
    apply: Rule
    inexact: str = ""
    ulp: float = 0

    @property
    def name(self) -> str:
        return self.apply.__name__

    @property
    def pattern(self) -> str:
        """What the rule matches and makes, in words: the first line of its docstring."""
        return (self.apply.__doc__ or "").strip().splitlines()[0]


def row(opcodes: Op | Iterable[Op], apply: Rule, inexact: str = "", ulp: float = 0) -> Row:
    """A row for one opcode or several."""
    return Row((opcodes,) if isinstance(opcodes, Op) else tuple(opcodes), apply, inexact, ulp)


def is_number(x: Instruction, value: complex) -> bool:
    """Whether x is one number all over, equal to `value` to the sign of zero. Never for pred."""
    number = number_of(x)
    if number is None or x.shape.dtype is DType.PRED:
        return False
    return bool(number == value) and (bool(number) or _sign(number) == math.copysign(1, complex(value).real))


def _sign(number: np.generic) -> float:
    return math.copysign(1, complex(number).real)


def is_zero(x: Instruction) -> bool:
    """Whether x is zero all over, of either sign."""
    number = number_of(x)
    return number is not None and x.shape.dtype is not DType.PRED and bool(number == 0)


def is_ones(x: Instruction) -> bool:
    """Whether all bits of an integer are set, all over."""
    dtype = x.shape.dtype
    return dtype.is_integer and is_number(x, -1 if dtype.is_signed else 2**dtype.bits - 1)


def is_exact(dtype: DType) -> bool:
    """Integers or pred: no NaN, one zero, any order of summands."""
    return dtype.is_integer or dtype is DType.PRED


def truth_of(x: Instruction) -> bool | None:
    """The truth value that x is all over."""
    number = number_of(x) if x.shape.dtype is DType.PRED else None
    return None if number is None else bool(number)


def integer_of(x: Instruction) -> int | None:
    """The integer that x is all over."""
    number = number_of(x) if x.shape.dtype.is_integer else None
    return None if number is None else int(number)


def is_known(x: Instruction) -> bool:
    """A constant, or one spread: what constant folding computes."""
    if x.opcode is Op.BROADCAST:
        x = x.operands[0]
    return x.opcode is Op.CONSTANT and not x.literal.is_elided


def swaps(i: Instruction) -> tuple[tuple[Instruction, Instruction], ...]:
    """The operands of a commutative op in both orders."""
    x, y = i.operands
    return (x, y), (y, x)


def wrapped(value: int, dtype: DType) -> int:
    """An integer as the type holds it, modulo 2^bits."""
    value &= 2**dtype.bits - 1
    return value - 2**dtype.bits if dtype.is_signed and value >> (dtype.bits - 1) else value


def number(b: Builder, value: complex, like: Instruction) -> Instruction:
    """`value` all over, in the type and dimensions of an instruction."""
    dtype = like.shape.dtype
    return b.constant(wrapped(int(value.real), dtype) if dtype.is_integer else value, dtype, like.shape.dims)


def truth(b: Builder, value: bool, like: Instruction) -> Instruction:
    """A truth value all over the dimensions of an instruction."""
    return b.constant(value, DType.PRED, like.shape.dims)


def spread_over(b: Builder, x: Instruction, dims: Sequence[int], dimensions: Sequence[int]) -> Instruction:
    """A broadcast, also where it changes nothing in size."""
    if x.shape.dims == tuple(dims) and tuple(dimensions) == tuple(range(len(dims))):
        return x
    shape = x.shape.without_layout()
    made = type(shape)(shape.dtype, tuple(dims))
    return b.op(Op.BROADCAST, made, x, dimensions=tuple(dimensions))


MANTISSA = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}
"""Bits of the integers that a float type holds, all of them up to 2^bits."""

_WIDER = {
    DType.F16: {DType.F32, DType.F64},
    DType.BF16: {DType.F32, DType.F64},
    DType.F32: {DType.F64},
    DType.F8E5M2: {DType.F16, DType.BF16, DType.F32, DType.F64},
    DType.F8E4M3FN: {DType.F16, DType.BF16, DType.F32, DType.F64},
    DType.C64: {DType.C128},
}


def holds(wide: DType, narrow: DType) -> bool:
    """Whether a type holds every value of another as it is."""
    if wide is narrow or narrow is DType.PRED:
        return wide is narrow or wide in MANTISSA or (wide.is_integer and wide.bits > 1)
    if narrow.is_integer:
        used = narrow.bits - narrow.is_signed
        if wide.is_integer:
            return wide.bits - wide.is_signed >= used and (wide.is_signed or not narrow.is_signed)
        return MANTISSA.get(wide, 0) >= used
    return wide in _WIDER.get(narrow, ())
