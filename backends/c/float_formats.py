"""The floats of at most 8 bits: where their numbers, infinities and NaN are."""

from __future__ import annotations

from dataclasses import dataclass

from ...hlo.dtypes import DType


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """Bits of exponent and mantissa, and codes without sign: of the largest number, infinity and NaN (None: it has
    none). unsigned_zero: there is no -0, and NaN has its code.
    """

    exponent: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    unsigned_zero: bool = False

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)

    @property
    def overflow(self) -> int:
        """The code of numbers beyond the largest one."""
        return self.infinity or self.nan or self.largest


FORMATS: dict[DType, FloatFormat] = {
    DType.F8E5M2: FloatFormat(5, 2, 15, 0x7B, infinity=0x7C, nan=0x7E),
    DType.F8E4M3: FloatFormat(4, 3, 7, 0x77, infinity=0x78, nan=0x7C),
    DType.F8E3M4: FloatFormat(3, 4, 3, 0x6F, infinity=0x70, nan=0x78),
    DType.F8E4M3FN: FloatFormat(4, 3, 7, 0x7E, nan=0x7F),
    DType.F8E4M3B11FNUZ: FloatFormat(4, 3, 11, 0x7F, nan=0x80, unsigned_zero=True),
    DType.F8E4M3FNUZ: FloatFormat(4, 3, 8, 0x7F, nan=0x80, unsigned_zero=True),
    DType.F8E5M2FNUZ: FloatFormat(5, 2, 16, 0x7F, nan=0x80, unsigned_zero=True),
    DType.F4E2M1FN: FloatFormat(2, 1, 1, 0x07),
}
