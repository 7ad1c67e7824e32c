"""Dots that only sum over the slow dimensions are sums of columns: values on all stacks, at sizes with a rest."""

import pytest

from ..support.check import check


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s32", "u8"])
@pytest.mark.parametrize(
    ("dims", "result", "batch", "summed"),
    [
        ("37,129", "129", "1", "0"),
        ("3,300,17", "3,17", "0,2", "1"),
        ("700,2", "2", "1", "0"),
        ("40,5,8", "8", "2", "0,1"),
    ],
)
def test_values(dtype, dims, result, batch, summed):
    numbers = "".join(f", {s}_batch_dims={{{batch}}}, {s}_contracting_dims={{{summed}}}" for s in ("lhs", "rhs"))
    check(
        f"""HloModule m

ENTRY e {{
  x = {dtype}[{dims}] parameter(0)
  y = {dtype}[{dims}] parameter(1)
  ROOT r = {dtype}[{result}] dot(x, y){numbers}
}}
""",
        None,
        ("evaluator", "legacy", "mlir"),
    )
