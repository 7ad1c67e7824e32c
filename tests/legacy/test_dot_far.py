"""A row times a matrix that comes from memory, on the legacy stack: a pass reads more of its rows."""

import re

import pytest

from ...codegen.options import EmitOptions, Target
from ...codegen.processors import Processor
from ...formats.text.parser import parse_module
from ...legacy import emit
from ...legacy.products.dot import FAR_ROWS
from ...legacy.reductions.columns import ROWS
from ...planning.planner import plan
from ..support.check import check

DEPTH = 64

FAR = 3 * Processor().last_cache_bytes // 4


def text(columns: int, depth: int = DEPTH) -> str:
    return f"""HloModule m
ENTRY e {{
  x = f32[1,{depth}] parameter(0)
  y = f32[{depth},{columns}] parameter(1)
  ROOT r = f32[1,{columns}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


@pytest.mark.parametrize(("size", "rows"), [(FAR // 2, ROWS), (FAR, FAR_ROWS)])
def test_a_pass_reads_more_rows_of_what_is_far(size, rows):
    """With four, a product of f32 1 x 4096 by 4096 x 4096 took 1.3 times as long."""
    (kernel,) = plan(parse_module(text(size // 4 // DEPTH))).kernels
    code = emit([kernel], EmitOptions(Target.level("x86-64-v3"))).llvm_ir
    assert len(re.findall(r"call float @\"?llvm\.fma|fmul contract|fmul ", code)) == rows


def test_values():
    """The rows end within a pass, the columns within a vector."""
    check(text(FAR // 4 // 61 + 5, 67))
