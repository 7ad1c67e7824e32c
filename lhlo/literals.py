"""Array literals as dense elements attributes, bit-exact: NaN payloads, -0, infinities, narrow types.

A complex literal is stored as a tensor of its real component type with an extra last dimension of 2, because the
bindings abort the process when they hand out a dense attribute of complex type. LHLO contains none.
"""

from __future__ import annotations

import math

import numpy as np
from mlir import ir

from ..hlo.dtypes import DType
from ..hlo.errors import UnsupportedError, VerificationError
from ..hlo.ir import Literal
from ..hlo.shapes import Shape
from .memrefs import ELEMENT

_BUFFER = frozenset(
    {
        DType.PRED,
        DType.S8,
        DType.S16,
        DType.S32,
        DType.S64,
        DType.U8,
        DType.U16,
        DType.U32,
        DType.U64,
        DType.F16,
        DType.F32,
        DType.F64,
    }
)
"""Types whose dense attributes numpy can read directly. Other types are read from their text."""


def elements_text(literal: Literal) -> str:
    """`dense<…> : tensor<…>` for an array literal. Raises UnsupportedError for a tuple."""
    if not literal.shape.is_array:
        raise UnsupportedError("lhlo", f"a constant of shape {literal.shape}", remedy="split it into its arrays first")
    if literal.is_splat and not literal.shape.dtype.is_complex:
        element = _element(literal.shape.dtype, literal.array[(0,) * literal.array.ndim])
        return f"dense<{element}> : {tensor(literal.shape.dtype, literal.shape.dims)}"
    dtype, array = components(literal.shape.dtype, literal.array)
    return f"dense<{_body(dtype, array)}> : {tensor(dtype, array.shape)}"


def tensor(dtype: DType, dims: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{d}x' for d in dims)}{ELEMENT[dtype]}>"


def literal_type(shape: Shape) -> str:
    """The MLIR tensor type of the elements attribute that holds a literal of this array shape."""
    return tensor(shape.dtype.component, (*shape.dims, 2) if shape.dtype.is_complex else shape.dims)


def components(dtype: DType, array: np.ndarray) -> tuple[DType, np.ndarray]:
    """Split a complex array into (re, im) pairs in a new last dimension; return any other array unchanged."""
    if not dtype.is_complex:
        return dtype, array
    real = dtype.component
    return real, np.ascontiguousarray(array).view(real.numpy).reshape(*array.shape, 2)


def _body(dtype: DType, array: np.ndarray) -> str:
    if array.size == 0:
        return ""
    raw = np.ascontiguousarray(array).reshape(-1)
    first = raw[0].tobytes()
    if raw.size == 1 or raw.tobytes() == first * raw.size:
        return _element(dtype, raw[0])
    if dtype in (DType.PRED, DType.S1, DType.U1):
        packed = np.packbits(raw.astype(np.int8) != 0, bitorder="little")
        return f'"0x{packed.tobytes().hex().upper()}"'
    return f'"0x{raw.tobytes().hex().upper()}"'


def _element(dtype: DType, value: np.generic) -> str:
    if dtype is DType.PRED:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    number = float(value)
    text = repr(number)
    # MLIR parses decimals as doubles, so the shortest text of a double is exact for every narrower type too.
    if (
        dtype is not DType.F8E8M0FNU
        and np.isfinite(number)
        and dtype.numpy.type(float(text)).tobytes() == value.tobytes()
    ):
        mantissa, mark, exponent = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"
    return f"0x{int.from_bytes(value.tobytes(), 'little'):0{dtype.bytes * 2}X}"


def literal_of(attribute: ir.DenseElementsAttr, shape: Shape) -> Literal:
    """The literal of shape `shape` in the `value` attribute of a constant."""
    dtype = shape.dtype.component
    dims = (*shape.dims, 2) if shape.dtype.is_complex else shape.dims
    if str(attribute.type) != tensor(dtype, dims):
        raise VerificationError(
            f"the value of a constant of shape {shape} has the type {attribute.type}",
            remedy=f"it must be {tensor(dtype, dims)}",
        )
    if attribute.is_splat and math.prod(dims):
        scalar = (
            np.asarray(attribute)[(0,) * len(dims)]
            if dtype in _BUFFER - {DType.PRED}
            else _from_text(dtype, str(attribute), ())[()]
        )
        parts = [scalar] * (2 if shape.dtype.is_complex else 1)
        array = np.broadcast_to(np.array(parts, dtype.numpy).view(shape.dtype.numpy).reshape(()), shape.dims)
        return Literal(shape, array)
    array = np.asarray(attribute) if dtype in _BUFFER else _from_text(dtype, str(attribute), dims)
    array = np.array(array, dtype.numpy, order="C").reshape(dims)
    if shape.dtype.is_complex:
        array = array.view(shape.dtype.numpy).reshape(shape.dims)
    array.flags.writeable = False
    return Literal(shape, array)


def _from_text(dtype: DType, text: str, dims: tuple[int, ...]) -> np.ndarray:
    body = text[len("dense<") : text.rindex("> : ")]
    size = math.prod(dims)
    if body.startswith('"0x'):
        raw = bytes.fromhex(body[3:-1])
        if dtype in (DType.S1, DType.U1):
            return _bits(np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")[:size], dtype)
        array = np.frombuffer(raw, np.int8 if dtype.is_signed else dtype.numpy)
        return array.astype(dtype.numpy)  # MLIR sign-extends narrow signed types to a byte
    words = body.replace("[", "").replace("]", "").split(",") if body else []
    values = [_scalar(dtype, word.strip()) for word in words]
    return np.array(values, dtype.numpy).reshape(dims)


def _scalar(dtype: DType, word: str) -> np.generic:
    if word.startswith("0x"):
        return np.frombuffer(int(word, 16).to_bytes(dtype.bytes, "little"), dtype.numpy)[0]
    if dtype.is_float:
        return dtype.numpy.type(float(word))
    if dtype in (DType.PRED, DType.S1, DType.U1):
        return _bits(np.array([word == "true"], np.uint8), dtype)[0]
    return dtype.numpy.type(int(word))


def _bits(bits: np.ndarray, dtype: DType) -> np.ndarray:
    return (-(bits.astype(np.int8)) if dtype is DType.S1 else bits.astype(np.int8)).astype(dtype.numpy)
