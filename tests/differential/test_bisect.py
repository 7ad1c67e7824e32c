"""Bisection names the part that holds a planted fault, with the experiments that show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ...differential.bisect import Bisected, bisect, guilty_change, kernels_of
from ...differential.child import Child
from ...differential.execute import execute
from ...differential.finding import Finding
from ...differential.outcome import outcome
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS, case_of_fault
from ...differential.setting import Setting, other_stack, plan_of_setting
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.opcodes import Op
from ...legacy.numerics.elementwise import EMIT
from ..support.child_here import UNCACHED, Here


def finding_of_text(text, inputs):
    return Finding(text, parse_module(text), tuple(inputs))


def bisected(name: str) -> Bisected:
    with planted(FAULTS[name]):
        return bisect(replace(case_of_fault(FAULTS[name]), setting=UNCACHED), Here())


NAMED = [name for name, fault in FAULTS.items() if fault.text]


@pytest.mark.parametrize("name", NAMED)
def test_the_part_that_holds_the_fault_is_named(name):
    found = bisected(name)
    assert any(word in found.culprit for word in FAULTS[name].culprits), (found.culprit, found.sentence)
    assert found.sentence and found.evidence[0].changed == "" and found.evidence[0].shows
    if FAULTS[name].blamed != ("legacy", "mlir"):
        assert found.culprit.startswith(FAULTS[name].blamed[0]) and "--emitters" in found.toggles


ALIASED = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
ENTRY e {
  p = f32[1,2,1] parameter(0)
  q = f32[1,2,1] parameter(1)
  s = f32[1,2,1] reverse(p), dimensions={1}
  t = f32[1,2,1] reverse(q), dimensions={1}
  ROOT r = (f32[1,2,1], f32[1,2,1]) tuple(s, t)
}
"""


def test_a_result_in_the_memory_of_a_parameter_is_reuse_too():
    """The header asks for it, whatever the plan does by itself."""
    case = replace(finding_of_text(ALIASED, [np.array([[[n], [n + 2]]], np.float32) for n in (1, 2)]), setting=UNCACHED)
    with planted(FAULTS["plan-alias-of-a-transpose"]):
        found = bisect(case, Here())
    assert (found.culprit, found.suspects) == ("buffer reuse", ("legacy", "mlir"))


def test_a_stack_that_the_case_leaves_out_is_asked_too():
    fault = FAULTS["legacy-reverse-forgotten"]
    case = replace(case_of_fault(fault), setting=UNCACHED, stacks=("evaluator", "legacy"))
    with planted(fault):
        assert bisect(case, Here()).culprit == "legacy: reverse of f32"


def test_a_mixture_that_holds_the_fault_is_no_second_stack():
    fault = FAULTS["legacy-reverse-forgotten"]
    stacks = ("evaluator", "legacy", "mlir", "mlir,reverse=legacy")
    case = replace(case_of_fault(fault), setting=UNCACHED, stacks=stacks)
    with planted(fault):
        found = bisect(case, Here())
    assert set(found.outcome.blamed) == {"legacy", "mlir,reverse=legacy"}
    assert found.culprit == "legacy: reverse of f32"


def test_a_change_of_a_pass_is_named_with_its_lines():
    found = bisected("pass-algebra-forgets-a-square")
    assert "its change 1 of 1" in found.sentence and "+ q = f32[6] abs(s)" in found.sentence
    assert found.toggles.startswith("testbed opt --passes") and found.toggles.endswith("algebra --evaluate-each")


def test_a_healthy_case_has_no_culprit():
    found = bisect(case_of_fault(FAULTS["legacy-reverse-forgotten"]), Here())
    assert not found.culprit and len(found.evidence) == 1 and not found.evidence[0].shows


def test_no_pass_is_guilty_of_a_healthy_module():
    case = case_of_fault(FAULTS["pass-cse-blind-to-direction"])
    assert guilty_change(case.module, case.inputs, 20.0) is None


@pytest.mark.parametrize("setting", [
    Setting(reuse=False),
    Setting(fusion=False),
    Setting(kernels=1, fusion=False),
    Setting(kernels=0),
    Setting(fusion=False, reuse=False, host_program="interpreted", threads=2),
    Setting(red_zones=True, host_program="compiled"),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", ["thunk-copy-cuts-the-end", "plan-alias-of-a-transpose"])
def test_settings_change_no_result(name, setting):
    case = case_of_fault(FAULTS[name])
    wanted = evaluate(case.module, case.inputs)
    for stack in ("legacy", "mlir"):
        given = execute(case.module, case.inputs, stack, setting)
        assert all(np.allclose(a, b, rtol=1e-4) for a, b in zip(wanted, given, strict=True))


def test_without_reuse_no_two_values_share_memory():
    module = case_of_fault(FAULTS["plan-alias-of-a-transpose"]).module
    shared, own = (plan_of_setting(module, Setting(fusion=False, reuse=reuse)) for reuse in (True, False))
    slices = [own.assignment.slices[key] for key in own.assignment.slices]
    assert all(not a.overlaps(b) for n, a in enumerate(slices) for b in slices[:n] if a != b)
    assert sum(a.size for a in own.assignment.allocations) > sum(a.size for a in shared.assignment.allocations)


def test_kernels_are_named_in_the_order_of_the_plan():
    module = case_of_fault(FAULTS["legacy-subtract-swapped"]).module
    assert [k.ops for k in kernels_of(module, Setting(fusion=False))] == [("sine",), ("subtract",), ("exponential",)]
    fused = kernels_of(module, Setting())
    assert any({"subtract", "exponential"} <= {*k.ops} for k in fused) and all(k.dtypes == ("f32",) for k in fused)


def test_the_first_kernels_are_of_the_stack():
    """With the fault in its second kernel, one kernel of the stack is right and two are wrong."""
    fault = FAULTS["legacy-subtract-swapped"]
    case = case_of_fault(fault)
    with planted(fault):
        kinds = [
            outcome(
                case.module, case.inputs, ("evaluator", "legacy"), Setting(cache=False, fusion=False, kernels=n)
            ).is_finding
            for n in range(4)
        ]
    assert kinds == [False, False, True, True]


@pytest.mark.parametrize("flags, other", [("mlir", "legacy"), ("legacy,f16=mlir", "mlir")])
def test_the_other_stack(flags, other):
    assert other_stack(flags) == other


def test_a_wrong_evaluator_is_named(monkeypatch):
    case = case_of_fault(FAULTS["legacy-subtract-swapped"])
    right = evaluate(case.module, case.inputs)

    class Wrong(Here):
        def outcome(self, module, inputs, stacks, limit=0.0, setting=UNCACHED, *, again=False):
            found = outcome(module, inputs, stacks, setting)
            from ...differential.outcome import OutcomeKind

            return replace(found, kind=OutcomeKind.DIFFER, blamed=("evaluator",), sentence="suspect evaluator")

    found = bisect(Finding(case.text, case.module, case.inputs), Wrong())
    assert found.culprit == "evaluator" and right


WRAPS = """HloModule m
ENTRY e { p = s32[8] parameter(0)
  one = s32[] constant(1)
  ones = s32[8] broadcast(one), dimensions={}
  next = s32[8] add(p, ones)
  ROOT r = pred[8] compare(next, p), direction=GT }
"""


def never_wrap():
    """The old stack tells LLVM that no addition of integers wraps: right without its optimiser, wrong with it."""
    row = EMIT[Op.ADD]
    EMIT[Op.ADD] = replace(row, integer=lambda code, node, x, y: code.b.add(x, y, flags=["nsw"]))


def test_what_the_optimiser_is_told_is_named_with_the_pass():
    case = finding_of_text(WRAPS, [np.full(8, 2**31 - 1, np.int32)])
    with Child(never_wrap) as child:
        found = bisect(replace(case, setting=UNCACHED), child)
    assert found.culprit.startswith("legacy: ") and found.suspects == ("legacy",)
    assert "right without LLVM's optimiser, wrong from its pass early-cse on " in found.sentence


def test_what_is_shared_is_blamed_on_all_that_share_it():
    fault = FAULTS["plan-alias-of-a-transpose"]
    case = replace(case_of_fault(fault), setting=UNCACHED)
    with planted(fault):
        assert bisect(case, Here()).suspects == ("legacy", "mlir")
