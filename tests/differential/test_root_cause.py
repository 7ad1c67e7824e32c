"""Root causes of planted faults: a rewrite, a form or a rule whose absence mends and whose presence alone breaks."""

from dataclasses import replace

import numpy as np
import pytest

from ...differential.bisect import bisect
from ...differential.finding import Finding
from ...differential.follow_up import _on_one_stack
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS, case_of_fault
from ...differential.planted.together import TOGETHER, guilty_faults
from ...differential.root_cause import Root, apart, classes, grouped, root_cause
from ...differential.setting import Setting
from ...formats.text.parser import parse_module
from ...hlo.opcodes import Op
from ..support.child_here import Here

UNCACHED = Setting(cache=False, optimized=False)


def case(body: str, *inputs) -> Finding:
    text = f"HloModule m\n\nENTRY e {{\n{body}}}\n"
    return Finding(text, parse_module(text), tuple(inputs), setting=UNCACHED)


DIFFERENCE = case(
    """  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  d = f32[4] subtract(n, n)
  ROOT r = f32[4] exponential(d)
""",
    np.array([1, np.nan, np.inf, 2], np.float32),
)

TURNED = case(
    """  p = f32[2,3,4] parameter(0)
  t = f32[3,4,2] transpose(p), dimensions={1,2,0}
  u = f32[4,3,2] transpose(t), dimensions={1,0,2}
  ROOT r = f32[4,3,2] exponential(u)
""",
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
)

COLUMNS = case(
    """  p = f32[40,40] parameter(0)
  q = f32[40,37] parameter(1)
  ROOT r = f32[40,37] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
""",
    np.ones((40, 40), np.float32),
    np.ones((40, 37), np.float32),
)


@pytest.mark.parametrize(
    ("fault", "given", "name", "switch"),
    [
        (
            "pass-algebra-difference-of-itself",
            DIFFERENCE,
            "rewrite algebra/subtract_itself",
            "--without-rewrite algebra/subtract_itself",
        ),
        (
            "pass-simplify-composes-backwards",
            TURNED,
            "rewrite simplify/transpose",
            "--without-rewrite simplify/transpose",
        ),
        ("pass-cse-blind-to-direction", None, "rewrite cse", "--without-rewrite cse"),
        ("legacy-dot-tail-of-columns", COLUMNS, "legacy form dot/tiled", "--without-form legacy:dot/tiled"),
        ("mlir-dot-tail-of-columns", COLUMNS, "mlir form dot/tiled", "--without-form mlir:dot/tiled"),
        ("legacy-reverse-forgotten", None, "legacy rule reverse", "--emitters legacy,reverse=mlir"),
        (
            "mlir-sign-of-unsigned-shift",
            None,
            "mlir rule shift-right-logical of signed",
            "--emitters mlir,shift-right-logical=legacy",
        ),
    ],
)
def test_the_root_cause_of_a_fault(fault, given, name, switch):
    found = given or replace(case_of_fault(FAULTS[fault]), setting=UNCACHED)
    with planted(FAULTS[fault]):
        root = root_cause(found, bisect(found, Here()), Here())
    assert root is not None and (root.name, root.switch, root.alone) == (name, switch, True)
    assert root.proved
    assert root_cause(found, bisect(found, Here()), Here()) is None  # a healthy case has none


def test_what_the_stacks_share_has_the_kinds_of_its_steps():
    fault = FAULTS["thunk-loop-state-in-another-order"]
    found = replace(case_of_fault(fault), setting=UNCACHED)
    with planted(fault):
        root = root_cause(found, bisect(found, Here()), Here())
    assert root is not None and root.name.startswith("thunks with while") and not root.proved


TWO = case(
    """  p = s32[8] parameter(0)
  c = s32[] constant(3)
  b = s32[8] broadcast(c), dimensions={}
  s = s32[8] shift-right-logical(p, b)
  v = s32[8] reverse(p), dimensions={0}
  ROOT t = (s32[8], s32[8]) tuple(s, v)
""",
    np.arange(-4, 4, dtype=np.int32),
)


def test_two_faults_of_two_stacks_are_no_fault_of_what_they_share():
    with planted(FAULTS["legacy-reverse-forgotten"]), planted(FAULTS["mlir-sign-of-unsigned-shift"]):
        assert _on_one_stack(TWO, Here()).stacks == ("evaluator", "legacy")
        assert bisect(TWO, Here()).culprit.startswith("legacy: ")
    with planted(FAULTS["legacy-reverse-forgotten"]), planted(FAULTS["mlir-reverse-off-by-one"]):
        lone = case("  p = s32[8] parameter(0)\n  ROOT v = s32[8] reverse(p), dimensions={0}\n", *TWO.inputs)
        root = root_cause(lone, bisect(lone, Here()), Here())
        assert root is not None and root.name == "legacy rule reverse" and not root.switch
    shared = replace(case_of_fault(FAULTS["plan-alias-of-a-transpose"]), setting=UNCACHED)
    with planted(FAULTS["plan-alias-of-a-transpose"]):
        assert _on_one_stack(shared, Here()) is shared


def test_a_rule_beside_another_fault_is_found_apart():
    """Small with the rule alone, the case is right without it."""
    body = TWO.text.partition("{\n")[2].rpartition("}")[0]
    one = case(body.replace("ROOT t = (s32[8], s32[8]) tuple(s, v)", "ROOT t = s32[8] add(v, p)"), *TWO.inputs)
    setting = replace(UNCACHED, fusion=False)
    root = Root("legacy rule reverse", "", True, ("evaluator", "mlir,reverse=legacy"), setting)
    with planted(FAULTS["legacy-reverse-forgotten"]):
        assert apart(root, one, Here()).switch == "--emitters legacy,reverse=mlir"
        with planted(FAULTS["mlir-reverse-off-by-one"]):
            assert apart(root, one, Here()) == root


def test_classes_of_types():
    assert classes(["f32", "pred"]) == ["floats"] and classes(["pred"]) == ["pred"]
    assert classes(["s8", "u32", "bf16", "c64"]) == ["bf16", "complex", "signed", "unsigned"]


def test_groups_have_the_smallest_module_and_the_proved_root():
    proved = Root("a", "--without-rewrite a", True)
    groups = grouped([("one", 9, Root("a")), ("two", 4, proved), ("three", 2, Root("b")), ("four", 6, proved)])
    assert [(g.root.name, g.members, g.smallest, g.size) for g in groups] == [
        ("a", ["one", "two", "four"], "two", 4),
        ("b", ["three"], "three", 2),
    ]
    assert groups[0].root is proved


def test_at_least_30_faults_can_be_planted_together():
    assert len(TOGETHER) >= 30 and set(TOGETHER) <= FAULTS.keys()
    functions = [spot.place for name in TOGETHER for spot in FAULTS[name].spots]
    assert len(set(functions)) == len(functions)
    assert {name.partition("-")[0] for name in TOGETHER} == {"legacy", "mlir", "pass", "plan", "thunk"}


def test_a_case_says_which_faults_break_it():
    found = replace(TWO, stacks=("evaluator", "legacy"), blamed=("legacy",))
    names = ("legacy-reverse-forgotten", "mlir-sign-of-unsigned-shift", "legacy-divide-by-zero")
    assert guilty_faults(found, names) == ("legacy-reverse-forgotten",)
    assert Op.REVERSE in found.module.opcodes
