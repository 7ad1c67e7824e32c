"""Convolutions with nothing behind them: mlir stores vectors of sums as they are, without a loop over lanes."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed
from ..support.processors import code_for


def text_of(name, size, ins, outs, groups=1, stride=1, dtype="f32", result="b01f"):
    n = (size - 1) // stride + 1
    out = f"{dtype}[2,{n},{n},{outs}]" if result == "b01f" else f"{dtype}[{n},{n},2,{outs}]"
    return f"""HloModule {name}
ENTRY e {{
  x = {dtype}[2,{size},{size},{ins}] parameter(0)
  k = {dtype}[3,3,{ins // groups},{outs}] parameter(1)
  ROOT c = {out} convolution(x, k), window={{size=3x3 stride={stride}x{stride} pad=1_1x1_1}},
    dim_labels=b01f_01io->{result}, feature_group_count={groups}
}}
"""


CASES = {
    "groups": {"size": 14, "ins": 64, "outs": 64, "groups": 8},  # whole tiles from registers, the border by calls
    "few": {"size": 9, "ins": 4, "outs": 16},
    "strided": {"size": 13, "ins": 16, "outs": 32, "stride": 2},
    "calls": {"size": 29, "ins": 40, "outs": 64},  # the last tile lies over another
    "one_position": {"size": 1, "ins": 64, "outs": 128},
    "turned": {"size": 12, "ins": 32, "outs": 64, "result": "01bf"},
    "doubles": {"size": 10, "ins": 8, "outs": 24, "dtype": "f64"},
    "masked": {"size": 10, "ins": 8, "outs": 20},
    "long": {"size": 7, "ins": 600, "outs": 64},
    "narrow": {"size": 10, "ins": 16, "outs": 32, "dtype": "bf16"},
}


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", CASES)
def test_values(name, level):
    with code_for(level):
        check(text_of(f"{name}_{level.replace('-', '_')}", **CASES[name]), None, ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("name, plain", [("groups", True), ("few", True), ("masked", False), ("narrow", False)])
def test_no_element_is_stored_alone(name, plain):
    """Unless a run of features does not fill its vectors, or sums are rounded."""
    options = EmitOptions(Target.level("x86-64-v4"), keep_stages=True, ranges=True)
    made = emitter("mlir").emit(plan(parsed(text_of(name, **CASES[name]))).emitted, options)
    text = dict(made.stages)["mlir"]
    assert ("vector.store" in text and "memref.store" not in text) is plain
