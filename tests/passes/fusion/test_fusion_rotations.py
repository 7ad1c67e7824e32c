"""Loop state whose elements are permuted: one in-place kernel, correct results, and only where it saves copies."""

import pytest

from ....formats.text.parser import parse_module
from ....planning.plan import CopyStep, Plan, WhileStep
from ....planning.planner import plan
from ...support.check import check


def loop(shapes: list[str], sources: list[int], uses: str = "") -> str:
    """A loop of seven iterations; the next state is s[sources]. `uses` may add instructions before that."""
    count = len(shapes)
    state = f"({', '.join([*shapes, 's32[]'])})"
    elements = "\n".join(f"  x{n} = {s} get-tuple-element(s), index={n}" for n, s in enumerate(shapes))
    given = "\n".join(f"  p{n} = {s} parameter({n})" for n, s in enumerate(shapes))
    names = [f"x{n}" for n in sources]
    if uses:
        names[0] = "u"
    return f"""HloModule m

condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index={count}
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}}

body {{
  s = {state} parameter(0)
{elements}
  i = s32[] get-tuple-element(s), index={count}
{uses}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = {state} tuple({", ".join([*names, "j"])})
}}

ENTRY e {{
{given}
  zero = s32[] constant(0)
  init = {state} tuple({", ".join([*(f"p{n}" for n in range(count)), "zero"])})
  ROOT l = {state} while(init), condition=condition, body=body
}}
"""


def copies_in_loops(made: Plan) -> int:
    loops = [s for s in made.walk() if isinstance(s, WhileStep)]
    return sum(isinstance(s, CopyStep) for loop in loops for s in loop.body)


LONG = "f32[3,37]{0,1}"


@pytest.mark.parametrize(
    "shapes, sources",
    [
        (["f32[5]"] * 2, [1, 0]),
        (["s32[]"] * 3, [2, 0, 1]),
        (["s32[]", LONG, "s32[]", "pred[3]", LONG, "s32[]", "pred[3]"], [2, 4, 5, 6, 1, 0, 3]),
        (["bf16[33]", "c64[4]", "bf16[33]", "c64[4]", "s4[7]", "s4[7]"], [2, 3, 0, 1, 5, 4]),
        (["f64[0]", "f64[0]", "u8[65]", "u8[65]"], [1, 0, 3, 2]),
    ],
)
def test_circles_are_turned_without_copies(shapes, sources):
    text = loop(shapes, sources)
    assert copies_in_loops(plan(parse_module(text))) == 0
    check(text)


def test_a_value_that_is_used_before_it_moves():
    """`uses` reads all three values; the new element is computed from old ones."""
    uses = "  v = f32[9] multiply(x1, x2)\n  u = f32[9] add(v, x0)"
    text = loop(["f32[9]"] * 4, [0, 2, 3, 1], uses)
    assert copies_in_loops(plan(parse_module(text))) == 0
    check(text)


@pytest.mark.parametrize("sources", [[1, 2, 2], [1, 0, 0], [0, 0, 1]])
def test_what_is_no_circle_or_is_given_twice_stays_right(sources):
    check(loop(["f32[6]"] * 3, sources))


def test_many_elements_in_one_circle():
    check(loop(["s32[2]"] * 15, [*range(1, 15), 0]))
