"""Loop counters: equal and affine ones are derived from one, and comparisons that their ranges decide are folded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ....hlo.ir import Computation, Module
from ....hlo.opcodes import Op
from ...support.check import check
from ...support.passes import opcodes, run, same

X = np.linspace(-1, 2, 8, dtype=np.float32)
PASSES = ("flatten", "simplify", "counters", "simplify", "algebra", "loops", "simplify", "dce")


def text(
    body: str, root: str, start: str = "s32[] constant(0)", kind: str = "s32", end: int = 9, result: int = 1
) -> str:
    """A loop over (a counter i, an array x, a second integer k, an array v); i counts to `end`."""
    state = f"(s32[], f32[8], {kind}[], f32[8])"
    parts = f"""p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  k = {kind}[] get-tuple-element(p), index=2
  v = f32[8] get-tuple-element(p), index=3
  one = s32[] constant(1)
"""
    shape = ("s32[]", "f32[8]", f"{kind}[]", "f32[8]")[result]
    return f"""HloModule m
cond {{ {parts}  n = s32[] constant({end})
  ROOT l = pred[] compare(i, n), direction=LT }}
body {{ {parts}  j = s32[] add(i, one)
{body}
  ROOT t = {state} tuple(j, {root}) }}
ENTRY e {{ x = f32[8] parameter(0)
  z = s32[] constant(0)
  k = {start}
  t = {state} tuple(z, x, k, x)
  w = {state} while(t), condition=cond, body=body
  a = {shape} get-tuple-element(w), index={result}
  v = f32[8] get-tuple-element(w), index=3
  ROOT r = ({shape}, f32[8]) tuple(a, v) }}
"""


def body_of(module: Module) -> Computation:
    (loop,) = [i for i in module.entry.instructions if i.opcode is Op.WHILE]
    return loop.attributes["body"]


SPREAD = "  f = f32[] convert(k)\n  b = f32[8] broadcast(f), dimensions={}\n"
TWO = SPREAD + "  y = f32[8] add(x, b)\n  u = f32[8] add(v, b)\n"


def test_elements_that_are_always_equal_are_one():
    module = text(TWO + "  m = s32[] add(k, one)", "y, m, u")
    made = same(module, [X], *PASSES, exact=True)
    assert len(body_of(made).root.operands) == 2
    check(module, [X])


def test_elements_that_part_in_the_second_round_are_two():
    module = text(
        "  h = f32[8] sine(v)\n  y = f32[8] add(x, h)\n  u = f32[8] add(v, y)\n  m = s32[] add(k, one)", "y, m, u"
    )
    made = same(module, [X], *PASSES)
    assert len(body_of(made).root.operands) == 3
    check(module, [X])


AFFINE = {
    "another start": ("s32[] constant(40)", "s32", "  c = s32[] constant(1)\n  m = s32[] add(k, c)"),
    "another step": ("s32[] constant(-7)", "s32", "  c = s32[] constant(5)\n  m = s32[] add(c, k)"),
    "downwards": ("s64[] constant(3)", "s64", "  c = s64[] constant(2)\n  m = s64[] subtract(k, c)"),
    "around the end of its type": ("u8[] constant(250)", "u8", "  c = u8[] constant(7)\n  m = u8[] add(k, c)"),
}


@pytest.mark.parametrize("result", [1, 2])
@pytest.mark.parametrize("case", AFFINE)
def test_a_second_counter_is_computed_from_the_first(case, result):
    start, kind, step = AFFINE[case]
    module = text(TWO + step, "y, m, u", start, kind, result=result)
    made = same(module, [X], *PASSES, exact=True)
    assert not any(o.shape.dtype.name.lower() == kind and o.shape.rank == 0 for o in body_of(made).root.operands[1:])
    check(module, [X])


def test_an_index_that_is_never_negative_is_not_looked_at():
    wrap = """  z = s32[] constant(0)
  n = s32[] constant(8)
  low = pred[] compare(i, z), direction=LT
  up = s32[] add(i, n)
  at = s32[] select(low, up, i)
  e = f32[1] dynamic-slice(x, at), dynamic_slice_sizes={1}
  s = f32[] reshape(e)
  b = f32[8] broadcast(s), dimensions={}
  y = f32[8] add(v, b)
"""
    module = text(wrap, "x, k, y", end=8)
    made = same(module, [X], *PASSES, exact=True)
    assert Op.SELECT not in opcodes(made)
    assert Op.COMPARE not in {i.opcode for i in body_of(made).instructions}
    check(module, [X])


def test_an_end_that_is_not_known_decides_nothing():
    wrap = "  c = s32[] constant(3)\n  low = pred[] compare(k, c), direction=LT\n  f = f32[] convert(low)\n"
    module = text(wrap + "  b = f32[8] broadcast(f), dimensions={}\n  y = f32[8] add(x, b)\n  m = s32[] add(k, one)",
                  "y, m, v", start="s32[] parameter(1)")  # fmt: skip
    made = run(module, *PASSES)
    assert Op.COMPARE in {i.opcode for i in body_of(made).instructions}
    check(module, [X, np.int32(-4)])


STEPS = (
    "  {0} = f32[8] add({1}, {2})", "  {0} = f32[8] multiply({1}, {2})", "  {0} = f32[8] sine({1})",
    "  {0} = f32[8] minimum({1}, {2})",
)  # fmt: skip


@st.composite
def loops(draw) -> str:
    lines, values = [SPREAD], ["x", "v", "b"]
    for n in range(draw(st.integers(1, 4))):
        a, b = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        lines.append(draw(st.sampled_from(STEPS)).format(f"g{n}", a, b))
        values.append(f"g{n}")
    start, step, limit = draw(st.integers(-9, 9)), draw(st.integers(-3, 3)), draw(st.integers(-9, 9))
    how = draw(st.sampled_from(("LT", "LE", "GT", "GE", "EQ", "NE")))
    lines.append(f"  c = s32[] constant({step})\n  m = s32[] add(k, c)\n  limit = s32[] constant({limit})")
    lines.append(f"  test = pred[] compare(k, limit), direction={how}\n  q = f32[8] negate(x)")
    lines.append(f"  s = f32[8] select(ts, q, {draw(st.sampled_from(values))})\n")
    lines.insert(-1, "  ts = pred[8] broadcast(test), dimensions={}")
    root = f"{draw(st.sampled_from([*values, 's']))}, m, {draw(st.sampled_from([*values, 's']))}"
    end, result = draw(st.integers(0, 12)), draw(st.sampled_from((0, 1, 2)))
    return text("\n".join(lines), root, f"s32[] constant({start})", end=end, result=result)


@given(loops())
def test_random_loops(module):
    same(module, [X], *PASSES)
