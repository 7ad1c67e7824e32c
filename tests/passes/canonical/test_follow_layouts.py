"""The pass `follow-layouts`: an op on a transposed array that a function declares row-major turns nothing."""

import pytest

from ....formats.text.parser import parse_module
from ....hlo.ir import Module
from ....hlo.layouts import is_alias
from ....hlo.opcodes import Op
from ....passes.fusion.orders import mixes_orders
from ....passes.pipeline import optimize, run_pipeline, select
from ...support.check import check

SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
X, TURNED = "f32[150,140]{1,0}", "f32[140,150]{1,0}"
"""An array; and its transpose as a function declares it, which is transposed in memory, too."""

NORM = f"""HloModule norm

{SUM}
variance {{
  x = {TURNED} parameter(0)
  zero = f32[] constant(0)
  mean = f32[140]{{0}} parameter(1)
  m = {TURNED} broadcast(mean), dimensions={{0}}
  centred = {TURNED} subtract(x, m)
  squares = {TURNED} multiply(centred, centred)
  ROOT v = f32[140]{{0}} reduce(squares, zero), dimensions={{1}}, to_apply=sum
}}

ENTRY e {{
  x = {X} parameter(0)
  t = f32[140,150]{{0,1}} transpose(x), dimensions={{1,0}}
  zero = f32[] constant(0)
  total = f32[140]{{0}} reduce(t, zero), dimensions={{1}}, to_apply=sum
  size = f32[] constant(150)
  sizes = f32[140]{{0}} broadcast(size), dimensions={{}}
  mean = f32[140]{{0}} divide(total, sizes)
  v = f32[140]{{0}} call(t, mean), to_apply=variance
  means = {TURNED} broadcast(mean), dimensions={{0}}
  centred = f32[140,150]{{0,1}} subtract(t, means)
  s = {TURNED} broadcast(v), dimensions={{0}}
  scaled = f32[140,150]{{0,1}} divide(centred, s)
  ROOT r = {X} transpose(scaled), dimensions={{1,0}}
}}
"""


def module(*lines: str) -> str:
    """A program of x, and of t, its transpose, which is another view of it; of y as t would be if it were copied."""
    first = f"x = {X} parameter(0)", f"y = {TURNED} parameter(1)"
    turned = "t = f32[140,150]{0,1} transpose(x), dimensions={1,0}"
    return f"HloModule m\n\n{SUM}\nENTRY e {{\n" + "".join(f"  {line}\n" for line in (*first, turned, *lines)) + "}\n"


def followed(text: str) -> Module:
    return run_pipeline(parse_module(text), select(["flatten", "follow-layouts"]))


def layout(text: str, name: str) -> tuple[int, ...]:
    return followed(text).entry.by_name[name].shape.minor_to_major


def test_a_norm_of_columns_reads_in_one_order():
    check(NORM)
    made = optimize(parse_module(NORM))
    inside = [i for c in made.computations for i in c.instructions]
    assert not any(map(mixes_orders, inside))
    assert all(is_alias(i) for i in inside if i.opcode is Op.TRANSPOSE)
    assert sum(i.opcode is Op.SUBTRACT for c in followed(NORM).computations for i in c.instructions) == 2


REDUCED = ("c = f32[] constant(0)", "ROOT r = f32[140] reduce(a, c), dimensions={1}, to_apply=sum")
FOLLOWING = {
    "reduction": (f"a = {TURNED} negate(t)", *REDUCED),
    "chain": (f"b = {TURNED} negate(t)", f"a = {TURNED} multiply(b, t)", *REDUCED),
    "transpose that moved": (f"a = {TURNED} negate(t)", f"ROOT r = {X} transpose(a), dimensions={{1,0}}"),
    "transpose that moves then": (
        f"a = {TURNED} negate(t)",
        "b = f32[150,140]{0,1} transpose(a), dimensions={1,0}",
        "d = f32[150,140]{0,1} negate(b)",
        "c = f32[] constant(0)",
        "ROOT r = f32[150] reduce(d, c), dimensions={1}, to_apply=sum",
    ),
    "next op follows already": (
        f"a = {TURNED} negate(t)",
        "b = f32[140,150]{0,1} subtract(a, t)",
        f"ROOT r = {X} transpose(b), dimensions={{1,0}}",
    ),
    "broadcast": (
        "w = f32[140] iota(), iota_dimension=0",
        f"b = {TURNED} broadcast(w), dimensions={{0}}",
        f"a = {TURNED} multiply(t, b)",
        *REDUCED,
    ),
}

STAYING = {
    "result": (f"ROOT a = {TURNED} negate(t)",),
    "tuple": (f"a = {TURNED} negate(t)", f"ROOT r = ({TURNED}) tuple(a)"),
    "other operand in the other order": (f"a = {TURNED} add(t, y)", *REDUCED),
    "user in the other order": (f"a = {TURNED} negate(t)", f"b = {TURNED} add(a, y)", f"ROOT r = {TURNED} negate(b)"),
    "one of two users": (
        f"a = {TURNED} negate(t)",
        "c = f32[] constant(0)",
        "s = f32[140] reduce(a, c), dimensions={1}, to_apply=sum",
        f"ROOT r = (f32[140], {TURNED}) tuple(s, a)",
    ),
    "behind one that stays": (f"b = {TURNED} negate(t)", f"a = {TURNED} abs(b)", f"ROOT r = {TURNED} add(a, b)"),
    "product": (
        f"a = {TURNED} negate(t)",
        "ROOT r = f32[140,140] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "transpose that would move then": (
        f"a = {TURNED} negate(t)",
        "b = f32[150,140]{0,1} transpose(a), dimensions={1,0}",
        "ROOT r = f32[21000] reshape(b)",
    ),
    "small": (
        "p = f32[100,100] slice(x), slice={[0:100], [0:100]}",
        "q = f32[100,100]{0,1} transpose(p), dimensions={1,0}",
        "a = f32[100,100]{1,0} negate(q)",
        "c = f32[] constant(0)",
        "ROOT r = f32[100] reduce(a, c), dimensions={1}, to_apply=sum",
    ),
    "copy": (f"a = {TURNED} copy(t)", *REDUCED),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_follows(name):
    text = module(*FOLLOWING[name])
    assert layout(text, "a") == (0, 1)
    check(text)


@pytest.mark.parametrize("name", STAYING)
def test_stays(name):
    text = module(*STAYING[name])
    assert layout(text, "a") == (1, 0)
    check(text)


def test_a_transpose_follows_what_it_reads():
    text = module(*FOLLOWING["transpose that moves then"])
    assert layout(text, "b") == (1, 0) and layout(text, "d") == (1, 0)


def test_layouts_of_loops_stay():
    text = (
        f"HloModule m\n\nbody {{\n  p = (s32[], {TURNED}) parameter(0)\n  n = s32[] get-tuple-element(p), index=0\n"
        f"  y = {TURNED} get-tuple-element(p), index=1\n  one = s32[] constant(1)\n  next = s32[] add(n, one)\n"
        "  x = f32[150,140]{0,1} transpose(y), dimensions={1,0}\n"
        f"  a = {X} negate(x)\n  b = {TURNED} transpose(a), dimensions={{1,0}}\n"
        f"  ROOT r = (s32[], {TURNED}) tuple(next, b)\n}}\n\n"
        f"less {{\n  p = (s32[], {TURNED}) parameter(0)\n  n = s32[] get-tuple-element(p), index=0\n"
        "  most = s32[] constant(3)\n  ROOT l = pred[] compare(n, most), direction=LT\n}\n\n"
        f"ENTRY e {{\n  n = s32[] constant(0)\n  y = {TURNED} parameter(0)\n  i = (s32[], {TURNED}) tuple(n, y)\n"
        f"  w = (s32[], {TURNED}) while(i), condition=less, body=body\n"
        f"  ROOT r = {TURNED} get-tuple-element(w), index=1\n}}\n"
    )
    check(text)
    body = next(c for c in followed(text).computations if "b" in c.by_name)
    assert body.by_name["a"].shape.minor_to_major == (0, 1)
    assert body.root.shape.elements[1].is_row_major
