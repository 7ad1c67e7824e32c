"""Rule, the type of an algebraic rule, and the predicates on values that rules use.

A splat is an array all of whose elements are one constant: a scalar constant or a broadcast of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..building import Builder, Rewrite
from ..cleanup.constant_folding import number_of

EXTREMES = (Op.MINIMUM, Op.MAXIMUM)


@dataclass(frozen=True)
class Rule:
    """One algebraic rule: the opcodes of the instructions that it may replace, and the rewrite.

    inexact: why results may differ, empty if they are always equal. ulp: the largest difference, in units in the last
    place of the result's type.
    """

    opcodes: tuple[Op, ...]
    apply: Rewrite
    inexact: str = ""
    ulp: float = 0

    @property
    def name(self) -> str:
        return self.apply.__name__

    @property
    def switch(self) -> str:
        """The name by which it is switched off."""
        return f"algebra/{self.name}"

    @property
    def pattern(self) -> str:
        """The pattern that the rule matches and its replacement: the first line of its docstring."""
        return (self.apply.__doc__ or "").strip().splitlines()[0]


def rule(opcodes: Op | Iterable[Op], apply: Rewrite, inexact: str = "", ulp: float = 0) -> Rule:
    """A rule for one opcode or for several."""
    return Rule((opcodes,) if isinstance(opcodes, Op) else tuple(opcodes), apply, inexact, ulp)


def is_number(x: Instruction, value: complex) -> bool:
    """Whether x is a splat of `value`, with the same sign if it is zero. False for pred."""
    number = number_of(x)
    if number is None or x.shape.dtype is DType.PRED:
        return False
    return bool(number == value) and (bool(number) or _sign(number) == math.copysign(1, complex(value).real))


def _sign(number: np.generic) -> float:
    return math.copysign(1, complex(number).real)


def is_zero(x: Instruction) -> bool:
    """Whether x is a splat of zero of either sign."""
    number = number_of(x)
    return number is not None and x.shape.dtype is not DType.PRED and bool(number == 0)


def is_ones(x: Instruction) -> bool:
    """Whether x is a splat of an integer with all bits set."""
    dtype = x.shape.dtype
    return dtype.is_integer and is_number(x, -1 if dtype.is_signed else 2**dtype.bits - 1)


def is_exact(dtype: DType) -> bool:
    """Whether a type has no NaN, one zero and associative sums: integers and pred."""
    return dtype.is_integer or dtype is DType.PRED


def truth_of(x: Instruction) -> bool | None:
    """The value of a pred splat; None if x is none."""
    number = number_of(x) if x.shape.dtype is DType.PRED else None
    return None if number is None else bool(number)


def integer_of(x: Instruction) -> int | None:
    """The value of an integer splat; None if x is none."""
    number = number_of(x) if x.shape.dtype.is_integer else None
    return None if number is None else int(number)


def is_known(x: Instruction) -> bool:
    """Whether x is a constant or a broadcast of one, which constant folding can compute with."""
    if x.opcode is Op.BROADCAST:
        x = x.operands[0]
    return x.opcode is Op.CONSTANT and not x.literal.is_elided


def swaps(i: Instruction) -> tuple[tuple[Instruction, Instruction], ...]:
    """The operands of a commutative binary op in both orders."""
    x, y = i.operands
    return (x, y), (y, x)


def wrapped(value: int, dtype: DType) -> int:
    """An integer reduced modulo 2^bits to the range of its type."""
    value &= 2**dtype.bits - 1
    return value - 2**dtype.bits if dtype.is_signed and value >> (dtype.bits - 1) else value


def number(b: Builder, value: complex, like: Instruction) -> Instruction:
    """A splat of `value` with the type and dimensions of `like`."""
    dtype = like.shape.dtype
    return b.constant(wrapped(int(value.real), dtype) if dtype.is_integer else value, dtype, like.shape.dims)


def truth(b: Builder, value: bool, like: Instruction) -> Instruction:
    """A pred splat with the dimensions of `like`."""
    return b.constant(value, DType.PRED, like.shape.dims)


def spread_over(b: Builder, x: Instruction, dims: Sequence[int], dimensions: Sequence[int]) -> Instruction:
    """x broadcast to `dims`; x itself if its dimensions and their order stay the same."""
    if x.shape.dims == tuple(dims) and tuple(dimensions) == tuple(range(len(dims))):
        return x
    shape = x.shape.without_layout()
    made = type(shape)(shape.dtype, tuple(dims))
    return b.op(Op.BROADCAST, made, x, dimensions=tuple(dimensions))


MANTISSA = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}
"""By float type: the number of mantissa bits p, so that the type holds all integers up to 2^p."""

_WIDER = {
    DType.F16: {DType.F32, DType.F64},
    DType.BF16: {DType.F32, DType.F64},
    DType.F32: {DType.F64},
    DType.F8E5M2: {DType.F16, DType.BF16, DType.F32, DType.F64},
    DType.F8E4M3FN: {DType.F16, DType.BF16, DType.F32, DType.F64},
    DType.C64: {DType.C128},
}


def holds(wide: DType, narrow: DType) -> bool:
    """Whether type `wide` represents every value of type `narrow` exactly."""
    if wide is narrow or narrow is DType.PRED:
        return wide is narrow or wide in MANTISSA or (wide.is_integer and wide.bits > 1)
    if narrow.is_integer:
        used = narrow.bits - narrow.is_signed
        if wide.is_integer:
            return wide.bits - wide.is_signed >= used and (wide.is_signed or not narrow.is_signed)
        return MANTISSA.get(wide, 0) >= used
    return wide in _WIDER.get(narrow, ())
