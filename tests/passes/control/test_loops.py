"""Loops: what never runs, never changes or is never used is removed; only expensive values are hoisted."""

import numpy as np
import pytest

from ....hlo.ir import Computation, Module
from ....hlo.opcodes import Op
from ...support.check import check
from ...support.passes import opcodes, run

X = np.linspace(-1, 2, 8, dtype=np.float32)
PASSES = ("flatten", "simplify", "finite-loops", "loops", "simplify", "dce")

ENTRY = """ENTRY e {{ x = f32[8] parameter(0)
  z = s32[] constant({start})
  o = f32[] constant(1)
  t = (s32[], f32[8], f32[]) tuple(z, x, o)
  w = (s32[], f32[8], f32[]) while(t), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1 }}
"""


def text(condition: str, body: str, start: int = 0) -> str:
    """A loop over (a counter i, an array x, a number c). condition: the root; body: ends with a root tuple."""
    state = """p = (s32[], f32[8], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  c = f32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  half = f32[] constant(0.5)
  h = f32[8] broadcast(half), dimensions={}
"""
    return (
        f"HloModule m\ncond {{ {state}  n = s32[] constant(9)\n  ROOT l = pred[] {condition} }}\n"
        f"body {{ {state}{body} }}\n" + ENTRY.format(start=start)
    )


TEN = "compare(i, n), direction=LT"
NEXT = "  j = s32[] add(i, one)\n"
ROOT = "  ROOT t = (s32[], f32[8], f32[]) tuple({})"

GONE = {
    "never entered: the condition is false": ("constant(false)", "  y = f32[8] add(x, h)\n" + ROOT.format("i, y, c")),
    "never entered: the count is past its end": (
        "compare(i, n), direction=GT",
        NEXT + "  y = f32[8] add(x, h)\n" + ROOT.format("j, y, c"),
    ),
    "only counts": (TEN, NEXT + ROOT.format("j, x, c")),
    "only counts, to an end that it never meets": (
        "compare(i, n), direction=GE",
        "  j = s32[] subtract(i, one)\n" + ROOT.format("j, x, c"),
    ),
    "endless, and gives back its state": ("constant(true)", ROOT.format("i, x, c")),
    "endless, and the same from the first round on": (
        "constant(true)",
        "  b = f32[8] broadcast(c), dimensions={}\n  y = f32[8] exponential(b)\n" + ROOT.format("one, y, c"),
    ),
}


@pytest.mark.parametrize("case", GONE)
def test_loops_that_need_not_run_go(case):
    module = text(*GONE[case])
    assert Op.WHILE not in opcodes(run(module, *PASSES))
    check(module, [X])


def body_of(module: Module) -> Computation:
    (loop,) = [i for i in module.entry.instructions if i.opcode is Op.WHILE]
    return loop.attributes["body"]


def test_a_value_set_to_the_constant_that_it_starts_with_is_no_state():
    body = "  k = f32[] constant(1)\n  b = f32[8] broadcast(c), dimensions={}\n  y = f32[8] multiply(x, b)\n"
    module = text(TEN, NEXT + body + ROOT.format("j, y, k"))
    assert len(body_of(run(module, *PASSES)).root.operands) == 2
    check(module, [X])
    other = module.replace("k = f32[] constant(1)", "k = f32[] constant(2)")
    assert len(body_of(run(other, *PASSES)).root.operands) == 3
    check(other, [X])


def kept(expression: str) -> tuple[set[Op], set[Op]]:
    """Opcodes in the body and before the loop. v is invariant; the state x becomes y = x ∘ expression."""
    module = text(TEN, NEXT + "  b = f32[8] broadcast(c), dimensions={}\n" + expression + ROOT.format("j, y, c"))
    # c comes from outside as a parameter, so that it is no constant
    module = module.replace("  o = f32[] constant(1)", "  o = f32[] parameter(1)")
    check(module, [X, np.float32(0.75)])
    made = run(module, *PASSES)
    return {i.opcode for i in body_of(made).instructions}, {i.opcode for i in made.entry.instructions}


def test_work_by_element_that_is_cheap_stays_in_the_kernels_of_the_body():
    inside, before = kept("  v = f32[8] add(b, h)\n  y = f32[8] multiply(x, v)\n")
    assert Op.ADD in inside and Op.ADD not in before


def test_what_costs_more_is_computed_once_and_no_more_than_that_is_kept():
    inside, before = kept(
        "  e = f32[] exponential(c)\n  v = f32[8] broadcast(e), dimensions={}\n  y = f32[8] add(x, v)\n"
    )
    assert Op.EXPONENTIAL in before and Op.EXPONENTIAL not in inside
    assert Op.BROADCAST in inside and Op.BROADCAST not in before


def test_what_a_product_reads_is_computed_once():
    _, before = kept(
        "  v = f32[8] multiply(b, h)\n  d = f32[] dot(x, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
        "  q = f32[8] broadcast(d), dimensions={}\n  k = f32[8] cosine(q)\n  y = f32[8] multiply(k, h)\n"
    )
    assert Op.MULTIPLY in before
