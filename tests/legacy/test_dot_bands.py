"""Products of which a call computes some of the rows: a tile is no higher than the memory made for its rows."""

import pytest

from ...planning.planner import plan
from ..support.check import check, parsed
from ..support.processors import code_for


def text_of(name: str, rows: int, depth: int, columns: int) -> str:
    return f"""HloModule {name}
ENTRY e {{
  x = s8[{rows},{depth}] parameter(0)
  w = s8[{depth},{columns}] parameter(1)
  ROOT y = s8[{rows},{columns}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("rows, depth, columns", [(85, 240, 17), (85, 200, 16), (69, 256, 24)])
def test_heights_that_divide_all_rows_but_not_those_of_a_call(rows, depth, columns, level):
    """Five rows a tile suit 85, and six suit the 21 that a band of 64 leaves: their copy has no room for a sixth."""
    text = text_of(f"m_{level.replace('-', '_')}", rows, depth, columns)
    (kernel,) = plan(parsed(text)).kernels
    assert kernel.partition is not None and rows % kernel.partition.least
    with code_for(level):
        check(text)
