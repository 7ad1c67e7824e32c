"""Cases over finite fields in fuzz, reduce, bisect and conform: what became of them, and what is guilty."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ...differential.campaign.task import Orders, draw_task, task_of
from ...differential.case_runner import run_case
from ...differential.child import Child
from ...differential.corpus import Case
from ...differential.exact_bisect import bisect
from ...differential.exact_outcome import outcome
from ...differential.finding import Finding, case_of, read_finding, rerun_of, write_finding
from ...differential.generate.program import Limits
from ...differential.generate.source import Recorded, Seeded, choices_of
from ...differential.outcome import OutcomeKind
from ...differential.patience import Patience
from ...differential.planted.fault import planted
from ...differential.planted.table import FAULTS, case_of_fault, plant
from ...differential.reduce.driver import Reducer
from ...differential.setting import Setting
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..support.loops import LOOP

EXACT = Setting(cache=False, exact=True)


class Here(Child):
    """A child in this process, with the faults that are planted here."""

    def outcome(self, module, inputs, stacks, limit=0.0, setting=EXACT, *, again=False):
        return outcome(module, inputs, stacks, setting, again=again)

    def call(self, function, *arguments, limit_s=0.0):
        return function(*arguments)


def case_of_name(name: str) -> Finding:
    return replace(case_of_fault(FAULTS[name]), setting=EXACT)


GUILTY = {
    "legacy-subtract-swapped": (("legacy",), "legacy: subtract", "legacy in form"),
    "mlir-reverse-off-by-one": (("mlir",), "mlir: reverse", "mlir in form"),
    "plan-alias-of-a-transpose": (("legacy", "mlir"), "buffer reuse", "memory of its own"),
    "pass-algebra-forgets-a-square": (("optimized",), "pass algebra", "multiply(s, s)"),
}


@pytest.mark.parametrize(("name", "expected"), GUILTY.items(), ids=GUILTY)
def test_what_is_guilty_is_named(name, expected):
    blamed, culprit, words = expected
    case = case_of_name(name)
    right = bisect(case, Here())
    assert right.outcome.kind is OutcomeKind.AGREE and not right.culprit
    with planted(FAULTS[name]):
        found = bisect(case, Here())
    assert found.outcome.kind is OutcomeKind.DIFFER and found.outcome.blamed == blamed
    assert culprit in found.culprit and words in found.sentence, (found.culprit, found.sentence)
    assert found.suspects == blamed
    assert {stack for stack, _ in right.outcome.runs["legacy"].forms} == {"legacy", "mlir"}
    assert found.evidence[0].shows and found.evidence[0].changed == ""


def test_a_case_is_reduced_while_its_elements_differ():
    case = case_of_name("legacy-subtract-swapped")
    done = Reducer(case, seconds=600, begin=partial(plant, "legacy-subtract-swapped")).run()
    assert done.outcome.kind is OutcomeKind.DIFFER and done.outcome.blamed == ("legacy",)
    assert done.progress.size == 3 and "subtract(" in done.finding.text and done.finding.setting.exact


def test_a_finding_says_how_it_is_repeated(tmp_path):
    case = case_of_name("legacy-subtract-swapped")
    with planted(FAULTS["legacy-subtract-swapped"]):
        found = outcome(case.module, case.inputs, case.stacks, EXACT)
    folder = write_finding(tmp_path / "f", case.concluded(found), stages={})
    assert read_finding(folder).setting.exact
    assert rerun_of(read_finding(folder), folder) == f"./testbed diff {folder} --exact"


def test_a_case_without_end_and_one_of_nothing_are_no_findings():
    module = parse_module(LOOP.replace("{trips}", "4000"))
    found = outcome(module, (), setting=EXACT)
    assert found.kind is OutcomeKind.AGREE, found  # its kernels ran
    slow = outcome(module, (), setting=EXACT, patience=Patience(0.01))
    assert slow.kind is OutcomeKind.ALL_REFUSE and "no answer within" in slow.sentence


def test_an_error_of_the_testbed_is_a_finding(monkeypatch):
    from ...differential import exact_outcome

    def broken(*_):
        raise ValueError("no such thing")

    monkeypatch.setattr(exact_outcome, "check_all", broken)
    case = case_of_name("legacy-subtract-swapped")
    found = outcome(case.module, case.inputs, case.stacks, EXACT)
    assert found.kind is OutcomeKind.CRASH and "ValueError: no such thing" in found.sentence
    assert found.signature[0] == "crash"


SMALL = Orders(Limits(4, ops=frozenset({Op.ADD, Op.TANH, Op.REVERSE}), dtypes=(DType.F32,)))


def test_a_share_of_tasks_is_exact():
    tasks = [draw_task(Seeded(seed), replace(SMALL, exact=30)) for seed in range(60)]
    assert 8 < sum(t.setting.exact for t in tasks) < 30
    assert not any(draw_task(Seeded(seed), replace(SMALL, exact=0)).setting.exact for seed in range(30))
    assert not any(
        draw_task(Seeded(seed), replace(SMALL, exact=100, stacks=("evaluator", "legacy"))).setting.exact
        for seed in range(9)
    )
    exact = next(t for t in tasks if t.setting.exact)
    assert task_of(exact.blob, replace(SMALL, exact=30)).setting.exact
    assert outcome(exact.case.module, exact.case.inputs, exact.stacks, exact.setting).kind is OutcomeKind.AGREE


def test_a_blob_of_before_draws_what_it_drew():
    task = draw_task(Seeded(3), SMALL)
    _, choices = choices_of(task.blob)
    before = draw_task(Recorded(choices[:-1]), SMALL)
    assert not before.setting.exact and before.case.module.entry.instructions[-1].shape == (
        task.case.module.entry.instructions[-1].shape
    )


def test_conform_has_a_row_of_exact_equality(tmp_path: Path):
    fault = FAULTS["mlir-reverse-off-by-one"]
    (tmp_path / "m.hlo").write_text(fault.text)
    case = Case("m", str(tmp_path / "m.hlo"), None, None, None, None)
    assert run_case(case, "exact").status == "passed"
    with planted(fault):
        row = run_case(case, "exact")
    assert row.status == "failed" and "mlir differs in" in row.reason


def test_a_module_as_a_case(tmp_path: Path):
    from ...migration.programs import load_program

    (tmp_path / "m.hlo").write_text(FAULTS["mlir-reverse-off-by-one"].text)
    case = case_of(load_program(str(tmp_path / "m.hlo")))
    assert not case.setting.exact
