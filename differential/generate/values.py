"""A value of a generated program and what is known of its numbers, and the small numbers of each type.

What is known decides which ops may read it: where stacks may differ in the last bits, no op that jumps (compare, floor,
a conversion to integers) may follow, and none that makes small errors large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction

D = DType

FLOATS = (D.F32, D.F64, D.BF16, D.F16)
SIGNED = (D.S32, D.S8, D.S64, D.S16, D.S4, D.S2)
UNSIGNED = (D.U32, D.U8, D.U64, D.U16, D.U4, D.U2)
COMPLEX = (D.C64, D.C128)
NARROW = (
    *(D.F8E5M2, D.F8E4M3FN, D.F8E4M3B11FNUZ, D.F8E5M2FNUZ, D.F8E4M3FNUZ, D.F8E4M3, D.F8E3M4, D.F4E2M1FN),
)  # fmt: skip
DRAWN = (*FLOATS, D.PRED, *SIGNED, *UNSIGNED, *COMPLEX, *NARROW)
"""The element types of generated programs. Without s1, u1 and f8e8m0fnu, which the stacks convert only."""

GROUPS = ((D.F32, D.F64), (D.BF16, D.F16), (D.PRED, *SIGNED, *UNSIGNED), COMPLEX, NARROW)
"""All of these types, those together that stacks compute alike."""

MULTIPLIED = (*FLOATS, *(d for d in (*SIGNED, *UNSIGNED) if d.bits >= 8), *COMPLEX)
"""Those of products and convolutions."""

INDICES = (D.S32, D.S64, D.U32, D.U8, D.S8, D.S16, D.U64)

TAME = 64.0
"""An inexact value of at most this magnitude may go into smooth functions."""


@dataclass(frozen=True)
class Value:
    """exact: all stacks have the same bits. whole: its elements are integers, and no NaN or infinity.

    most: the largest magnitude of an element, of a complex one's parts; infinite where it is not known.
    """

    instruction: Instruction
    exact: bool = True
    whole: bool = False
    most: float = math.inf

    @property
    def dtype(self) -> DType:
        return self.instruction.shape.dtype

    @property
    def dims(self) -> tuple[int, ...]:
        return self.instruction.shape.dims

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def known(self) -> dict[str, Any]:
        """What is known of its numbers, as arguments of Body.add and Body.keep."""
        return {"exact": self.exact, "whole": self.whole, "most": self.most}

    @property
    def smooth(self) -> bool:
        """Whether functions that keep errors small may read it."""
        return self.exact or self.most <= TAME


def joined_known(values: Sequence[Value]) -> dict[str, Any]:
    """What is known of a value whose elements are from several, as arguments of Body.add."""
    exact, whole = all(v.exact for v in values), all(v.whole for v in values)
    return {"exact": exact, "whole": whole, "most": max(v.most for v in values)}


def summed_known(v: Value, w: Value, count: int, dtype: DType | None = None) -> dict[str, Any]:
    """What is known of sums of `count` products, as arguments of Body.add. dtype: of the sums, if not that of v."""
    if not continuous(v.dtype):
        return {}
    most = count * v.most * w.most * (2 if v.dtype.is_complex else 1) if count else 0.0
    whole = v.whole and w.whole and most <= capacity(dtype or v.dtype)
    return {"exact": whole, "whole": whole, "most": math.inf if math.isnan(most) else most}


def continuous(dtype: DType) -> bool:
    return dtype.is_float or dtype.is_complex


def capacity(dtype: DType) -> float:
    """Up to this magnitude a float type has every integer."""
    info = ml_dtypes.finfo(dtype.component.numpy)
    return min(2.0 ** (info.nmant + 1), float(info.max))


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    half = 1 << dtype.bits - 1
    return (-half, half - 1) if dtype.is_signed else (0, 2 * half - 1)
