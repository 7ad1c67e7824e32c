"""Reads constants: numbers, nested braces, tuples, `{...}`. Large arrays are decoded by NumPy, not token by token."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Literal
from ...hlo.shapes import Shape
from .lexer import BLANK, Lexer

_REAL = (
    r"(?:-?0x[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?p[+-]?\d++|-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?+"
    r"|-?nan(?:\(0x[0-9a-fA-F]++\))?+|-?inf|true|false)(?![A-Za-z0-9_.])"
)
_scalar = re.compile(rf"({_REAL}){BLANK}", re.ASCII)
_flat = re.compile(r"\{(?:[-+0-9.,eE\s]++|/\*(?s:.*?)\*/)*+\}")
_nested = re.compile(r"\{(?:[-+0-9.,eE{}\s]++|/\*(?s:.*?)\*/)*+")
_INTEGERS = re.compile(r"\s*-?\d++\s*(?:,\s*-?\d++\s*)*+", re.ASCII)
_DECIMAL = r"-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?+"
_FLOATS = re.compile(rf"\s*{_DECIMAL}\s*(?:,\s*{_DECIMAL}\s*)*+", re.ASCII)
_DOTS = re.compile(r"\{\s*\.\.\.\s*\}")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRACES = bytes.maketrans(b"{}", b"  ")
_NO_BRACES = bytes(set(range(256)) - set(b"{},"))

MAX_ELEMENTS = 1 << 31
"""Limit on the elements of a constant; a larger one is refused before memory is allocated."""

MAX_ZEROS = 1 << 28
"""Limit in bytes on an array whose text is one number, not 0 (see _one_number)."""


def parse_literal(lexer: Lexer, shape: Shape) -> Literal:
    """Consume the value of a constant of `shape`."""
    if shape.is_tuple:
        return _tuple(lexer, shape)
    if shape.dtype is DType.TOKEN:
        return Literal(shape, None)
    if not shape.is_array:
        lexer.fail(f"a constant cannot have the shape {shape}")
    if shape.rank == 0:
        if lexer.match(_DOTS):
            return Literal(shape, None)
        return Literal(shape, _freeze(_convert(lexer, shape.dtype, [_element(lexer, shape.dtype)]), shape))
    if (dynamic := next((d for d, size in enumerate(shape.dims) if size < 0), None)) is not None:
        lexer.fail(f"a constant needs static sizes; dimension {dynamic} of {shape} is unbounded")
    return _dense(lexer, shape)


def _tuple(lexer: Lexer, shape: Shape) -> Literal:
    lexer.expect("(", f"before the elements of a constant of shape {shape}")
    elements = []
    for i, element in enumerate(shape.elements):
        if i:
            lexer.expect(",", f"between the elements of a constant with {len(shape.elements)} elements")
        _skip_shape(lexer)
        elements.append(parse_literal(lexer, element))
    lexer.expect(")", f"after the {len(shape.elements)} elements of a tuple constant")
    return Literal(shape, tuple(elements))


_old_style_shape = re.compile(r"[a-z][a-z0-9]*\[[0-9,]*\](?:\{[0-9,]*\})?(?=\s*[{(\-0-9a-z])")


def _skip_shape(lexer: Lexer) -> None:
    """Skips the shape that old text repeats before each element of a tuple constant."""
    lexer.match(_old_style_shape)


def _dense(lexer: Lexer, shape: Shape) -> Literal:
    if lexer.match(_DOTS):
        return Literal(shape, None)
    if not lexer.at("{"):
        return _one_number(lexer, shape)
    if shape.size > MAX_ELEMENTS:
        lexer.fail(f"a constant of {shape.size} elements is too large to read")
    fast = _fast(lexer, shape)
    if fast is not None:
        return Literal(shape, _freeze(fast, shape))
    values: list[Any] = []
    _elements(lexer, shape, 0, values)
    return Literal(shape, _freeze(_convert(lexer, shape.dtype, values), shape))


def _one_number(lexer: Lexer, shape: Shape) -> Literal:
    """Reads one number for a whole array: as in XLA, it is the first element, and all others are zero.

    If the number is zero, the array is a view with strides 0, which takes no memory.
    """
    start = lexer.pos
    one = _convert(lexer, shape.dtype, [_element(lexer, shape.dtype)])
    if not any(one.tobytes()):
        try:
            return Literal(shape, np.broadcast_to(one.reshape(()), shape.dims))
        except ValueError:
            lexer.fail(f"a constant of shape {shape} is too large", start)
    if shape.bytes > MAX_ZEROS:
        lexer.fail(f"a constant of {shape.bytes} bytes is too large to fill from one number", start)
    array = np.zeros(shape.size, shape.dtype.numpy)
    array[:1] = one
    return Literal(shape, _freeze(array, shape))


def _fast(lexer: Lexer, shape: Shape) -> np.ndarray | None:
    """Decode plain numbers in exactly the expected braces with NumPy; None for all other text."""
    if shape.size == 0 or shape.dtype.is_complex:
        return None
    m = (_flat if shape.rank == 1 else _nested).match(lexer.text, lexer.pos)
    if not m:
        return None
    integral = not shape.dtype.is_float
    plain = _COMMENT.sub(" ", m[0]) if "/" in m[0] else m[0]
    text = plain.encode("ascii", "replace")
    if text.translate(None, _NO_BRACES) != _skeleton(shape.dims, len(text)):
        return None
    numbers = text.translate(_BRACES)
    if not (_INTEGERS if integral else _FLOATS).fullmatch(numbers.decode("ascii")):
        return None
    try:
        array = np.fromstring(numbers, dtype=np.int64 if integral else np.float64, sep=",")
    except (ValueError, DeprecationWarning):
        return None
    if array.size != shape.size or not _in_range(array, shape.dtype):
        return None
    lexer.seek(m.end())
    return _cast(array, shape.dtype)


def _skeleton(dims: tuple[int, ...], limit: int) -> bytes:
    """The braces and commas in the text of an array of this shape; b'' if they are longer than `limit` bytes."""
    pattern = b""
    for size in reversed(dims):
        if size * (len(pattern) + 1) > limit:
            return b""
        pattern = b"{" + b",".join([pattern] * size) + b"}"
    return pattern


def _in_range(array: np.ndarray, dtype: DType) -> bool:
    """Whether all numbers are in the range of the type. If not, the slow path finds the wrong one and its location.

    The limits of int64 count as outside, because NumPy may have clamped a larger number to them.
    """
    if dtype is DType.PRED:
        return bool(((array == 0) | (array == 1)).all())
    if dtype.is_integer:
        low, high = integer_range(dtype)
        return bool(
            (array > -(2**63)).all()
            and (array < 2**63 - 1).all()
            and (array >= low).all()
            and (array <= min(high, 2**63 - 1)).all()
        )
    return _floats_fit(array, dtype)


def _floats_fit(array: np.ndarray, dtype: DType) -> bool:
    info = ml_dtypes.finfo(dtype.component.numpy)
    finite = array[np.isfinite(array)]
    return bool(len(finite) == len(array) and (np.abs(finite) <= float(info.max)).all())


def integer_range(dtype: DType) -> tuple[int, int]:
    bits = dtype.bits
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)


def _freeze(array: np.ndarray, shape: Shape) -> np.ndarray:
    array = array.reshape(shape.dims)
    array.flags.writeable = False
    return array


class Nan:
    """A NaN as text states it: its sign, and its payload or None."""

    __slots__ = ("negative", "payload")

    def __init__(self, negative: bool, payload: int | None):
        self.negative, self.payload = negative, payload


# -- the slow path: one element at a time, with exact errors ----------------------------------------------------------
def _elements(lexer: Lexer, shape: Shape, dim: int, out: list[Any]) -> None:
    lexer.expect("{", f"to open dimension {dim} of a constant of shape {shape}")
    size = shape.dims[dim]
    for i in range(size):
        lexer.eat(",")  # as in XLA, commas are optional
        if lexer.at("}"):
            lexer.fail(f"dimension {dim} of a constant of shape {shape} has {i} elements, not {size}")
        if dim + 1 < shape.rank:
            _elements(lexer, shape, dim + 1, out)
        else:
            out.append(_element(lexer, shape.dtype))
    lexer.eat(",")
    if not lexer.at("}") and not lexer.ended:
        lexer.fail(f"dimension {dim} of a constant of shape {shape} has more than {size} elements")
    lexer.expect("}", f"to close dimension {dim} of a constant of shape {shape}")


def _element(lexer: Lexer, dtype: DType) -> Any:
    """Reads one number: an int, a float, a Nan, or for a complex number a pair of floats or Nans."""
    if not dtype.is_complex:
        return _real(lexer, dtype)
    if not lexer.eat("("):
        return _real(lexer, dtype.component), 0.0
    real = _real(lexer, dtype.component)
    lexer.expect(",", "between the parts of a complex number")
    imaginary = _real(lexer, dtype.component)
    lexer.expect(")", "after a complex number")
    return real, imaginary


def _real(lexer: Lexer, dtype: DType) -> Any:
    m = _scalar.match(lexer.text, lexer.pos)
    if not m:
        lexer.fail(f"expected a {dtype.value} number, found {lexer.found()}")
    start, text = lexer.pos, m[1]
    lexer.pos = m.end()
    if dtype.is_integer or dtype is DType.PRED:
        return _integer(lexer, text, dtype, start)
    if "nan" in text:
        return _nan(lexer, text, dtype, start)
    if text in ("true", "false"):
        lexer.fail(f"expected a {dtype.value} number, found '{text}'", start)
    return _float(lexer, text, dtype, start)


def _integer(lexer: Lexer, text: str, dtype: DType, start: int) -> int:
    if text in ("true", "false") and dtype is DType.PRED:
        return int(text == "true")
    if not text.lstrip("-").isdigit():
        what = "true or false" if dtype is DType.PRED else f"an integer for {dtype.value}"
        lexer.fail(f"expected {what}, found '{text[:40]}'", start)
    number = int(text[:40])
    if not -(2**63) <= number < 2**64:
        lexer.fail(f"integer {text[:24]}… does not fit in 64 bits", start)
    if dtype is DType.PRED:
        return int(number != 0)
    low, high = integer_range(dtype)
    if dtype.bits == 64:
        return number - 2**64 if number > high else number + 2**64 if number < low else number
    if not low <= number <= high:
        lexer.fail(f"{text} is out of range for {dtype.value}, which holds {low} to {high}", start)
    return number


def _float(lexer: Lexer, text: str, dtype: DType, start: int) -> float:
    try:
        value = float.fromhex(text) if "x" in text else float(text)
    except OverflowError:
        lexer.fail(f"{text[:40]} is out of range for {dtype.value}", start)
    if math.isfinite(value) and abs(value) > (limit := float(ml_dtypes.finfo(dtype.numpy).max)):
        with np.errstate(all="ignore"):
            if not np.isfinite(np.float64(value).astype(dtype.numpy).astype(np.float64)):
                lexer.fail(f"{text[:40]} is out of range for {dtype.value}, whose largest number is {limit:g}", start)
    return value


def _nan(lexer: Lexer, text: str, dtype: DType, start: int) -> Nan:
    if "(" not in text:
        return Nan(text.startswith("-"), None)
    payload, limit = int(text[text.index("(") + 1 : -1], 16), (1 << ml_dtypes.finfo(dtype.numpy).nmant) - 1
    if dtype not in _IEEE:
        lexer.fail(f"a NaN of {dtype.value} has no payload", start, "write nan")
    if not 0 < payload <= limit:
        lexer.fail(f"NaN payload {payload:#x} is outside 0x1 to {limit:#x} of {dtype.value}", start)
    return Nan(text.startswith("-"), payload)


def _convert(lexer: Lexer, dtype: DType, values: list[Any]) -> np.ndarray:
    if dtype.is_complex:
        return _floats([part for pair in values for part in pair], dtype.component).view(dtype.numpy)
    if dtype.is_float:
        return _floats(values, dtype)
    return _cast(np.array(values, dtype=np.uint64 if dtype.is_unsigned else np.int64), dtype)


def _floats(values: list[Any], dtype: DType) -> np.ndarray:
    array = _cast(np.array([math.nan if isinstance(v, Nan) else v for v in values], np.float64), dtype)
    nans = [(i, v) for i, v in enumerate(values) if isinstance(v, Nan)]
    if nans:
        bits = array.view(_BITS[array.itemsize])
        for i, nan in nans:
            bits[i] = _nan_bits(nan, dtype, int(bits[i]))
    return array


_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_IEEE = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64, DType.F8E5M2, DType.F8E4M3, DType.F8E3M4})
"""Types whose NaNs have a sign and a payload, as in IEEE 754."""


def _nan_bits(nan: Nan, dtype: DType, default: int) -> int:
    """The bits of a NaN. Types with a single NaN keep `default`, the bits that NumPy produced."""
    if dtype is DType.F8E4M3FN:
        return 0xFF if nan.negative else 0x7F
    if dtype not in _IEEE:
        return default
    width, mantissa = dtype.bits, ml_dtypes.finfo(dtype.numpy).nmant
    payload = (nan.payload or 0) & ((1 << mantissa) - 1)
    exponent = ((1 << width - 1 - mantissa) - 1) << mantissa
    return (int(nan.negative) << width - 1) | exponent | (payload or 1 << mantissa - 1)


def nan_payload(value: np.ndarray, dtype: DType) -> tuple[bool, int | None]:
    """(negative, payload) of a NaN in an array of one element. The payload of the usual quiet NaN is None."""
    bits = int(value.view(_BITS[value.itemsize])[0])
    if dtype is DType.F8E4M3FN:
        return bits == 0xFF, None
    if dtype not in _IEEE:
        return False, None
    mantissa = ml_dtypes.finfo(dtype.numpy).nmant
    payload = bits & ((1 << mantissa) - 1)
    return bool(bits >> dtype.bits - 1), None if payload == 1 << mantissa - 1 else payload


def _cast(array: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype is DType.PRED:
        return array.astype(np.bool_)
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy)
