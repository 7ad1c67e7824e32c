"""Sinks, which JAX makes to keep a value alive for XLA's compiler: they compute nothing, on all stacks."""

import numpy as np
import pytest

from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....passes.pipeline import optimize
from ...support.check import check

MODULE = """HloModule sink
ENTRY main {
  x = f32[4] parameter(0)
  one = f32[4] constant({1, 1, 1, 1})
  y = f32[4] add(x, one)
  s = () custom-call(OPERANDS), custom_call_target="dce_sink", custom_call_has_side_effect=true,
    api_version=API_VERSION_TYPED_FFI
  ROOT r = ROOTED
}
"""
ROOTS = {"apart": "f32[4] copy(x)", "in the result": "(f32[4], ()) tuple(x, s)"}


@pytest.mark.parametrize("operands", ["y", "y, x", ""])
@pytest.mark.parametrize("root", ROOTS)
def test_a_sink_computes_nothing(operands, root):
    text = MODULE.replace("OPERANDS", operands).replace("ROOTED", ROOTS[root])
    check(text, [np.arange(4, dtype=np.float32)])
    made = optimize(parse_module(text))
    assert Op.CUSTOM_CALL not in made.opcodes and Op.ADD not in made.opcodes
