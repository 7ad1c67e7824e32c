"""Programs whose results repeat a row, and some that do not."""

from __future__ import annotations


def broadcast(dtype: str, rows: int, row: int) -> str:
    return f"""HloModule m
ENTRY e {{ x = {dtype}[{row}] parameter(0)
  ROOT r = {dtype}[{rows},{row}] broadcast(x), dimensions={{1}} }}
"""


def _module(*lines: str) -> str:
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


FORMS = {
    "an iota along rows": _module("ROOT r = bf16[300,500] iota(), iota_dimension=1"),
    "an iota of eight bits": _module("ROOT r = f8e4m3fn[500,70] iota(), iota_dimension=1"),
    "what is computed from one": _module(
        "i = f32[400,100] iota(), iota_dimension=1",
        "x = f32[] parameter(0)",
        "b = f32[400,100] broadcast(x), dimensions={}",
        "m = f32[400,100] multiply(i, b)",
        "ROOT r = f32[400,100] cosine(m)",
    ),
    "two dimensions": _module("x = f32[3,2] parameter(0)", "ROOT r = f32[20,30,3,2] broadcast(x), dimensions={2,3}"),
    "one of two that is left out": _module(
        "x = s8[5] parameter(0)", "ROOT r = s8[1400,5,3] broadcast(x), dimensions={1}"
    ),
    "another order of memory": _module(
        "x = c64[3] parameter(0)", "ROOT r = c64[3,4001]{0,1} broadcast(x), dimensions={0}"
    ),
    "a constant": _module("x = s16[3] constant({1,-2,3})", "ROOT r = s16[7001,3] broadcast(x), dimensions={1}"),
    "a row that is computed": _module(
        "x = f16[9] parameter(0)",
        "y = f16[9] exponential(x)",
        "z = f16[3000,9] broadcast(y), dimensions={1}",
        "ROOT r = f16[3000,9] negate(z)",
    ),
}

OTHERS = {
    "long rows": _module("x = s8[512] parameter(0)", "ROOT r = s8[512,512] broadcast(x), dimensions={1}"),
    "few rows": _module("x = s8[3] parameter(0)", "ROOT r = s8[300,3] broadcast(x), dimensions={1}"),
    "rows of one number": _module("x = f32[5000] parameter(0)", "ROOT r = f32[5000,3] broadcast(x), dimensions={0}"),
    "an iota of rows": _module("ROOT r = bf16[3000,30] iota(), iota_dimension=0"),
    "an iota of one number": _module("ROOT r = c64[2,2,1,260] iota(), iota_dimension=2").replace(
        "HloModule m", "HloModule m, is_scheduled=true"
    ),
    "an operand that differs": _module(
        "x = f32[3] parameter(0)",
        "y = f32[5000,3] parameter(1)",
        "b = f32[5000,3] broadcast(x), dimensions={1}",
        "ROOT r = f32[5000,3] add(b, y)",
    ),
    "an iota along one element": _module("ROOT r = f32[1,50,100] iota(), iota_dimension=0").replace(
        "\n", ", is_scheduled=true\n", 1
    ),
    "floats that are counted by one operation": _module("ROOT r = f32[300,500] iota(), iota_dimension=1"),
}
