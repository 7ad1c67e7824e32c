"""Row kernels that compute a range of rows: positions along several dimensions of rows, and vectors of short rows."""

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes import pipeline
from ...planning.planner import plan
from ..support.check import run_stack

STACKS = ("legacy", "mlir")


def distances(*rows: int) -> str:
    """Powers of the squared distances between points, from one of the last dimension of rows to those of the others."""
    shape, flat = ",".join(map(str, rows)), ",".join(map(str, rows[:-1]))
    outer, last, rank = ",".join(map(str, range(len(rows) - 1))), len(rows) - 1, len(rows)
    return f"""HloModule m
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[{rows[-1]},3] parameter(0)
  y = f32[{flat},3] parameter(1)
  p = f32[{shape},3] broadcast(x), dimensions={{{last},{rank}}}
  q = f32[{shape},3] broadcast(y), dimensions={{{outer},{rank}}}
  d = f32[{shape},3] subtract(p, q)
  s = f32[{shape},3] multiply(d, d)
  z = f32[] constant(0)
  r = f32[{shape}] reduce(s, z), dimensions={{{rank}}}, to_apply=add
  k = f32[] constant(0.5)
  kb = f32[{shape}] broadcast(k), dimensions={{}}
  t = f32[{shape}] add(r, kb)
  m = f32[] constant(-1.5)
  mb = f32[{shape}] broadcast(m), dimensions={{}}
  ROOT o = f32[{shape}] power(t, mb) }}
"""


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("rows", [(512, 256), (4, 32768), (3, 40001), (2, 3, 20000), (200, 7, 90), (70001, 2)])
def test_each_row_is_computed_at_its_place(rows, stack):
    text, rng = distances(*rows), np.random.default_rng(1)
    inputs = [rng.normal(size=(*shape, 3)).astype(np.float32) for shape in (rows[-1:], rows[:-1])]
    (request,) = plan(pipeline.optimize(parse_module(text))).kernels
    assert request.partition is not None
    (expected,), (found,) = evaluate(parse_module(text), inputs), run_stack(text, stack, inputs)
    np.testing.assert_allclose(found, expected, rtol=2e-6)


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("rows", [(512, 512), (4, 65536), (2, 3, 32768)])
def test_what_follows_short_rows_is_made_of_vectors(rows, stack, level):
    """Whether steps are rows of the last dimension, or blocks of it: its remainders would keep LLVM from vectors."""
    options = EmitOptions(Target.level(level), ranges=True)
    made = emitter(stack).emit(plan(pipeline.optimize(parse_module(distances(*rows)))).kernels, options)
    code = "".join(optimize(text, options) for text in (made.llvm_ir, *made.helpers))
    assert "x double>" in code and " fdiv double" not in code
