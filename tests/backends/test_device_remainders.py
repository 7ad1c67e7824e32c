"""The remainder of devices without a mathematical library, run on this machine: every bit of NumPy's."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from ...backends.accelerator.remainders import with_exact_remainders
from ...codegen.load import LoadedCode, load
from ...codegen.optimize import build_object
from ...codegen.options import EmitOptions
from ...hlo.dtypes import DType
from ..support.corpus import DEEP

TYPES = {"float": DType.F32, "double": DType.F64, "half": DType.F16, "bfloat": DType.BF16}

LOOP = """define void @remainders(ptr %x, ptr %y, ptr %z, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %a = getelementptr TYPE, ptr %x, i64 %i
  %b = getelementptr TYPE, ptr %y, i64 %i
  %c = getelementptr TYPE, ptr %z, i64 %i
  %u = load TYPE, ptr %a
  %v = load TYPE, ptr %b
  %w = frem TYPE %u, %v
  store TYPE %w, ptr %c
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""


def compiled(type_: str) -> LoadedCode:
    text = with_exact_remainders(LOOP.replace("TYPE", type_))
    assert " frem " not in text
    return load([build_object(text, EmitOptions.host(), None).data])


def operands(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Any bits, pairs of special numbers, and small multiples of the least subnormal."""
    rng, about, kind = np.random.default_rng(0), ml_dtypes.finfo(dtype.numpy), dtype.numpy
    bits = np.dtype(f"u{kind.itemsize}")
    count = 1_000_000 if DEEP else 20_000
    x, y = (rng.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(kind) for _ in range(2))
    least = float(about.smallest_subnormal)
    tiny = float(about.tiny)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 3, float(about.max), tiny, 1.5 * tiny, least, -7 * least]
    special = np.array(special).astype(kind)
    small = [(rng.integers(-most, most, 1000) * np.float64(least)).astype(kind) for most in (1000, 10)]
    first = [x, np.repeat(special, len(special)), small[0]]
    second = [y, np.tile(special, len(special)), small[1]]
    return np.concatenate(first), np.concatenate(second)


@pytest.mark.parametrize("type_", TYPES)
def test_remainders_are_exact(type_: str):
    dtype = TYPES[type_]
    x, y = operands(dtype)
    code = compiled(type_)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(code.address("remainders"))
    found = np.empty_like(x)
    call(x.ctypes.data, y.ctypes.data, found.ctypes.data, x.size)
    wide = np.float64 if dtype is DType.F64 else np.float32
    with np.errstate(all="ignore"):
        expected = np.fmod(x.astype(wide), y.astype(wide)).astype(dtype.numpy)
    nan = np.isnan(expected.astype(wide))
    assert np.isnan(found.astype(wide))[nan].all()
    bits, seen = np.dtype(f"u{dtype.numpy.itemsize}"), ~nan
    if dtype is DType.BF16:  # an instruction of AVX-512 that rounds to bf16 flushes subnormals
        seen &= (np.abs(expected.astype(wide)) >= float(ml_dtypes.finfo(dtype.numpy).tiny)) | (expected == 0)
    np.testing.assert_array_equal(found[seen].view(bits), expected[seen].view(bits))


def test_modules_without_remainders_stay_as_they_are():
    text = LOOP.replace("TYPE", "float").replace("frem", "fdiv")
    assert with_exact_remainders(text) == text
