"""A row of EMIT, and the arithmetic in which it computes. Unnested emitters need this much of the elemental ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...codegen.field.element import active
from ...codegen.field.names import OPAQUE_COMPLEX
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ..core.builder import Code
from ..core.registers import Register
from . import half
from .convert import wrap_integer
from .functions import named_complex
from .narrow import decode, encode
from .real import Real


@dataclass(frozen=True, slots=True)
class Typed:
    """The emitters of an opcode, one per kind of operand; None if the opcode is not defined for the kind.

    pred(code, *values), integer(code, dtype, *values), real(Real, *values), complex(Real, *pairs).
    """

    pred: Callable[..., Register] | None = None
    integer: Callable[..., Register] | None = None
    real: Callable[..., Register] | None = None
    complex: Callable[..., Register] | None = None

    def supports(self, dtype: DType) -> bool:
        return self._function(dtype) is not None

    def _function(self, dtype: DType) -> Callable[..., Register] | None:
        if dtype is DType.PRED:
            return self.pred
        return self.integer if dtype.is_integer else self.complex if dtype.is_complex else self.real

    def __call__(self, code: Code, instruction: Instruction, *values: Any) -> Register:
        dtype = instruction.operands[0].shape.dtype
        function = self._function(dtype)
        assert function is not None, f"{instruction.opcode} of {dtype} was not refused"
        if dtype is DType.PRED:
            return function(code, *values)
        if dtype.is_integer:
            result = function(code, dtype, *values)
            return wrap_integer(code, dtype, result) if instruction.shape.dtype is dtype else result
        real = real_of(code, dtype)
        if dtype.is_complex:
            if active() is not None and instruction.opcode in OPAQUE_COMPLEX:
                return named_complex(real, instruction.opcode.value, values, not instruction.shape.dtype.is_complex)
            return function(real, *values)
        if dtype is DType.F16 and instruction.opcode in half.OPS and not code.view.by_element:
            return half.ordered(code, instruction.opcode, list(values))
        result = function(real, *(decode(code, dtype, v) for v in values))
        return encode(code, dtype, result) if instruction.shape.dtype is dtype else result


def real_of(code: Code, dtype: DType) -> Real:
    """The arithmetic in which a float or complex dtype is computed: f64, otherwise f32."""
    return Real(code, 64 if dtype.component is DType.F64 else 32)
