"""HLO shapes as memref types, and back. A missing layout and an explicit row-major layout give the same memref."""

from __future__ import annotations

import re
from functools import lru_cache

from ..formats.text.lexer import Lexer
from ..formats.text.parse_shapes import parse_shape
from ..hlo.dtypes import DType
from ..hlo.errors import ParseError, UnsupportedError, VerificationError
from ..hlo.shapes import Layout, Shape

ELEMENT: dict[DType, str] = {
    DType.PRED: "i1",
    DType.S1: "si1",
    DType.S2: "i2",
    DType.S4: "i4",
    DType.S8: "i8",
    DType.S16: "i16",
    DType.S32: "i32",
    DType.S64: "i64",
    DType.U1: "ui1",
    DType.U2: "ui2",
    DType.U4: "ui4",
    DType.U8: "ui8",
    DType.U16: "ui16",
    DType.U32: "ui32",
    DType.U64: "ui64",
    DType.F16: "f16",
    DType.BF16: "bf16",
    DType.F32: "f32",
    DType.F64: "f64",
    DType.F8E5M2: "f8E5M2",
    DType.F8E4M3: "f8E4M3",
    DType.F8E4M3FN: "f8E4M3FN",
    DType.F8E4M3B11FNUZ: "f8E4M3B11FNUZ",
    DType.F8E5M2FNUZ: "f8E5M2FNUZ",
    DType.F8E4M3FNUZ: "f8E4M3FNUZ",
    DType.F8E3M4: "f8E3M4",
    DType.F8E8M0FNU: "f8E8M0FNU",
    DType.F4E2M1FN: "f4E2M1FN",
    DType.C64: "complex<f32>",
    DType.C128: "complex<f64>",
}
DTYPE: dict[str, DType] = {text: dtype for dtype, text in ELEMENT.items()}

_MEMREF = re.compile(r"memref<((?:\d+x)*)([A-Za-z]\w*|complex<f\d\d>)(?:, strided<\[([\d, ]*)\]>)?>")


@lru_cache(maxsize=1024)
def memref(shape: Shape) -> str:
    """Text of the memref type of an array shape. A dynamic dimension has the size of its bound."""
    if not shape.is_array:
        raise UnsupportedError("lhlo", f"a value of type {shape.dtype.value}", remedy="only arrays lie in memory")
    dims = "".join(f"{d}x" for d in shape.dims)
    strides = "" if shape.strides == _row_major(shape.dims) else f", strided<[{', '.join(map(str, shape.strides))}]>"
    return f"memref<{dims}{ELEMENT[shape.dtype]}{strides}>"


@lru_cache(maxsize=1024)
def shape_of_memref(text: str) -> Shape:
    """The shape that a memref type stands for. Its layout is explicit unless it is a scalar."""
    match = _MEMREF.fullmatch(text)
    dtype = DTYPE.get(match[2]) if match else None
    if match is None or dtype is None:
        raise VerificationError(
            f"{text} is not the type of an HLO array",
            remedy="static sizes, an element type of docs/lhlo.md, no layout or strided<[…]> without offset",
        )
    dims = tuple(map(int, match[1].split("x")[:-1]))
    if match[3] is None:
        return Shape(dtype, dims, Layout(tuple(range(len(dims) - 1, -1, -1))) if dims else None)
    strides = tuple(map(int, match[3].split(","))) if match[3].strip() else ()
    if len(strides) != len(dims):
        raise VerificationError(f"{text} has {len(dims)} dimensions and {len(strides)} strides")
    order = sorted(range(len(dims)), key=lambda d: (strides[d], max(dims[d], 1), -d))
    shape = Shape(dtype, dims, Layout(tuple(order)))
    if shape.strides != strides:
        raise VerificationError(
            f"the strides of {text} are no order of its dimensions",
            remedy=f"for the nearest order they would be {list(shape.strides)}",
        )
    return shape


@lru_cache(maxsize=1024)
def canonical(shape: Shape) -> Shape:
    """The shape after a round trip through memrefs: a tuple becomes the flat tuple of its leaves."""
    if shape.is_tuple:
        return Shape(DType.TUPLE, elements=tuple(canonical(leaf) for _, leaf in shape.leaves()))
    return shape_of_memref(memref(shape))


@lru_cache(maxsize=1024)
def shape_from_text(text: str) -> Shape:
    """Parse a shape from HLO text. Raises VerificationError."""
    lexer = Lexer(text)
    try:
        shape = parse_shape(lexer)
    except ParseError as error:
        raise VerificationError(f"'{text}' is no shape: {error.message}", remedy=error.remedy) from None
    if text[lexer.pos :].strip():
        raise VerificationError(f"'{text}' is not the text of one shape")
    return shape


def _row_major(dims: tuple[int, ...]) -> tuple[int, ...]:
    return Shape(DType.F32, dims).strides
