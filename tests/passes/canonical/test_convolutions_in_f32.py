"""Convolutions whose operands are expensive to convert compute in f32, and give what they gave."""

import pytest

from ....formats.text.parser import parse_module
from ....hlo.dtypes import DType
from ....hlo.opcodes import Op
from ....passes.pipeline import optimize
from ...support.check import check


def convolution(dtype: str, result: str, features: int, groups: int = 1) -> str:
    labels = f"dim_labels=b01f_01io->b01f, feature_group_count={groups}"
    x, w, r = f"{dtype}[1,6,7,8]", f"{dtype}[3,3,{8 // groups},{features}]", f"{result}[1,6,7,{features}]"
    return f"""HloModule m

ENTRY e {{
  x = {x} parameter(0)
  w = {w} parameter(1)
  ROOT r = {r} convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, {labels}
}}
"""


@pytest.mark.parametrize(
    ("dtype", "result", "features", "groups", "wanted"),
    [
        ("f16", "f16", 16, 1, DType.F32),
        ("f16", "f32", 16, 1, DType.F32),
        ("f16", "f16", 16, 2, DType.F32),
        ("f8e5m2", "f8e5m2", 16, 1, DType.F32),
        ("f8e4m3fn", "f16", 16, 1, DType.F32),
        ("f8e4m3b11fnuz", "f8e4m3b11fnuz", 16, 1, DType.F32),
        ("f16", "f16", 2, 1, DType.F16),  # each element is read for few products
        ("f16", "f16", 8, 8, DType.F16),
        ("bf16", "bf16", 16, 1, DType.BF16),
        ("f32", "f32", 16, 1, DType.F32),
    ],
)
def test_where(dtype, result, features, groups, wanted):
    text = convolution(dtype, result, features, groups)
    made = optimize(parse_module(text))
    found = [i for c in made.computations for i in c.instructions if i.opcode is Op.CONVOLUTION]
    assert [i.operands[0].shape.dtype for i in found] == [wanted]
    assert made.entry.root.shape.dtype is DType(result)
    check(text, None, ("evaluator", "legacy", "mlir"))
