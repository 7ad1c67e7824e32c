"""Sums whose error does not grow with their length: floats add up in double, doubles with a compensation (Neumaier)."""

from __future__ import annotations

from dataclasses import dataclass

from ...hlo.dtypes import DType
from .code import Code, Var
from .scalars import decode
from .types import NARROW, c_type

SHORT = 32
"""Terms up to which a sum is rounded at each step, as its region says and XLA does it."""


def is_summed(dtype: DType, length: int) -> bool:
    """Whether Sum makes a sum of `length` elements; others are computed as their region says."""
    return length > SHORT and (dtype.is_float or dtype.is_complex)


@dataclass(frozen=True, slots=True)
class Sum:
    """An open sum. parts: its variables: of each part of the number, the sum and maybe its compensation."""

    code: Code
    dtype: DType
    parts: tuple[tuple[str, str | None], ...]

    @staticmethod
    def start(code: Code, dtype: DType, value: str) -> Sum:
        exact = dtype in (DType.F64, DType.C128)
        parts = []
        for text in _wide(dtype, value):
            total = code.variable("double", text)
            parts.append((total, code.variable("double", "0") if exact else None))
        return Sum(code, dtype, tuple(parts))

    def add(self, value: str) -> None:
        self.add_wide(*_wide(self.dtype, value))

    def add_wide(self, *values: str) -> None:
        """Add a number, a double for each of its parts."""
        code = self.code
        for (total, rest), value in zip(self.parts, values, strict=True):
            if rest is None:
                code.line(f"{total} += {value};")
                continue
            term = code.variable("const double", value)
            after = code.variable("const double", f"{total} + {term}")
            larger = f"({total} - {after}) + {term}"
            code.line(f"{rest} += fabs({total}) >= fabs({term}) ? {larger} : ({term} - {after}) + {total};")
            code.line(f"{total} = {after};")

    def close(self) -> Var:
        """The sum, rounded to its type."""
        found = []
        for total, rest in self.parts:
            useful = f"{rest} != 0 && fabs({rest}) < INFINITY"
            found.append(total if rest is None else f"({useful} ? {total} + {rest} : {total})")
        type_ = c_type(self.dtype)
        if self.dtype.is_complex:
            part = c_type(self.dtype.component)
            text = f"tb_make_{self.dtype.value}(({part}){found[0]}, ({part}){found[1]})"
        elif self.dtype in NARROW:
            text = f"tb_encode_{self.dtype.value}(tb_odd_f32({found[0]}))"
        else:
            text = f"({type_}){found[0]}"
        return self.code.local(self.code.variable(f"const {type_}", text))


def _wide(dtype: DType, value: str) -> list[str]:
    if dtype.is_complex:
        return [f"(double){value}.re", f"(double){value}.im"]
    return [f"(double){decode(dtype, value)}"]
