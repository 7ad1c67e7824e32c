"""Constant folding, conditionals and loops: values known at compile time are computed then; nothing else changes."""

import time
from random import Random

import numpy as np
import pytest
from hypothesis import given

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....hlo.verify.verifier import verify
from ....passes.fuel import Fuel, limited
from ....passes.pipeline import run_pipeline, select
from ...generators.random_programs import Programs
from ...support.check import check
from ...support.choices import CHOICES
from ...support.passes import SPECIAL, agree, opcodes, run, same

X = np.array([1.5, -2, 0, np.nan], np.float32)


def entry(*lines: str) -> str:
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


# --- constants -------------------------------------------------------------------------------------------------------


def test_constants_fold_through_chains():
    text = entry(
        "a = f32[3] constant({1, -2, inf})", "b = f32[3] negate(a)", "c = f32[3] divide(a, b)",
        "ROOT d = f32[1,3] reshape(c)",
    )  # fmt: skip
    after = same(text, [], "fold-constants", "dce", exact=True)
    assert opcodes(after) == {Op.CONSTANT}


def test_one_number_all_over_folds_to_one_number_spread():
    text = entry(
        "a = f32[] constant(3)", "b = f32[4096] broadcast(a), dimensions={}", "c = f32[4096] multiply(b, b)",
        "ROOT d = f32[4096] sqrt(c)",
    )  # fmt: skip
    after = same(text, [], "fold-constants", "dce")
    assert opcodes(after) == {Op.CONSTANT, Op.BROADCAST} and len(after.entry.instructions) == 2


@pytest.mark.parametrize(
    "lines",
    [
        ["a = f32[2000] constant({" + ", ".join(["1"] * 1999) + ", 2})", "ROOT b = f32[2000] negate(a)"],
        ["a = f32[] constant(1)", "ROOT b = f32[7] broadcast(a), dimensions={}"],
        ["ROOT a = s32[5] iota(), iota_dimension=0"],
        ["a = f32[] constant(0)", "b = f32[] constant(1)", "ROOT r = f32[] rng(a, b), distribution=rng_uniform"],
        ["a = f32[] constant(0)", "b = f32[] negate(a)", "ROOT c = f32[] abs(b), control-predecessors={b}"],
        ["a = f32[3] constant({...})", "ROOT b = f32[3] negate(a)"],
    ],
)
def test_what_is_large_random_pinned_or_unknown_stays(lines):
    before = parse_module(entry(*lines))
    after = run(entry(*lines), "fold-constants")
    assert [i.opcode for i in after.entry.instructions] == [i.opcode for i in before.entry.instructions]


@pytest.mark.parametrize("op", ["add", "divide", "maximum", "power", "atan2", "remainder"])
def test_folded_and_computed_results_are_the_same(op):
    values = ", ".join(str(float(v)) for v in SPECIAL)
    text = entry(
        f"a = f32[12] constant({{{values}}})", "b = f32[12] reverse(a), dimensions={0}", f"ROOT c = f32[12] {op}(a, b)"
    )
    assert opcodes(same(text, [], "fold-constants", "dce", exact=True)) == {Op.CONSTANT}


# --- conditionals ----------------------------------------------------------------------------------------------------

BRANCHES = """HloModule m
one { p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p) }
two { p = f32[4] parameter(0)
  ROOT n = f32[4] abs(p) }
three { q = f32[4] parameter(0)
  ROOT m = f32[4] abs(q) }
"""


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 9])
def test_a_known_branch_is_inlined(number):
    text = BRANCHES + (
        f"ENTRY e {{ x = f32[4] parameter(0)\n s = s32[] constant({number})\n"
        "ROOT c = f32[4] conditional(s, x, x, x), branch_computations={one, two, three} }"
    )
    assert Op.CONDITIONAL not in opcodes(same(text, [X], "flatten", "conditionals", "dce", exact=True))


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_known_predicate(value):
    text = BRANCHES + (
        f"ENTRY e {{ x = f32[4] parameter(0)\n s = pred[] constant({value})\n"
        "ROOT c = f32[4] conditional(s, x, x), true_computation=one, false_computation=two }"
    )
    assert Op.CONDITIONAL not in opcodes(run(text, "flatten", "conditionals", "dce"))
    same(text, [X], "flatten", "conditionals", "dce", exact=True)


@pytest.mark.parametrize(("other", "chooses"), [("three", False), ("one", True)])
def test_equal_branches_need_no_choice(other, chooses):
    text = BRANCHES + (
        "ENTRY e { x = f32[4] parameter(0)\n s = pred[] parameter(1)\n"
        f"ROOT c = f32[4] conditional(s, x, x), true_computation=two, false_computation={other} }}"
    )
    after = same(text, [X, np.array(True)], "flatten", "conditionals", "dce", exact=True)
    assert (Op.SELECT in opcodes(after)) == chooses and Op.CONDITIONAL not in opcodes(after)


def choice(dims: str, op: str = "tanh", *, used: str = "index=1") -> str:
    """y is used, z is not; w and k are passed through; u is not read; n is a constant."""
    state = f"(f32[{dims}], f32[{dims}], f32[{dims}], f32[])"
    result = f"(f32[{dims}], f32[{dims}], f32[{dims}])"

    def branch(name: str, op: str) -> str:
        return f"""{name} {{ s = {state} parameter(0)
  x = f32[{dims}] get-tuple-element(s), index=0
  w = f32[{dims}] get-tuple-element(s), index=2
  n = f32[] get-tuple-element(s), index=3
  b = f32[{dims}] broadcast(n), dimensions={{}}
  y = f32[{dims}] multiply(x, b)
  z = f32[{dims}] {op}(x)
  ROOT t = {result} tuple(w, y, z) }}
"""

    return f"""HloModule m
{branch("one", op)}{branch("two", "cosine")}ENTRY e {{ x = f32[{dims}] parameter(0)
  w = f32[{dims}] parameter(1)
  p = pred[] parameter(2)
  n = f32[] constant(3)
  s = {state} tuple(x, x, w, n)
  c = {result} conditional(p, s, s), true_computation=one, false_computation=two
  a = f32[{dims}] get-tuple-element(c), index=0
  d = f32[{dims}] get-tuple-element(c), {used}
  ROOT r = f32[{dims}] add(a, d) }}
"""


@pytest.mark.parametrize("test", [True, False])
def test_a_large_choice_sheds_what_is_not_used(test):
    x = np.arange(4096, dtype=np.float32)
    after = same(choice("4096"), [x, -x, np.array(test)], "flatten", "conditionals", "simplify", "dce", exact=True)
    (made,) = [i for i in after.entry.instructions if i.opcode is Op.CONDITIONAL]
    assert [len(s.shape.elements) for s in (made, *made.operands[1:])] == [1, 1, 1]  # y; x
    assert {Op.TANH, Op.COSINE}.isdisjoint(opcodes(after))
    after = same(choice("4096", used="index=2"), [x, -x, np.array(test)], "flatten", "conditionals", "dce", exact=True)
    assert {Op.TANH, Op.COSINE} <= opcodes(after) and Op.CONDITIONAL in opcodes(after)


@pytest.mark.parametrize("dims", ["8", "4096", "3,1500"])
@pytest.mark.parametrize("test", [True, False])
def test_choices_on_both_stacks(dims, test):
    shape = [int(n) for n in dims.split(",")]
    x = np.linspace(-2, 2, np.prod(shape), dtype=np.float32).reshape(shape)
    check(choice(dims, used="index=2"), [x, x + 1, np.array(test)])


def test_a_choice_with_effects_or_large_work_stays():
    effect = choice("4").replace(
        "tanh(x)", 'custom-call(x), custom_call_target="act", custom_call_has_side_effect=true'
    )
    for text in (effect, choice("4096")):
        assert Op.CONDITIONAL in opcodes(run(text, "flatten", "conditionals", "dce"))
    assert Op.CONDITIONAL not in opcodes(run(choice("4"), "flatten", "conditionals", "dce"))


# --- loops -----------------------------------------------------------------------------------------------------------


def loop(trips: int, *, start: int = 0, used: str = "index=1", dead: str = "tanh(d)") -> str:
    """i counts; x doubles and adds exp(w); w and k are passed through; d is carried but never used."""
    return f"""HloModule m
cond {{ s = (s32[], f32[4], f32[4], f32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips + start})
  ROOT l = pred[] compare(i, n), direction=LT }}
body {{ s = (s32[], f32[4], f32[4], f32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  w = f32[4] get-tuple-element(s), index=2
  k = f32[] get-tuple-element(s), index=3
  d = f32[4] get-tuple-element(s), index=4
  one = s32[] constant(1)
  j = s32[] add(i, one)
  e = f32[4] exponential(w)
  kb = f32[4] broadcast(k), dimensions={{}}
  y = f32[4] multiply(x, kb)
  z = f32[4] add(y, e)
  f = f32[4] {dead}
  ROOT t = (s32[], f32[4], f32[4], f32[], f32[4]) tuple(j, z, w, k, f) }}
ENTRY e {{ x = f32[4] parameter(0)
  w = f32[4] parameter(1)
  z = s32[] constant({start})
  k = f32[] constant(2)
  t = (s32[], f32[4], f32[4], f32[], f32[4]) tuple(z, x, w, k, x)
  v = (s32[], f32[4], f32[4], f32[], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(v), {used} }}
"""


@pytest.mark.parametrize("trips", [-3, 0, 1, 2, 3])
def test_short_loops_unroll(trips):
    after = same(loop(trips, start=5), [X, X], "flatten", "loops", "simplify", "dce")
    assert Op.WHILE not in opcodes(after)


def test_loops_shed_dead_values_and_invariant_work():
    after = same(loop(50), [X, X], "flatten", "loops", "simplify", "dce", "loops")
    whole = next(i for i in after.entry.instructions if i.opcode is Op.WHILE)
    assert len(whole.shape.elements) == 3  # i, x, exp(w)
    body = {i.opcode for i in whole.attributes["body"].instructions}
    assert Op.EXPONENTIAL not in body and Op.TANH not in body
    assert Op.EXPONENTIAL in {i.opcode for i in after.entry.instructions}


def test_values_handed_on_come_from_outside():
    after = same(loop(50, used="index=2").replace("ROOT r = f32[4]", "ROOT r = f32[4]"), [X, X], "flatten", "loops",
                 "simplify", "dce", exact=True)  # fmt: skip
    assert after.entry.root.opcode is Op.PARAMETER and Op.WHILE not in opcodes(after)


def test_a_loop_with_side_effects_stays():
    text = """HloModule m
cond { s = (s32[], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(1)
  ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = token[] get-tuple-element(s), index=1
  o = token[] outfeed(i, k), outfeed_shape=s32[]
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], token[]) tuple(j, o) }
ENTRY e { z = s32[] constant(0)
  k = token[] after-all()
  t = (s32[], token[]) tuple(z, k)
  v = (s32[], token[]) while(t), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(v), index=0 }
"""
    assert Op.WHILE in opcodes(run(text, "flatten", "loops"))


@given(CHOICES)
def test_random_programs_keep_their_meaning(choices: Random):
    programs = Programs(choices, size=6)
    module = programs.module
    expected = evaluate(module, programs.inputs)
    for names in (("flatten", "loops", "simplify", "dce"), ("loops", "conditionals", "fold-constants", "loops")):
        module = run_pipeline(module, select(("flatten", *names)))
        verify(module)
        agree(programs.module, expected, evaluate(module, programs.inputs))


@pytest.mark.parametrize("limit", range(4))
def test_fuel_stops_each_pass_anywhere(limit):
    programs = Programs(Random(7), size=10)
    with limited(Fuel(limit)):
        passes = select(("flatten", "loops", "conditionals", "fold-constants", "simplify"))
        module = run_pipeline(programs.module, passes)
    verify(module)
    agree(programs.module, evaluate(programs.module, programs.inputs), evaluate(module, programs.inputs))


def test_time_is_linear():
    lines = ["x = f32[4] parameter(0)", "i0 = f32[4] add(x, x)"]
    lines += [f"i{n} = f32[4] add(i{n - 1}, x)" for n in range(1, 20_000)]
    module = parse_module(entry(*lines, "ROOT r = f32[4] negate(i19999)"))
    start = time.process_time()
    run_pipeline(module, select(("flatten", "fold-constants", "conditionals", "loops")))
    assert time.process_time() - start < 5
