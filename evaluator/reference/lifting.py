"""Turns a function on arrays in working precision into the function of an elementwise instruction.

Working precision: f16, bf16, fp8 and fp4 compute in f32 and round once, as in XLA:CPU; special functions compute in a
wider type (rounding.py); integers narrower than a byte compute in a byte and wrap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...hlo.dtypes import FLOAT, INTEGER, DType
from ...hlo.ir import Instruction
from .convert import narrow
from .rounding import rounded

Arrays = Callable[..., np.ndarray]

_NARROW_FLOAT = FLOAT - {DType.F32, DType.F64}
WORKING: dict[DType, np.dtype] = {d: np.dtype(np.float32) for d in _NARROW_FLOAT} | {
    d: np.dtype(np.int8 if d.is_signed else np.uint8) for d in INTEGER if d.bits < 8
}
"""The working type of each type that does not compute in itself."""


def lift(reference: Arrays, instruction: Instruction, *, precise: bool = False) -> Arrays:
    """The function from operand arrays to the result array, with `reference` computed in working precision.

    precise: it is a special function; of real arrays it computes as rounding.py describes.
    """
    result = instruction.shape.dtype.numpy
    sources = [o.shape.dtype for o in instruction.operands]
    if precise and all(d in FLOAT for d in sources):
        return _of_reals(reference, instruction.shape.dtype)
    working = [WORKING.get(d, d.numpy) for d in sources]
    casts = [None if w == d.numpy else w for w, d in zip(working, sources, strict=True)]
    if not any(casts):

        def direct(*operands: np.ndarray) -> np.ndarray:
            out = reference(*operands)
            return out if isinstance(out, np.ndarray) and out.dtype == result else np.asarray(out).astype(result)

        return direct

    def widened(*operands: np.ndarray) -> np.ndarray:
        out = reference(*[o if c is None else o.astype(c) for o, c in zip(operands, casts, strict=True)])
        return narrow(np.asarray(out), instruction.shape.dtype)

    return widened


def _of_reals(function: Arrays, dtype: DType) -> Arrays:
    """A special function of real arrays, rounded as in XLA: the result of a narrow float is rounded to f32 first."""
    working = dtype.numpy if dtype is DType.F64 else np.dtype(np.float32)

    def of_reals(*operands: np.ndarray) -> np.ndarray:
        out = rounded(function, *[o.astype(working) for o in operands])
        return out if dtype.numpy == working else narrow(out, dtype)

    return of_reals
