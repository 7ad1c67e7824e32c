"""Outcomes of cases: agreement, whom to blame where stacks differ, refusals, failures, and results less exact than
XLA's.
"""

from __future__ import annotations

import numpy as np
import pytest

from ...backends.xla import installed
from ...codegen.llvm import CodegenError
from ...differential import outcome as outcomes
from ...differential.outcome import Outcome, OutcomeKind, Run, RunKind, concluded, outcome
from ...differential.permitted import Permitted
from ...differential.precision import Exact, less_accurate
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError, UnsupportedError, VerificationError

SINE = parse_module("HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] sine(p)\n}\n")
SUM = parse_module(
    "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
    "ENTRY e {\n  p = f32[4] parameter(0)\n  z = f32[] constant(0)\n"
    "  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add\n}\n"
)
X = [np.array([0.5, 1.0, 2.0, -3.0], np.float32)]
GOOD = evaluate(SINE, X)[0]


def judged(module=SINE, inputs=X, **results) -> Outcome:
    """The outcome of runs given as results, or as a kind of run and its reason."""
    runs = {
        name: Run(RunKind.RAN, (np.asarray(r),)) if not isinstance(r, tuple) else Run(r[0], reason=r[1])
        for name, r in results.items()
    }
    return concluded(module, inputs, runs)


def off(index: int, by: float) -> np.ndarray:
    changed = GOOD.copy()
    changed[index] += np.float32(by)
    return changed


def test_all_stacks_agree():
    found = outcome(SINE, X)
    assert found.kind is OutcomeKind.AGREE and not found.is_finding and found.blamed == ()
    assert list(found.runs) == ["evaluator", "legacy", "mlir"]
    assert all(run.kind is RunKind.RAN and run.seconds > 0 for run in found.runs.values())


@pytest.mark.parametrize("results, blamed", [
    ({"evaluator": GOOD, "legacy": GOOD, "mlir": off(1, 0.5)}, ("mlir",)),
    ({"evaluator": GOOD, "legacy": off(0, 0.1), "mlir": GOOD}, ("legacy",)),
    ({"evaluator": GOOD, "legacy": off(0, 0.1), "mlir": off(0, 0.1)}, ("legacy", "mlir")),
    ({"evaluator": off(0, 0.1), "legacy": GOOD, "mlir": GOOD}, ("evaluator",)),  # double precision says so
    ({"evaluator": off(0, 0.1), "legacy": GOOD, "mlir": GOOD, "xla": GOOD}, ("evaluator",)),
    ({"evaluator": GOOD, "legacy": off(0, 0.1), "mlir": off(1, 0.1), "xla": GOOD}, ("legacy", "mlir")),
    ({"evaluator": GOOD, "legacy": off(0, 0.1), "mlir": off(1, 0.1)}, ("legacy", "mlir")),
    ({"legacy": GOOD, "mlir": off(3, 0.1)}, ("mlir",)),
    ({"legacy": off(3, 0.1), "mlir": GOOD}, ("legacy",)),
])  # fmt: skip
def test_whom_a_difference_is_blamed_on(results, blamed, monkeypatch):
    # A wrong evaluator would forbid what is right: it is asked for what is permitted, too.
    monkeypatch.setattr(Permitted, "permits", lambda *_: False)
    found = judged(**results)
    assert found.kind is OutcomeKind.DIFFER and found.is_finding
    assert found.blamed == blamed
    assert all(name in found.sentence for name in blamed) and "suspect" in found.sentence


def test_integers_have_no_double_precision_and_the_evaluator_is_right():
    module = parse_module("HloModule m\nENTRY e {\n  p = s32[2] parameter(0)\n  ROOT r = s32[2] negate(p)\n}\n")
    right, wrong = np.array([-1, -2], np.int32), np.array([-1, 2], np.int32)
    found = judged(module, [-right], evaluator=right, legacy=wrong, mlir=wrong)
    assert found.blamed == ("legacy", "mlir")
    assert "suspect what legacy and mlir share" in found.sentence
    assert "so the evaluator decides)" in found.sentence


def test_what_the_float_rules_permit_is_no_difference():
    x = [np.array([3e38, 3e38, -3e38, 1], np.float32)]
    found = judged(SUM, x, evaluator=evaluate(SUM, x)[0], legacy=np.float32(3e38), mlir=np.float32(np.inf))
    assert found.kind is OutcomeKind.AGREE
    wrong = judged(SUM, x, evaluator=evaluate(SUM, x)[0], legacy=np.float32(3e38), mlir=np.float32(np.nan))
    assert wrong.kind is OutcomeKind.DIFFER


REFUSES, FAILS = (RunKind.REFUSED, "no emitter for sine(f32)"), (RunKind.FAILED, "KeyError: 'x' in stack.py")


@pytest.mark.parametrize("results, kind, blamed", [
    ({"evaluator": GOOD, "legacy": REFUSES, "mlir": GOOD}, OutcomeKind.ONE_REFUSES, ("legacy",)),
    ({"evaluator": GOOD, "legacy": REFUSES, "mlir": REFUSES}, OutcomeKind.ONE_REFUSES, ("legacy", "mlir")),
    ({"evaluator": REFUSES, "legacy": REFUSES, "mlir": REFUSES, "xla": GOOD}, OutcomeKind.ALL_REFUSE, ()),
    ({"evaluator": GOOD, "legacy": GOOD, "mlir": GOOD, "xla": REFUSES}, OutcomeKind.AGREE, ()),
    ({"evaluator": GOOD, "legacy": FAILS, "mlir": REFUSES}, OutcomeKind.CRASH, ("legacy",)),
    ({"evaluator": GOOD, "legacy": REFUSES, "mlir": off(0, 1)}, OutcomeKind.DIFFER, ("mlir",)),
    ({"evaluator": GOOD, "legacy": (RunKind.HUNG, "no answer"), "mlir": off(0, 1)}, OutcomeKind.HANG, ("legacy",)),
])  # fmt: skip
def test_stacks_that_do_not_run(results, kind, blamed):
    found = judged(**results)
    assert (found.kind, found.blamed) == (kind, blamed)
    assert found.is_finding == (kind not in (OutcomeKind.AGREE, OutcomeKind.ALL_REFUSE))


@pytest.mark.parametrize("error, kind", [
    (UnsupportedError("legacy", "sine(f32)"), RunKind.REFUSED),
    (InputError("elided"), RunKind.REFUSED),
    (CodegenError("LLVM says no"), RunKind.FAILED),
    (KeyError("x"), RunKind.FAILED),
    (MemoryError(), RunKind.REFUSED),
])  # fmt: skip
def test_errors_of_a_stack_are_runs(monkeypatch, error, kind):
    def execute(*_):
        raise error

    monkeypatch.setattr(outcomes, "execute", execute)
    found = outcomes.run_stack(SINE, X, "legacy")
    assert found.kind is kind and found.reason and found.results == ()


def test_the_signature_says_why_without_what_a_smaller_module_changes():
    first = judged(evaluator=GOOD, mlir=(RunKind.FAILED, "KeyError: 'add.12' at op %x.7 in graph.py"))
    other = judged(evaluator=GOOD, mlir=(RunKind.FAILED, "KeyError: 'b' at op %y.1 in graph.py"))
    third = judged(evaluator=GOOD, mlir=(RunKind.FAILED, "IndexError: 'b' in graph.py"))
    assert first.signature == other.signature != third.signature


def test_a_case_that_is_none_is_an_error():
    broken = parse_module("HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[5] sine(p)\n}\n")
    with pytest.raises(VerificationError):
        outcome(broken, X)
    with pytest.raises(InputError, match="unknown"):
        outcome(SINE, X, ["evaluator", "mlri"])


def test_a_finding_that_does_not_come_again_is_flaky(monkeypatch):
    answers = iter([GOOD, off(0, 1), GOOD, GOOD])
    monkeypatch.setattr(outcomes, "execute", lambda *_: [next(answers)])
    found = outcome(SINE, X, ["evaluator", "mlir"], again=True)
    assert found.kind is OutcomeKind.DIFFER and found.flaky
    steady = iter([GOOD, off(0, 1)] * 2)
    monkeypatch.setattr(outcomes, "execute", lambda *_: [next(steady)])
    assert not outcome(SINE, X, ["evaluator", "mlir"], again=True).flaky


def test_much_less_exact_than_xla_is_a_finding_though_all_agree():
    rng = np.random.default_rng(0)
    text = "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
    module = parse_module(
        f"{text}ENTRY e {{\n  p = f32[4096] parameter(0)\n  z = f32[] constant(0)\n"
        "  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add\n}\n"
    )
    x = rng.uniform(0, 1, 4096).astype(np.float32)
    right = np.asarray(x.astype(np.float64).sum(), np.float32)
    poor = right * np.float32(1 + 4e-6)
    found = judged(module, [x], evaluator=right, legacy=poor, mlir=poor, xla=right)
    assert found.kind is OutcomeKind.INACCURATE and found.blamed == ("legacy", "mlir")
    assert "times XLA's" in found.sentence
    assert judged(module, [x], evaluator=right, legacy=right, mlir=right, xla=right).kind is OutcomeKind.AGREE


def test_what_cancels_is_not_less_exact():
    module = parse_module(
        "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  c = f32[] constant(1e6)\n"
        "  b = f32[4] broadcast(c), dimensions={}\n  s = f32[4] add(p, b)\n  ROOT r = f32[4] subtract(s, b)\n}\n"
    )
    x = [np.array([0.1, 0.2, 0.3, 0.4], np.float32)]
    exact = Exact(module, x)
    assert less_accurate(exact, {"legacy": evaluate(module, x), "xla": [x[0]]}, "xla") == {}


@pytest.mark.skipif(not installed(), reason="jaxlib is not installed")
def test_xla_is_one_of_the_stacks():
    found = outcome(SINE, X, ["evaluator", "legacy", "xla"])
    assert found.kind is OutcomeKind.AGREE and found.runs["xla"].kind is RunKind.RAN


def test_what_takes_too_long_is_undecided_and_no_finding():
    x = [np.array([3e38, 3e38, -3e38, 1], np.float32)]
    runs = {
        "evaluator": Run(RunKind.RAN, (np.float32(np.inf),)),
        "legacy": Run(RunKind.RAN, (np.float32(3e38),)),
    }
    assert concluded(SUM, x, runs).kind is OutcomeKind.AGREE
    found = concluded(SUM, x, runs, budget=0.0)
    assert found.kind is OutcomeKind.UNDECIDED and not found.is_finding and found.blamed == ()
    assert "undecided: 1 of 1 results differ" in found.sentence and "--patience" in found.sentence


def test_integers_are_decided_without_time():
    module = parse_module("HloModule m\nENTRY e {\n  p = s32[2] parameter(0)\n  ROOT r = s32[2] negate(p)\n}\n")
    x = np.array([1, 2], np.int32)
    runs = {"evaluator": Run(RunKind.RAN, (-x,)), "legacy": Run(RunKind.RAN, (x,))}
    assert concluded(module, [x], runs, budget=0.0).kind is OutcomeKind.DIFFER
