"""Concatenations of pieces of one array: one read at a selected place, which LLVM makes vectors of."""

import pytest

from ...codegen.optimize import optimize as optimized
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check

ROTATION = """
  a = u8[32,31] slice(p), slice={[0:32], [1:32]}
  b = u8[32,1] slice(p), slice={[0:32], [0:1]}
  c = u8[32,32] concatenate(a, b), dimensions={1}
  ROOT r = u8[32,32] add(c, p)
"""
EDGES = """
  a = u8[32,2] slice(p), slice={[0:32], [30:32]}
  b = u8[32,3] slice(p), slice={[0:32], [0:3]}
  c = u8[32,37] concatenate(a, p, b), dimensions={1}
  l = u8[32,32] slice(c), slice={[0:32], [0:32]}
  h = u8[32,32] slice(c), slice={[0:32], [4:36]}
  ROOT r = u8[32,32] add(l, h)
"""
ALONG_ROWS = """
  a = u8[5,16] slice(p), slice={[9:14], [0:32:2]}
  b = u8[7,16] slice(p), slice={[20:27], [0:32:2]}
  c = u8[12,16] concatenate(b, a), dimensions={0}
  ROOT r = u8[12,16] negate(c)
"""
EVERY_OTHER = """
  a = u8[32,8] slice(p), slice={[0:32], [0:16:2]}
  b = u8[32,8] slice(p), slice={[0:32], [0:8]}
  c = u8[32,16] concatenate(a, b), dimensions={1}
  ROOT r = u8[32,16] negate(c)
"""
OTHER_ROWS = """
  a = u8[16,8] slice(p), slice={[0:16], [3:11]}
  b = u8[16,8] slice(p), slice={[1:17], [0:8]}
  c = u8[16,16] concatenate(a, b), dimensions={1}
  ROOT r = u8[16,16] negate(c)
"""
TWO_ARRAYS = """
  q = u8[32,32] reverse(p), dimensions={0}
  a = u8[32,8] slice(p), slice={[0:32], [0:8]}
  b = u8[32,8] slice(q), slice={[0:32], [3:11]}
  c = u8[32,16] concatenate(a, b), dimensions={1}
  ROOT r = u8[32,16] negate(c)
"""
OF_AN_EXPRESSION = """
  x = u8[32,32] multiply(p, p)
  a = u8[32,31] slice(x), slice={[0:32], [1:32]}
  b = u8[32,1] slice(x), slice={[0:32], [0:1]}
  c = u8[32,32] concatenate(a, b), dimensions={1}
  e = u8[32,32] concatenate(b, a), dimensions={1}
  s = u8[32,32] add(c, e)
  ROOT r = u8[32,32] concatenate(s, c), dimensions={1}
""".replace("ROOT r = u8[32,32]", "ROOT r = u8[32,64]")
MANY = "\n".join(
    [
        *(f"  a{n} = u8[32,{n + 1}] slice(p), slice={{[0:32], [{3 * n}:{4 * n + 1}]}}" for n in range(6)),
        "  c = u8[32,21] concatenate(a0, a1, a2, a3, a4, a5), dimensions={1}",
        "  ROOT r = u8[32,21] negate(c)",
    ]
)
EMPTY = """
  n = u8[32,0] slice(p), slice={[0:32], [7:7]}
  a = u8[32,31] slice(p), slice={[0:32], [1:32]}
  b = u8[32,1] slice(p), slice={[0:32], [0:1]}
  c = u8[32,32] concatenate(n, a, n, b, n), dimensions={1}
  ROOT r = u8[32,32] add(c, p)
"""


def rotated(name: str, of: str, d: int, by: int) -> list[str]:
    """Lines of the array `of` turned along dimension d, by one place up or down."""
    middle, dims = (1 if by > 0 else 31), [[32, 32], [32, 32]]
    dims[0][d], dims[1][d] = 32 - middle, middle
    bounds = [["[0:32]", "[0:32]"] for _ in dims]
    bounds[0][d], bounds[1][d] = f"[{middle}:32]", f"[0:{middle}]"
    pieces = [
        f"  {name}{n} = u8[{size[0]},{size[1]}] slice({of}), slice={{{', '.join(bound)}}}"
        for n, (size, bound) in enumerate(zip(dims, bounds, strict=True))
    ]
    return [*pieces, f"  {name} = u8[32,32] concatenate({name}0, {name}1), dimensions={{{d}}}"]


def neighbours() -> str:
    """Sums of the eight neighbours of each element of a torus."""
    lines = rotated("up", "p", 0, 1) + rotated("down", "p", 0, -1)
    total, count = "up", 0
    for row in ("up", "p", "down"):
        for by in (1, -1):
            lines += rotated(f"{row}{'left' if by > 0 else 'right'}", row, 1, by)
            lines.append(f"  sum{count} = u8[32,32] add({total}, {row}{'left' if by > 0 else 'right'})")
            total, count = f"sum{count}", count + 1
    return "\n".join([*lines, f"  ROOT r = u8[32,32] add({total}, down)"])


PROGRAMS = {
    "neighbours": neighbours(),
    "rotation": ROTATION, "edges": EDGES, "rows": ALONG_ROWS, "every_other": EVERY_OTHER, "other_rows": OTHER_ROWS,
    "two": TWO_ARRAYS, "expression": OF_AN_EXPRESSION, "many": MANY, "empty": EMPTY,
}  # fmt: skip


def module(name: str, dtype: str = "u8") -> str:
    return f"HloModule {name}\nENTRY e {{\n  p = u8[32,32] parameter(0)\n{PROGRAMS[name]}\n}}\n".replace("u8", dtype)


@pytest.mark.parametrize("dtype", ["u8", "f32", "bf16", "c64", "s4"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype):
    check(module(name, dtype))


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_rows_are_vectors(level):
    """Of several branches an element, LLVM makes scalar code: a game of life took 24 times as long as on legacy."""
    (request,) = plan(optimize(parse_module(module("neighbours")))).kernels
    options = EmitOptions(Target.level(level))
    code = optimized(emitter("mlir").emit([request], options).llvm_ir, options)
    assert "add <32 x i8>" in code


@pytest.mark.parametrize("dtype", ["f32", "s8"])
@pytest.mark.parametrize("rows, columns", [(1, 9), (3, 9), (64, 1000)])
@pytest.mark.parametrize("results", ["joined, size", "size, joined"])
def test_a_result_beside_them_reads_the_array_that_they_take_over(dtype, rows, columns, results):
    """joined is written over a, of which size is made: both are computed at an index before one is stored."""
    (first, second), shape = results.split(", "), f"{dtype}[{rows},{columns}]"
    check(f"""HloModule m, input_output_alias={{ {{{results.split(", ").index("joined")}}}: (0, {{}}, may-alias) }}
f {{
  a = {shape} parameter(0)
  b = {shape} parameter(1)
  size = {shape} abs(a)
  other = {shape} negate(b)
  most = {dtype}[{rows},{columns - 1}] slice(other), slice={{[0:{rows}], [1:{columns}]}}
  one = {dtype}[{rows},1] slice(b), slice={{[0:{rows}], [0:1]}}
  joined = {shape} concatenate(most, one), dimensions={{1}}
  ROOT r = ({shape}, {shape}) tuple({first}, {second})
}}
ENTRY e {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  ROOT r = ({shape}, {shape}) fusion(x, y), kind=kLoop, calls=f
}}
""")
