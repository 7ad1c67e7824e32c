"""Campaigns: they find planted bugs, survive crashes and hangs, keep one finding for each cause, and go on."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from ...differential.campaign import campaign, hunter
from ...differential.campaign.campaign import Campaign
from ...differential.campaign.cause import Cause, cause_in, ended
from ...differential.campaign.search import Catch, Round
from ...differential.campaign.state import STATE_FILE, State, read_state
from ...differential.campaign.task import Orders, draw_task, mixture, pairs_of, task_of, units_of
from ...differential.finding import read_finding
from ...differential.generate.corpus import is_steady, read_corpus
from ...differential.generate.program import Limits
from ...differential.generate.source import Seeded
from ...differential.outcome import Outcome, OutcomeKind, Run, RunKind
from ...formats.program import parameter_leaves
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...migration.flags import STACK_NAMES, Flags
from ..support.planted_tanh import plant

ORDERS = Orders(Limits(5))
MODULE = parse_module("""HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  b = f32[2,4] broadcast(x), dimensions={1}
  t = f32[2,4] tanh(b)
  ROOT n = s32[2,4] convert(t)
}
""")


def differing(*blamed: str) -> Outcome:
    runs = {name: Run(RunKind.RAN) for name in ("evaluator", "legacy", "mlir", *blamed)}
    return Outcome(OutcomeKind.DIFFER, blamed, "", runs)


# tasks


def test_a_blob_draws_the_same_task():
    for seed in range(40):
        task = draw_task(Seeded(seed), ORDERS)
        same = task_of(task.blob, ORDERS)
        assert (same.stacks, same.setting) == (task.stacks, task.setting)
        assert print_module(same.case.module) == print_module(task.case.module)


def test_some_tasks_mix_stacks_and_vary_the_setting():
    tasks = [draw_task(Seeded(seed), ORDERS) for seed in range(150)]
    mixed = [task.stacks[3] for task in tasks if len(task.stacks) == 4]
    assert len(mixed) > 10
    assert 0.15 < sum(task.setting.memory for task in tasks) / len(tasks) < 0.35
    assert {Flags.parse(flags).default for flags in mixed} == {*STACK_NAMES}
    assert not any(task.setting.cache for task in tasks)
    assert 0.1 < sum(task.setting.optimized for task in tasks) / len(tasks) < 0.5
    assert all(draw_task(Seeded(seed), replace(ORDERS, optimized=100)).setting.optimized for seed in range(40))
    plain = Orders(ORDERS.limits, mixed=False)
    assert all(draw_task(Seeded(seed), plain).stacks == ORDERS.stacks for seed in range(40))


def test_some_tasks_are_modules_of_a_corpus_after_edits():
    orders = Orders(Limits(5), corpus=str(Path(__file__).parents[1] / "corpus" / "modules"))
    tasks = [draw_task(Seeded(seed), orders) for seed in range(60)]
    names = {task.case.module.name for task in tasks}
    assert "generated" in names and len(names) > 4
    for task in tasks:
        verify(task.case.module)
        assert [x.shape for x in task.case.inputs] == [s.dims for s in parameter_leaves(task.case.module)]
        same = task_of(task.blob, orders)
        assert print_module(same.case.module) == print_module(task.case.module)
    texts = {print_module(module) for module in read_corpus(orders.corpus).modules}
    assert not any(print_module(task.case.module) in texts for task in tasks)


def test_what_jumps_on_inexact_values_is_no_module_to_edit():
    text = "HloModule m\nENTRY e {{ x = f32[4] parameter(0)\n y = f32[4] {}(x)\n ROOT r = f32[4] {}(y) }}\n"
    for first, then, steady in (("sine", "floor", False), ("floor", "sine", True), ("sine", "tanh", True)):
        assert is_steady(parse_module(text.format(first, then))) == steady


def test_mixtures_are_pairs_of_families_or_rules_for_units():
    found = {mixture(Seeded(seed), MODULE) for seed in range(60)}
    assert any(f.count("=") == 2 and "shape=" in f for f in found)
    assert any("tanh=" in f or "f32=" in f for f in found)
    assert {"unary", "tanh", "f32", "conversion"} <= {*units_of(MODULE)}


def test_a_blob_of_another_kind_is_refused():
    blob = draw_task(Seeded(1), ORDERS).blob
    with pytest.raises(InputError, match="kind 'p'"):
        task_of("p" + blob[1:], ORDERS)


# causes


def test_a_cause_explains_what_ends_alike_and_holds_its_units():
    cause = cause_in(MODULE, differing("mlir"))
    assert cause.units == ("tanh f32",) and "tanh" in cause.name and "tanh f32" in cause.title
    assert cause.explains(differing("mlir"), ["add s32", "tanh f32"])
    assert not cause.explains(differing("legacy"), ["tanh f32"])
    assert not cause.explains(differing("mlir"), ["tanh f64"])
    assert Cause.from_json(json.loads(json.dumps(cause.to_json()))) == cause


def test_a_mixture_is_blamed_only_alone():
    assert ended(differing("mlir", "legacy,tanh=mlir"))[1] == ("mlir",)
    assert ended(differing("legacy,tanh=mlir"))[1] == ("mixed",)


def test_an_error_has_its_reason_as_cause():
    runs = {"mlir": Run(RunKind.FAILED, reason="KeyError: no 'x.12' in 34 places")}
    found = Outcome(OutcomeKind.CRASH, ("mlir",), "", runs)
    cause = cause_in(MODULE, found)
    runs = {"mlir": Run(RunKind.FAILED, reason="KeyError: no 'y.7' in 5 places")}
    assert cause.explains(Outcome(OutcomeKind.CRASH, ("mlir",), "", runs), ["add f32"])


# rounds


SINES = Orders(Limits(4, ops=frozenset({Op.SINE, Op.ADD, Op.REDUCE}), dtypes=(DType.F32, DType.S32)))


def wrong_sine(task):
    """Blames legacy for each program with a sine of f32."""
    found = ("sine", "f32") in pairs_of(task.case.module)
    return differing("legacy") if found else Outcome(OutcomeKind.AGREE, (), "", {})


def test_a_round_finds_and_shrinks():
    seen = []
    caught = Round(SINES, wrong_sine, [], lambda: False, seen.append).run(1000, 1)
    assert caught is not None and seen[-1] is caught and seen[0].size >= caught.size
    known = cause_in(caught.task.case.module, caught.outcome)
    assert known.units == ("sine f32",)
    again = Round(SINES, wrong_sine, [known], lambda: False)
    assert again.run(60, 1) is None and known in again.explained
    drawn = (draw_task(Seeded(n), SINES) for n in range(2000))
    other = next(task for task in drawn if wrong_sine(task).is_finding and len(task.blob) > 80)
    smaller = Round(SINES, wrong_sine, [], lambda: False).shrink(other.blob)
    assert smaller is not None and len(smaller.task.blob) < len(other.blob)


def test_a_round_ends_when_told():
    calls = []

    def judge(task):
        calls.append(task)
        return Outcome(OutcomeKind.AGREE, (), "", {})

    Round(SINES, judge, [], lambda: len(calls) >= 20).run(1000, 3)
    assert len(calls) == 20


# states


def test_a_state_comes_back_from_its_file(tmp_path):
    state = State(5, 10, 1, 2.5, {0: 3}, unrepeated=["t1.abc"], options={"profile": "ci"})
    state.coverage["add", "f32", "mlir"] = 4
    cause = cause_in(MODULE, differing("mlir"))
    assert state.meet(cause, "t1.x", "it differs", False) and not state.meet(cause, "t1.y", "it differs", False)
    state.met_again({cause.name: 3})
    state.save(tmp_path)
    assert read_state(tmp_path) == state and state.causes[0].count == 5 and state.findings == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("{", "not the state"),
        ('{"schema": 99}', "schema 99"),
        ('{"schema": 1}', "not the state"),
    ],
)
def test_files_that_are_no_state(tmp_path, text, says):
    if text is not None:
        (tmp_path / STATE_FILE).write_text(text)
    with pytest.raises(InputError, match=says) as raised:
        read_state(tmp_path)
    assert raised.value.remedy


# campaigns


SHORT = 4.0
"""Seconds for making a finding small: enough for a few runs, whatever else the machine does."""


def run_campaign(folder: Path, kind: str, seconds: float, limit: float = 20.0, state: State | None = None) -> State:
    orders = Orders(Limits(3, ops=frozenset({Op.TANH, Op.ADD}), dtypes=(DType.F32,)), ("evaluator", "legacy"))
    begin = partial(plant, kind)
    first = state is None
    return Campaign(
        orders, folder, state or State(1), 1, seconds, limit, begin=begin, first=first, shrink_seconds=SHORT
    ).run()


def test_a_campaign_keeps_one_finding_for_a_planted_bug_and_goes_on(tmp_path):
    first = run_campaign(tmp_path, "wrong", 300)
    (known,) = first.causes
    assert known.cause.kind == "differ" and "tanh f32" in known.cause.units and not known.flaky
    folder = tmp_path / "findings" / known.cause.name
    assert {"module.hlo", "io.npz", "case.json", "blob", "test_case.py"} <= {f.name for f in folder.iterdir()}
    assert read_finding(folder).kind == "differ"
    assert (folder / "blob").read_text().strip() == known.blob
    assert read_state(tmp_path) == replace(first, seconds=round(first.seconds, 3))
    second = run_campaign(tmp_path, "wrong", 4, state=read_state(tmp_path))
    assert len(second.causes) == 1 and second.seconds > first.seconds


@pytest.mark.parametrize(("kind", "says"), [("crash", "status 3"), ("hang", "no answer")])
def test_what_ends_a_process_is_a_finding(tmp_path, kind, says, monkeypatch):
    monkeypatch.setattr(campaign, "PATIENCE", 3.0)  # what hangs sleeps, so it is waited for that much longer
    state = run_campaign(tmp_path, kind, 300, limit=60.0 if kind == "crash" else 5.0)
    (known,) = state.causes
    assert known.cause.kind == kind and known.cause.blamed == ("evaluator",) and says in known.sentence
    small = read_finding(tmp_path / "findings" / known.cause.name)
    assert Op.TANH in small.module.opcodes


def test_a_run_has_less_time_while_a_finding_is_made_small(tmp_path, monkeypatch):
    """A loop without end is a finding, not the end of its process."""
    given = []

    def noted(module, inputs, stacks, setting, *, patience):
        given.append(patience)
        return Outcome(OutcomeKind.HANG, ("legacy",), "", {"evaluator": Run(RunKind.RAN, seconds=0.1)})

    monkeypatch.setattr(hunter, "outcome", noted)
    told = hunter.Hunt(ORDERS, str(tmp_path), 1, 0, 0, 0.0, 60.0, ())
    made = hunter._Hunter(told, SimpleNamespace(send=lambda message: None))
    task = draw_task(Seeded(1), ORDERS)
    for _ in range(2):  # each round begins with all the time
        made._round(made.judge, made.over)
        found = made.judge(task)
        made._smaller(Catch(task, found, 1))
        made.judge(task)
    usual, smaller, *again = given
    assert (usual.whole, usual.least) == (60.0, hunter.RUN) and again == [usual, smaller]
    assert smaller.whole < 10 and smaller.least < 1


def test_what_was_caught_is_not_lost_with_its_process(tmp_path, monkeypatch):
    """A smaller task ended it: both are judged again, the catch first."""
    begun = []
    made = Campaign(ORDERS, tmp_path, State(1), 1, 1.0, 1.0)
    monkeypatch.setattr(made, "_begin", lambda number, suspects=(): begun.append((number, [*suspects])))
    made._start = 0.0
    process = campaign._Process(4, SimpleNamespace(pid=1), SimpleNamespace(close=lambda: None))
    for message in (("begin", "t1.caught"), ("smaller", "t1.caught"), ("begin", "t1.dies")):
        made._take(process, message[0], [*message[1:]])
    made._after(process)
    assert begun == [(4, ["t1.caught", "t1.dies"])]
    made._take(process, "finding", [cause_in(MODULE, differing("mlir")), "t1.caught", False, ""])
    made._after(process)
    assert begun[1] == (4, ["t1.dies"])


def test_a_process_that_had_no_processor_does_not_hang(monkeypatch):
    """It is waited for ten times as long as one that works and says nothing."""
    used, silent = {"seconds": 0.0}, {"seconds": 70.0}
    monkeypatch.setattr(campaign, "processor_seconds", lambda pid, unknown: used["seconds"])
    monkeypatch.setattr(campaign.time, "monotonic", lambda: silent["seconds"])
    process = campaign._Process(0, SimpleNamespace(pid=1), None, since=0.0)
    assert not process.hangs(60.0)
    used["seconds"] = 40.0
    assert process.hangs(60.0) and not process.hangs(71.0)
    used["seconds"], silent["seconds"] = 0.0, 601.0
    assert process.hangs(60.0)
