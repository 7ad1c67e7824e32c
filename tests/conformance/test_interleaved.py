"""Concatenations of operands that have few neighbours in memory: one nest interleaves them, on both stacks."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...codegen.threads import set_threads, threads
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed
from ..support.processors import code_for

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
TYPES = ("pred", "s4", "s8", "u16", "bf16", "f16", "s32", "f32", "f64", "u64", "c64", "c128")
WIDTHS = ((1, 1), (1, 1, 1), (1, 1, 1, 1), (2, 2), (1, 3), (2, 0, 1), (3, 4), (4, 4), (5, 4))


def joined(dtype: str, rows: str, widths: tuple[int, ...], name: str = "m", op: str = "") -> str:
    """Parameters side by side along the last dimension; every second one behind an operation."""
    lines, names = [], []
    for n, width in enumerate(widths):
        lines.append(f"p{n} = {dtype}[{rows}{width}] parameter({n})")
        names.append(f"p{n}")
        if op and n % 2:
            lines.append(f"q{n} = {dtype}[{rows}{width}] {op}(p{n})")
            names[-1] = f"q{n}"
    axis = rows.count(",")
    lines.append(f"ROOT r = {dtype}[{rows}{sum(widths)}] concatenate({', '.join(names)}), dimensions={{{axis}}}")
    return module(name, lines)


def module(name: str, lines: list[str]) -> str:
    return f"HloModule {name}\nENTRY e {{\n" + "".join(f"  {line.strip()}\n" for line in lines) + "}\n"


OTHERS = {
    "x and x + 1": "x = f32[40,33] parameter(0); o = f32[] constant(1); b = f32[40,33] broadcast(o), dimensions={}; "
    "y = f32[40,33] add(x, b); p = f32[40,33,1] reshape(x); q = f32[40,33,1] reshape(y); "
    "c = f32[40,33,2] concatenate(p, q), dimensions={2}; ROOT r = f32[40,66] reshape(c)",
    "half turns of pairs": "x = bf16[5,7,22] parameter(0); a = bf16[5,7,11] slice(x), slice={[0:5], [0:7], [0:22:2]}; "
    "b = bf16[5,7,11] slice(x), slice={[0:5], [0:7], [1:22:2]}; n = bf16[5,7,11] negate(b); "
    "p = bf16[5,7,11,1] reshape(n); q = bf16[5,7,11,1] reshape(a); "
    "c = bf16[5,7,11,2] concatenate(p, q), dimensions={3}; ROOT r = bf16[5,7,22] reshape(c)",
    "a rotation of pairs": "x = f32[50,2] parameter(0); a = f32[50,1] slice(x), slice={[0:50], [1:2]}; "
    "b = f32[50,1] slice(x), slice={[0:50], [0:1]}; ROOT r = f32[50,2] concatenate(a, b), dimensions={1}",
    "of concatenations": "x = s32[30,1] parameter(0); y = s32[30,2] parameter(1); "
    "c = s32[30,3] concatenate(x, y), dimensions={1}; d = s32[30,3] concatenate(y, x), dimensions={1}; "
    "n = s32[30,3] negate(c); ROOT r = s32[30,6] concatenate(n, d), dimensions={1}",
    "sums and greatest": "x = f32[30,9] parameter(0); z = f32[] constant(0); l = f32[] constant(-inf); "
    "a = f32[30] reduce(x, z), dimensions={1}, to_apply=plus; b = f32[30] reduce(x, l), dimensions={1}, to_apply=more; "
    "p = f32[30,1] reshape(a); q = f32[30,1] reshape(b); ROOT r = f32[30,2] concatenate(p, q), dimensions={1}",
    "columns first": "x = f32[1,70]{0,1} parameter(0); y = f32[2,70]{0,1} parameter(1); "
    "ROOT r = f32[3,70]{0,1} concatenate(x, y), dimensions={0}",
    "columns first, not interleaved": "x = f32[70,1]{0,1} parameter(0); y = f32[70,2]{0,1} parameter(1); "
    "ROOT r = f32[70,3]{0,1} concatenate(x, y), dimensions={1}",
    "a dimension of one place inside": "x = f64[33,1,1] parameter(0); y = f64[33,2,1] parameter(1); "
    "ROOT r = f64[33,3,1] concatenate(x, y), dimensions={1}",
    "one row": "x = f32[1] parameter(0); y = f32[2] parameter(1); ROOT r = f32[3] concatenate(x, y), dimensions={0}",
    "no rows": "x = f32[0,1] parameter(0); y = f32[0,2] parameter(1); "
    "ROOT r = f32[0,3] concatenate(x, y), dimensions={1}",
    "one operand with elements": "x = f32[9,2] parameter(0); y = f32[9,0] parameter(1); n = f32[9,2] negate(x); "
    "ROOT r = f32[9,2] concatenate(n, y), dimensions={1}",
    "beside another result": "x = f32[40,1] parameter(0); y = f32[40,1] parameter(1); n = f32[40,1] negate(y); "
    "c = f32[40,2] concatenate(x, n), dimensions={1}; w = f32[40,2] parameter(2); a = f32[40,2] add(w, w); "
    "ROOT r = (f32[40,2], f32[40,2]) tuple(c, a)",
    "much code an element": "x = c64[20,2] parameter(0); y = c64[20,3] parameter(1); t = c64[20,2] tan(x); "
    "ROOT r = c64[20,5] concatenate(t, y), dimensions={1}",
}
BODIES = (
    "plus {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
    "more {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n"
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_values(dtype, level):
    with code_for(level):
        for n, widths in enumerate(WIDTHS):
            name = f"{dtype}_{n}_{level.replace('-', '_')}"
            check(joined(dtype, "5,37,", widths, name))


@pytest.mark.parametrize("op", ["negate", "exponential"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "c64"])
def test_values_that_are_computed(dtype, op):
    for widths in WIDTHS:
        check(joined(dtype, "67,", widths, op=op))


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs(name):
    text = module("m", OTHERS[name].split(";"))
    check(text.replace("ENTRY", BODIES + "ENTRY") if "to_apply" in text else text)


def test_threads_take_rows_apart():
    """Steps number the rows, of one dimension or of two."""
    before = threads()
    try:
        for count in (1, 2, 3):
            set_threads(count)
            check(joined("f32", "1000,301,", (1, 1), op="negate"))
            check(joined("bf16", "30011,10,", (1, 2), op="negate"))
            check(joined("s8", "300001,", (1, 1, 2), op="negate"))
    finally:
        set_threads(before)


def loops(stack: str, text: str) -> int:
    """Loops of the one kernel, none of which LLVM has unrolled yet."""
    code = emitter(stack).emit(plan(parsed(text)).kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir
    return code.count("br i1")


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("widths", [(1, 1), (1, 1, 1, 1), (2, 2), (1, 0, 7)])
def test_one_nest_writes_all(stack, widths):
    """A nest for each operand passes over all lines of the result, and writes them with gaps. Where operands are read
    in order, too, a short dimension has no loop of its own, which would fill no vectors.
    """
    assert loops(stack, joined("f32", "200,10,", widths, op="negate")) == 1


TURNED = """x = f32[10,200,1] parameter(0)
t = f32[200,10,1] transpose(x), dimensions={1,0,2}
y = f32[200,10,1] parameter(1)
ROOT r = f32[200,10,2] concatenate(t, y), dimensions={2}"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_operands_in_other_orders_have_loops_over_dimensions(stack):
    text = module("m", TURNED.split("\n"))
    assert loops(stack, text) > 1
    check(text)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize(
    "dtype, widths, op", [("f32", (5, 4), "negate"), ("f64", (2, 3), "negate"), ("f32", (1, 3), "tan")]
)
def test_wide_operands_and_long_code_have_nests_of_their_own(stack, dtype, widths, op):
    assert loops(stack, joined(dtype, "200,100,", widths, op=op)) > 4


PHILOX = """HloModule bits
ENTRY e {{
  state = u64[2] parameter(0)
  ROOT r = (u64[2], u32[{count}]) rng-bit-generator(state), algorithm=rng_philox
}}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("count, side_by_side", [(4096, True), (4092, False)])
def test_long_chains_are_computed_side_by_side(stack, count, side_by_side):
    """Rounds of random bits wait for one another: with one vector at a time, bits of Philox took 1.8 times as long."""
    code = emitter(stack).emit(plan(parsed(PHILOX.format(count=count))).kernels, EmitOptions(Target.host())).llvm_ir
    assert ('"llvm.loop.interleave.count"' in code) is side_by_side


@pytest.mark.parametrize("level", LEVELS)
def test_values_of_long_chains(level):
    with code_for(level):
        for count in (4096, 4102, 5003):
            check(PHILOX.format(count=count))
