"""The maximum and the minimum of columns, wherever in a column, or among rows combined together, a special value is."""

import numpy as np
import pytest

from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...planning.planner import plan

ROWS = 27


def module_of(t: str, columns: int, op: str, start: str) -> Module:
    return parse_module(f"""HloModule m
f {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {op}(a, b) }}
ENTRY e {{ x = {t}[{ROWS},{columns}] parameter(0)
  z = {t}[] constant({start})
  ROOT r = {t}[{columns}] reduce(x, z), dimensions={{0}}, to_apply=f }}
""")


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("op, start", [("maximum", "-inf"), ("minimum", "inf"), ("maximum", "-0"), ("minimum", "nan")])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.BF16], ids=str)
def test_a_special_value_in_each_row(stack: str, op: str, start: str, dtype: DType):
    """Columns of zeros of one sign with a zero of the other, of numbers with a NaN, and with an infinity."""
    t, columns = dtype.value, 10 * ROWS
    x = np.empty((ROWS, columns), np.float64)
    x[:, : 2 * ROWS], x[:, 2 * ROWS : 4 * ROWS] = 0.0, -0.0
    x[:, 4 * ROWS :] = np.random.default_rng(0).integers(-3, 4, (ROWS, 6 * ROWS))
    for row in range(ROWS):
        for group, special in enumerate((-0.0, 0.0, 0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0)):
            x[row, group * ROWS + row] = special
    module = module_of(t, columns, op, start)
    (found,) = compile_module(module, Flags.parse(stack)).execute([x.astype(dtype.numpy)])
    first = np.full((1, columns), float(start))
    all_values = np.concatenate([first, x])
    signs = np.signbit(all_values)
    with np.errstate(invalid="ignore"):
        wanted = all_values.max(0) if op == "maximum" else all_values.min(0)
    wanted = np.where(wanted == 0, np.where(signs.all(0) if op == "maximum" else signs.any(0), -0.0, 0.0), wanted)
    found = found.astype(np.float64)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    real = ~np.isnan(wanted)
    assert np.array_equal(found[real], wanted[real])
    assert np.array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_rows_are_combined_by_comparisons(stack: str):
    """`llvm.maximum`, six dependent instructions on x86, is nowhere, and one test for NaN is of two rows."""
    made = emitter(stack).emit(plan(module_of("f32", 256, "maximum", "-inf")).emitted, EmitOptions.host())
    assert "llvm.maximum" not in made.llvm_ir and 0 < made.llvm_ir.count("fcmp uno") <= ROWS // 4
