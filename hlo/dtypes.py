"""HLO's primitive types: names, widths, and the numpy (ml_dtypes) type that holds one element."""

from __future__ import annotations

import functools
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class DType(Enum):
    """A primitive type; the value is its name in HLO text."""

    PRED = "pred"
    S1 = "s1"
    S2 = "s2"
    S4 = "s4"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U1 = "u1"
    U2 = "u2"
    U4 = "u4"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    F8E5M2 = "f8e5m2"
    F8E4M3 = "f8e4m3"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3B11FNUZ = "f8e4m3b11fnuz"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E3M4 = "f8e3m4"
    F8E8M0FNU = "f8e8m0fnu"
    F4E2M1FN = "f4e2m1fn"
    C64 = "c64"
    C128 = "c128"
    TOKEN = "token"
    OPAQUE = "opaque"
    TUPLE = "tuple"

    def __repr__(self) -> str:
        return self.value

    __hash__ = object.__hash__  # by identity: Enum.__hash__ hashes the name in Python on every lookup

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer type; pred is neither."""
        return self in SIGNED or self in UNSIGNED

    @property
    def is_signed(self) -> bool:
        return self in SIGNED

    @property
    def is_unsigned(self) -> bool:
        return self in UNSIGNED

    @property
    def is_float(self) -> bool:
        return self in FLOAT

    @property
    def is_complex(self) -> bool:
        return self in COMPLEX

    @property
    def is_array(self) -> bool:
        """Whether its values are arrays of numbers; false for token, opaque and tuple."""
        return self not in NO_ARRAYS

    @property
    def numpy(self) -> np.dtype:
        """The numpy dtype of one element; a type narrower than a byte takes one byte per element."""
        return numpy_types()[self]

    @property
    def bits(self) -> int:
        """Width of one value in bits. pred has 1, although it takes 8 in memory."""
        return BITS[self]

    @property
    def bytes(self) -> int:
        """Bytes of one element in a buffer; a type narrower than a byte takes one byte per element."""
        return _BYTES[self]

    @property
    def component(self) -> DType:
        """The type of the real part of a complex type; any other type itself."""
        return {DType.C64: DType.F32, DType.C128: DType.F64}.get(self, self)


_D = DType
SIGNED = frozenset({_D.S1, _D.S2, _D.S4, _D.S8, _D.S16, _D.S32, _D.S64})
UNSIGNED = frozenset({_D.U1, _D.U2, _D.U4, _D.U8, _D.U16, _D.U32, _D.U64})
INTEGER = SIGNED | UNSIGNED
FLOAT8 = frozenset(
    {_D.F8E5M2, _D.F8E4M3, _D.F8E4M3FN, _D.F8E4M3B11FNUZ, _D.F8E5M2FNUZ, _D.F8E4M3FNUZ, _D.F8E3M4, _D.F8E8M0FNU}
)
FLOAT = frozenset({_D.F16, _D.BF16, _D.F32, _D.F64, _D.F4E2M1FN}) | FLOAT8
COMPLEX = frozenset({_D.C64, _D.C128})

_WIDTHS = {
    1: {_D.PRED, _D.S1, _D.U1},
    2: {_D.S2, _D.U2},
    4: {_D.S4, _D.U4, _D.F4E2M1FN},
    8: {_D.S8, _D.U8, *FLOAT8},
    16: {_D.S16, _D.U16, _D.F16, _D.BF16},
    32: {_D.S32, _D.U32, _D.F32},
    64: {_D.S64, _D.U64, _D.F64, _D.C64},
    128: {_D.C128},
}
BITS: dict[DType, int] = {d: width for width, group in _WIDTHS.items() for d in group}
_BYTES = {d: max(1, width // 8) for d, width in BITS.items()}
NO_ARRAYS = frozenset({_D.TOKEN, _D.OPAQUE, _D.TUPLE})
BITS |= dict.fromkeys(NO_ARRAYS, 0)

BY_NAME: dict[str, DType] = {d.value: d for d in DType if d is not DType.TUPLE}

if TYPE_CHECKING:
    NUMPY: dict[DType, np.dtype]
    FROM_NUMPY: dict[np.dtype, DType]
else:

    def __getattr__(name: str) -> Any:
        """NUMPY and FROM_NUMPY: made when first used, because they need numpy and ml_dtypes."""
        if name in ("NUMPY", "FROM_NUMPY"):
            return globals().setdefault(name, numpy_types() if name == "NUMPY" else from_numpy())
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def numpy_types() -> dict[DType, np.dtype]:
    """Type → the numpy dtype of one element."""
    import ml_dtypes
    import numpy as np

    types = {
        _D.PRED: np.bool_,
        _D.S1: ml_dtypes.int1,
        _D.S2: ml_dtypes.int2,
        _D.S4: ml_dtypes.int4,
        _D.S8: np.int8,
        _D.S16: np.int16,
        _D.S32: np.int32,
        _D.S64: np.int64,
        _D.U1: ml_dtypes.uint1,
        _D.U2: ml_dtypes.uint2,
        _D.U4: ml_dtypes.uint4,
        _D.U8: np.uint8,
        _D.U16: np.uint16,
        _D.U32: np.uint32,
        _D.U64: np.uint64,
        _D.F16: np.float16,
        _D.BF16: ml_dtypes.bfloat16,
        _D.F32: np.float32,
        _D.F64: np.float64,
        _D.F8E5M2: ml_dtypes.float8_e5m2,
        _D.F8E4M3: ml_dtypes.float8_e4m3,
        _D.F8E4M3FN: ml_dtypes.float8_e4m3fn,
        _D.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
        _D.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
        _D.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
        _D.F8E3M4: ml_dtypes.float8_e3m4,
        _D.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
        _D.F4E2M1FN: ml_dtypes.float4_e2m1fn,
        _D.C64: np.complex64,
        _D.C128: np.complex128,
    }
    return {d: np.dtype(t) for d, t in types.items()}


@functools.cache
def from_numpy() -> dict[np.dtype, DType]:
    """numpy dtype → the type that it holds."""
    return {t: d for d, t in numpy_types().items()}
