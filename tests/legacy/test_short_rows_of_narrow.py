"""Rows of 9 to 15 narrow elements, without masks: two loops, over the row and not over dimensions of one element."""

import pytest

from ...hlo.dtypes import DType
from ..support.keyed_sorts import agree, keys
from ..support.processors import code_for

SLICES = {  # the operand, the slice
    "one column": ("[31,63]", "[11,1] slice(x), slice={[17:28], [49:50:2]}"),
    "columns of another order": ("[1,65,9]{0,1,2}", "[1,9,9]{0,1,2} slice(x), slice={[0:1], [39:65:3], [0:9]}"),
    "a row": ("[31,63]", "[1,11] slice(x), slice={[3:4], [0:21:2]}"),
    "rows": ("[31,63]", "[4,11,1] reshape(y)"),
}


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", [DType.BF16, DType.S8])
@pytest.mark.parametrize("name", SLICES)
def test_nothing_beside_the_result_is_written(name, dtype, level):
    shape, root = SLICES[name]
    between = f"y = {dtype.value}[4,11] slice(x), slice={{[0:31:8], [0:55:5]}}" if "(y)" in root else ""
    text = f"""HloModule m
ENTRY e {{
  x = {dtype.value}{shape} parameter(0)
  {between}
  ROOT r = {dtype.value}{root}
}}"""
    dims = tuple(int(n) for n in shape.partition("]")[0][1:].split(","))
    with code_for(level):
        agree(text, [keys(dtype, dims, 0)])
