"""From a function on arrays in working precision to the rule of an elementwise instruction.

Working precision: f16, bf16, fp8 and fp4 compute in f32 and round once, as XLA:CPU does; special functions compute f32
in f64; integers narrower than a byte compute in a byte and wrap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...hlo.dtypes import FLOAT, INTEGER, DType
from ...hlo.ir import Instruction
from .convert import narrow

Arrays = Callable[..., np.ndarray]

_NARROW_FLOAT = FLOAT - {DType.F32, DType.F64}
WORKING: dict[DType, np.dtype] = {d: np.dtype(np.float32) for d in _NARROW_FLOAT} | {
    d: np.dtype(np.int8 if d.is_signed else np.uint8) for d in INTEGER if d.bits < 8
}
"""Types whose arithmetic happens in another type."""

PRECISE: dict[DType, np.dtype] = {d: np.dtype(np.float64) for d in _NARROW_FLOAT | {DType.F32}}
"""Working types of special functions (complex ones choose for themselves)."""


def lift(reference: Arrays, instruction: Instruction, *, precise: bool = False) -> Arrays:
    """The function from the operands' arrays to the result's array."""
    result = instruction.shape.dtype.numpy
    sources = [o.shape.dtype for o in instruction.operands]
    table = PRECISE if precise else WORKING
    working = [table.get(d, d.numpy) for d in sources]
    casts = [None if w == d.numpy else w for w, d in zip(working, sources, strict=True)]
    if not any(casts):

        def direct(*operands: np.ndarray) -> np.ndarray:
            out = reference(*operands)
            return out if isinstance(out, np.ndarray) and out.dtype == result else np.asarray(out).astype(result)

        return direct

    through_f32 = precise and instruction.shape.dtype in _NARROW_FLOAT  # round as XLA does: first to f32

    def widened(*operands: np.ndarray) -> np.ndarray:
        out = reference(*[o if c is None else o.astype(c) for o, c in zip(operands, casts, strict=True)])
        if through_f32:
            out = np.asarray(out).astype(np.float32)
        return narrow(np.asarray(out), instruction.shape.dtype)

    return widened
