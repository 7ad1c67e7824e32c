"""Literals in every dtype survive LHLO bit for bit."""

import numpy as np
import pytest
from mlir import ir

from ...hlo.dtypes import NUMPY, DType
from ...hlo.ir import Literal
from ...hlo.shapes import array
from ...lhlo.dialect import context
from ...lhlo.literals import elements_text, literal_of


def bits(dtype: DType, count: int) -> np.ndarray:
    """Random bit patterns of a type, including NaNs with payloads, -0 and subnormals."""
    raw = np.random.default_rng(11).integers(0, 256, size=count * dtype.bytes, dtype=np.uint8)
    if dtype is DType.PRED:
        return (raw & 1).view(dtype.numpy)
    if dtype.bits < 8:
        narrow = raw & ((1 << dtype.bits) - 1)
        if not dtype.is_signed:
            return narrow.view(dtype.numpy) if dtype.is_float else narrow.astype(dtype.numpy)
        return ((narrow.astype(np.int8) << (8 - dtype.bits)).astype(np.int8) >> (8 - dtype.bits)).astype(dtype.numpy)
    return raw.view(dtype.numpy)


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("dims", [(), (3,), (2, 5), (0, 4), (300,)])
def test_round_trip(dtype, dims):
    values = bits(dtype, 300)
    with context(), ir.Location.unknown():
        for start in range(60 if dims == () else 1):
            part = values[start : start + int(np.prod(dims, dtype=int))].reshape(dims)
            literal = Literal(array(dtype, *dims), part)
            back = literal_of(ir.Attribute.parse(elements_text(literal)), literal.shape)  # pyright: ignore[reportArgumentType]
            assert back == literal, elements_text(literal)
            assert back.array.dtype == dtype.numpy


@pytest.mark.parametrize("dtype, value", [(DType.F32, "nan"), (DType.BF16, 1.5), (DType.S4, -3), (DType.PRED, True)])
def test_splat_stays_one_number(dtype, value):
    huge = (1 << 20, 1 << 20)
    literal = Literal(array(dtype, *huge), np.broadcast_to(np.array(value, dtype.numpy), huge))
    text = elements_text(literal)
    assert len(text) < 60
    with context(), ir.Location.unknown():
        back = literal_of(ir.Attribute.parse(text), literal.shape)  # pyright: ignore[reportArgumentType]
    assert back.is_splat and back == literal
