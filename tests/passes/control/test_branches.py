"""Conditionals: instructions that all branches share are computed once, before the conditional."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ....hlo.ir import Module
from ....hlo.opclasses import branches
from ....hlo.opcodes import Op
from ...support.check import check
from ...support.passes import run, same

PASSES = ("flatten", "simplify", "hoist-branches", "conditionals", "dce")
X = np.linspace(-2, 3, 64, dtype=np.float32).reshape(8, 8)
STATE = """p = (f32[8,8], f32[8,8]) parameter(0)
  x = f32[8,8] get-tuple-element(p), index={}
  y = f32[8,8] get-tuple-element(p), index={}
"""
LESS = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT }
"""
DOT = "d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"


def text(yes: str, no: str, swapped: bool = False) -> str:
    """Branches over x and y. swapped: their positions in the tuple of the second branch are exchanged."""
    second = (1, 0) if swapped else (0, 1)
    return (
        f"HloModule m\nyes {{ {STATE.format(0, 1)}{yes} }}\nno {{ {STATE.format(*second)}{no} }}\n"
        "ENTRY e { c = pred[] parameter(0)\n a = f32[8,8] parameter(1)\n b = f32[8,8] parameter(2)\n"
        " t = (f32[8,8], f32[8,8]) tuple(a, b)\n"
        f" u = (f32[8,8], f32[8,8]) tuple({'b, a' if swapped else 'a, b'})\n"
        " ROOT r = (f32[8,8], f32[8,8]) conditional(c, t, u), true_computation=yes, false_computation=no }\n"
    )


def root(*parts: str) -> str:
    return f" ROOT r = (f32[8,8], f32[8,8]) tuple({', '.join(parts)})"


def inside(module: Module) -> set[Op]:
    (choice,) = [i for i in module.entry.instructions if i.opcode is Op.CONDITIONAL]
    return {i.opcode for c in branches(choice) for i in c.instructions}


@pytest.mark.parametrize("swapped", [False, True])
def test_a_product_in_both_branches_is_made_once(swapped):
    yes = DOT + " e = f32[8,8] sort(d), dimensions={1}, to_apply=less\n" + root("e", "x")
    no = " n = f32[8,8] negate(y)\n" + DOT + root("d", "n")
    module = text(yes, no, swapped).replace("HloModule m\n", LESS)
    for choice in (True, False):
        made = same(module, [np.array(choice), X, X.T.copy()], *PASSES)
        assert Op.DOT not in inside(made) and Op.DOT in {i.opcode for i in made.entry.instructions}
        check(module, [np.array(choice), X, X.T.copy()])


def test_an_element_that_all_branches_give_is_no_longer_chosen():
    sort = " s = f32[8,8] cosine(x)\n"
    product = " m = f32[8,8] multiply(x, y)\n"
    other = DOT.replace("dot(x, y)", "dot(y, y)")
    yes, no = DOT + sort + product + root("m", "d"), sort + product + other + root("m", "d")
    module = text(yes, no)
    made = same(module, [np.array(True), X, X], *PASSES)
    assert Op.MULTIPLY not in inside(made)
    check(module, [np.array(False), X, X])


def test_cheap_work_on_the_way_stays_in_the_branches():
    yes = " a = f32[8,8] add(x, y)\n" + root("a", "x") + "\n"
    no = " a = f32[8,8] add(x, y)\n k = f32[8,8] negate(a)\n" + root("k", "y") + "\n"
    made = run(text(yes, no), "flatten", "hoist-branches")
    assert Op.ADD in inside(made)


def test_other_operands_are_other_values():
    yes = DOT + root("d", "x")
    no = "d = f32[8,8] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n" + root("d", "y")
    assert Op.DOT in inside(same(text(yes, no), [np.array(True), X, X.T.copy()], *PASSES))


STEPS = (
    "{0} = f32[8,8] cosine({1})", "{0} = f32[8,8] add({1}, {2})", "{0} = f32[8,8] multiply({1}, {2})",
    "{0} = f32[8,8] dot({1}, {2}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
    "{0} = f32[8,8] transpose({1}), dimensions={{1,0}}",
)  # fmt: skip


@st.composite
def bodies(draw) -> str:
    lines, values = [], ["x", "y"]
    for n in range(draw(st.integers(1, 5))):
        a, b = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        lines.append(" " + draw(st.sampled_from(STEPS)).format(f"v{n}", a, b))
        values.append(f"v{n}")
    return "\n".join(lines) + "\n" + root(draw(st.sampled_from(values)), draw(st.sampled_from(values)))


@given(bodies(), bodies(), st.booleans(), st.booleans())
def test_random_branches(yes, no, swapped, choice):
    same(text(yes, no, swapped), [np.array(choice), X, np.sin(X)], *PASSES)
    same(text(yes, yes, swapped), [np.array(choice), X, np.sin(X)], *PASSES)
