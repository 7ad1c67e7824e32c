"""1/√x on every processor: accurate, and right at zeros, infinities and NaN."""

import numpy as np
import pytest

from ...codegen.options import Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module

CORNERS = np.float32([0.0, -0.0, np.inf, -np.inf, -1.0, 2.0**-126, 4.0, np.nan])
EXPECTED = np.float32([np.inf, -np.inf, 0.0, np.nan, np.nan, 2.0**63, 0.5, np.nan])


@pytest.mark.parametrize("cpu", ["host", *Target.levels()], indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_values(stack, cpu):
    bits = np.arange(0x00800000, 0x7F800000, 99991, dtype=np.uint32)
    x = np.concatenate([CORNERS, bits.view(np.float32)])
    text = f"HloModule m\nENTRY e {{\n x = f32[{len(x)}] parameter(0)\n ROOT r = f32[{len(x)}] rsqrt(x)\n}}\n"
    result = compile_module(parse_module(text), Flags.parse(stack)).execute([x])[0]
    count = len(CORNERS)
    np.testing.assert_array_equal(result[:count], EXPECTED)
    assert list(np.signbit(result[:2])) == [False, True]
    exact = 1 / np.sqrt(x[count:].astype(np.float64))
    assert np.max(np.abs(result[count:] - exact) / np.spacing(exact.astype(np.float32))) < 1.5
