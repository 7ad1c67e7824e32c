"""`testbed toggles stale`, `refresh` and `check`: evidence belongs to code; each check refuses a planted fault."""

import datetime
from dataclasses import replace
from functools import partial

import pytest

from ...cli import toggles_evidence, toggles_refresh, toggles_stale
from ...cli.main import main
from ...cli.toggles_evidence import Drawn, measured
from ...cli.toggles_gate import versions
from ...codegen.options import assume_host, assumed_host
from ...differential.child import Child
from ...differential.gate import digests, other_tree
from ...differential.gate.campaign import NOT_DRAWN, Batch, judged, rows_of, run_program, subject
from ...differential.gate.digest_cache import found, known
from ...differential.gate.digests import code_hash, form_digests
from ...differential.gate.exact_forms import exact_forms
from ...differential.gate.other_tree import OtherTree, refusals, tree_of
from ...differential.gate.staleness import NO_FORMS, VERSIONS, stale
from ...hlo.errors import InputError
from ...migration.form_evidence import FormEvidence, form_evidence_of, weakest
from ...migration.ledger import LedgerError, judge, new_ledger
from ...migration.ledger_file import ledger_text, parse_ledger, read_ledger
from ...migration.units import CLASSES, UNITS
from ..support import planted_gate as faults
from ..support.ledgers import DAY, GOOD, ledger_file

STACKS = ("legacy", "mlir")
ROW = "dynamic-update-slice.float.host"
UNIT = ("dynamic-update-slice", "float")
SUM = ("reduce", "float")


def of_code(made, **changes):
    """Good evidence with these digests by form."""
    forms = tuple(FormEvidence(form, digest, 2000, "exact", "0123abc", DAY) for form, digest in sorted(made.items()))
    return replace(GOOD, versions=versions(), forms=forms, **changes)


def with_evidence(evidence, row=ROW):
    return judge(new_ledger(2), row, evidence)


def wrong_sum(requests, options, emitted):
    return replace(emitted, llvm_ir=emitted.llvm_ir.replace("fadd", "fsub"))


# -- the file ---------------------------------------------------------------------------------------------------------
def test_evidence_of_forms_is_a_line_each_and_is_read_back():
    ledger = with_evidence(of_code({"legacy a/b": "0" * 12, "mlir c": "f" * 12}, code="1234"))
    text = ledger_text(ledger)
    assert '  "legacy a/b: code 000000000000, 2000 cases, exact, commit 0123abc, 2026-03-01",\n' in text
    assert parse_ledger(text, "l").rows == ledger.rows
    one = FormEvidence("mlir a", "0" * 12, 5, "sampled", "c", DAY, 7)
    assert form_evidence_of(str(one)) == one
    assert weakest(["proved", "exact", "exhaustive"]) == "exact" and weakest([]) == "sampled"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("2000 cases", "3000 cases", "not what the gate wrote"),
        ("code 0000", "code 0001", "not what the gate wrote"),
        (", exact,", ", certain,", "no evidence of a form"),
        ("2000 cases", "many cases", "no evidence of a form"),
    ],
)
def test_evidence_of_a_form_that_was_changed_by_hand_is_refused(old, new, why):
    text = ledger_text(with_evidence(of_code({"legacy a": "0" * 12})))
    with pytest.raises(LedgerError, match=why):
        parse_ledger(text.replace(old, new, 1), "l")


# -- digests ----------------------------------------------------------------------------------------------------------
def test_digests_are_of_no_machine():
    before, made = assumed_host(), form_digests(*UNIT)
    try:
        assume_host("x86-64-v2")
        assert form_digests(*UNIT) == made
    finally:
        assume_host(before)
    assert set(made) == {"legacy update/in_place", "mlir update/in_place"}


def test_other_code_of_one_stack_makes_its_forms_stale_and_no_others(monkeypatch):
    row = with_evidence(of_code(form_digests(*SUM)), "reduce.float").row("reduce.float")
    assert stale(row, form_digests(*SUM), versions()) is None
    faults.plant(monkeypatch, wrong_sum)
    changed = stale(row, form_digests(*SUM), versions())
    assert changed.forms and all(form.startswith("mlir ") for form in changed.forms)
    update = with_evidence(of_code(form_digests(*UNIT))).row(ROW)
    assert stale(update, form_digests(*UNIT), versions()) is None, "it adds nothing"


def test_other_versions_and_evidence_without_forms_are_stale():
    made = {"mlir a": "0" * 12}
    row = with_evidence(of_code(made)).row(ROW)
    assert stale(row, made, "other").why == VERSIONS
    own, _, libraries = versions().partition(", ")
    assert own.startswith("testbed ") and stale(row, made, f"testbed 9.9.9, {libraries}") is None, "a release"
    assert stale(replace(row, evidence=GOOD), made, versions()).why == NO_FORMS
    assert stale(row, {**made, "mlir b": "1" * 12}, versions()).forms == ("mlir b",)
    assert stale(row, {}, versions()).forms == ("mlir a",)


def test_digests_are_kept_by_the_files_that_make_code(tmp_path, monkeypatch):
    rows = [new_ledger().row(ROW)]
    assert known(rows, tmp_path) == {}
    made = found(rows, 1, tmp_path)
    assert made[ROW] == form_digests(*UNIT) and known(rows, tmp_path) == made
    (file,) = tmp_path.iterdir()
    assert file.name == f"{code_hash()}.json"
    file.write_text("{")
    assert known(rows, tmp_path) == {}
    assert {"legacy", "mlir_emitters"} <= set(digests.ROOMS)


# -- stale ------------------------------------------------------------------------------------------------------------
def judged_stale(tmp_path, monkeypatch, days, limit):
    """The exit status of the rule, for a row on whose code has changed since a commit of this number of days ago."""
    file = ledger_file(tmp_path, with_evidence(of_code({"legacy update/in_place": "0" * 12})))
    now = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
    dates = {"HEAD": now, "0123abc": now - datetime.timedelta(days)}
    monkeypatch.setattr(toggles_stale, "_committed", dates.get)
    monkeypatch.setattr(toggles_stale, "found", lambda rows, jobs: {row.name: form_digests(*UNIT) for row in rows})
    return main(["toggles", "--ledger", str(file), "stale", *(["--limit", str(limit)] if limit is not None else [])])


def test_ci_refuses_stale_evidence_after_a_week_of_commits(tmp_path, monkeypatch, capsys):
    assert judged_stale(tmp_path, monkeypatch, 6, 7) == 0
    assert judged_stale(tmp_path, monkeypatch, 8, 7) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"{ROW}: changed: legacy update/in_place, mlir update/in_place" in said
    assert "run: testbed toggles refresh" in said
    assert judged_stale(tmp_path, monkeypatch, 6, None) == 1


def test_the_table_names_what_is_stale_without_emitting(tmp_path, monkeypatch, capsys):
    file = ledger_file(tmp_path, with_evidence(of_code({"mlir a": "0" * 12})))
    monkeypatch.setattr(toggles_stale, "known", lambda rows: {})
    assert main(["toggles", "--ledger", str(file)]) == 0
    assert "the code of 1 rows has changed is not known: testbed toggles stale" in " ".join(
        capsys.readouterr().out.split()
    )
    monkeypatch.setattr(toggles_stale, "known", lambda rows: {ROW: {"mlir a": "1" * 12}})
    assert main(["toggles", "--ledger", str(file)]) == 0
    assert "dynamic-update-slice.float: stale: changed: mlir a" in capsys.readouterr().out
    fresh = ledger_file(tmp_path, with_evidence(of_code({"mlir a": "0" * 12}, code=code_hash())))
    assert main(["toggles", "--ledger", str(fresh)]) == 0
    assert "stale" not in capsys.readouterr().out


# -- refresh ----------------------------------------------------------------------------------------------------------
class NoProcess:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def call(self, function, row, drawn, *_, limit_s):
        return self.answer(row, drawn)


def refreshed(tmp_path, monkeypatch, answer, *arguments, batches=()):
    """The exit status of a refresh whose gates give `answer`, over a ledger in which no row has evidence by form."""
    NoProcess.answer = staticmethod(answer)
    monkeypatch.setattr(toggles_refresh, "Child", NoProcess)

    def programs(child, unit, dtypes, stacks, budget, missing, on_batch):
        for batch in batches:
            on_batch(batch)

    monkeypatch.setattr(toggles_refresh, "programs_for", programs)
    monkeypatch.setattr(toggles_refresh, "digests_of", lambda rows, jobs: {row.name: {} for row in rows})
    monkeypatch.setattr("testbed.cli.toggles_promote.refuse_changed_files", lambda: None)
    file = tmp_path / "ledger.toml"
    if not file.exists():
        ledger_file(tmp_path)
    return main(["toggles", "--ledger", str(file), "refresh", "--jobs", "1", *arguments])


def test_a_run_that_is_cut_short_loses_no_finished_row(tmp_path, monkeypatch, capsys):
    asked = []

    def until_the_third(row, drawn):
        asked.append(row.name)
        if len(asked) == 3:
            return "killed"
        return replace(of_code({}), forms=(FormEvidence("mlir a", "", 1, "exact", "c", DAY),))

    refreshed(tmp_path, monkeypatch, until_the_third)
    rows = read_ledger(tmp_path / "ledger.toml").rows
    assert {name for name, row in rows.items() if row.evidence} == set(asked[:2])
    monkeypatch.setattr(toggles_refresh, "stale", lambda row, made, now: row.evidence is None)
    again = []
    refreshed(tmp_path, monkeypatch, lambda row, drawn: again.append(row.name) or of_code({}))
    assert len(again) == 48 and not set(asked[:2]) & set(again)


def test_cases_count_for_each_row_that_a_program_holds_and_for_forms(tmp_path, monkeypatch):
    seen = {}
    rows = frozenset({"reduce.float.host", "elemental.float.host", "sort.float.host"})
    good = Batch(4, 5, rows, frozenset({("reduce.float.host", "mlir r"), ("elemental.float.host", "mlir e")}))
    bad = Batch(5, 5, rows, frozenset(), "wrong")
    refreshed(
        tmp_path,
        monkeypatch,
        lambda row, drawn: seen.update({row.name: drawn}) or of_code({}),
        "reduce.float",
        "elemental.float",
        batches=(good, bad),
    )
    ops, graph = seen["reduce.float.host"], seen["elemental.float.host"]
    assert (ops.cases, ops.own, ops.forms["mlir r"], ops.seeds) == (15, 10, 10, {"mlir r": 4})
    assert (graph.cases, graph.forms["mlir e"], graph.seeds) == (15, 10, {"mlir e": 4})
    assert ops.wrong == ["wrong"]


@pytest.mark.parametrize(("drawn", "why"), [(Drawn(4), "drawn: 4 cases of 2000"), (Drawn(9, wrong=["W"]), "drawn: W")])
def test_too_few_or_wrong_cases_refuse_the_row(drawn, why, monkeypatch):
    monkeypatch.setattr(toggles_evidence, "run_gate", lambda *_, **__: (GOOD, []))
    made = measured(new_ledger().row(ROW), drawn, STACKS, 20.0, False, 2000)
    assert why in made.refused and made.cases == GOOD.cases + drawn.cases


def test_what_has_the_code_of_before_keeps_its_evidence(monkeypatch):
    made = form_digests(*UNIT)
    row = with_evidence(of_code({**made, "legacy update/in_place": "0" * 12})).row(ROW)
    monkeypatch.setattr(toggles_evidence, "run_gate", lambda *_, **__: (replace(GOOD, commit="new"), []))
    forms = {f.form: f for f in measured(row, Drawn(2000), STACKS, 20.0, False, 2000).forms}
    assert {form: f.commit for form, f in forms.items()} == {
        "legacy update/in_place": "new",
        "mlir update/in_place": "0123abc",
    }
    assert {form: f.digest for form, f in forms.items()} == made


# -- cases ------------------------------------------------------------------------------------------------------------
def test_drawn_cases_find_a_planted_fault():
    with Child(partial(faults.plant_in_child, wrong_sum)) as child:
        batches = [judged(child, *SUM, seed, STACKS, 20.0) for seed in range(12)]
    assert any("mlir" in batch.complaint for batch in batches)
    batch = run_program(*SUM, 0, STACKS, 20.0)
    assert batch.complaint == "" and batch.cases == 5


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("dtypes", CLASSES)
def test_programs_hold_their_row(unit, dtypes):
    made = [subject(unit, dtypes, seed, STACKS, 2) for seed in range(6)]
    assert all(len(one.inputs) == 2 for one in made)
    sized = [one for one in made if one.name.startswith("sized")]
    assert len(sized) == (6 if (unit, dtypes) in NOT_DRAWN else 2)
    assert all(f"{unit}.{dtypes}.host" in rows_of(one.module) for one in sized)


def test_exact_evidence_refuses_a_planted_fault(monkeypatch):
    methods, wrong = exact_forms(*SUM, {}, STACKS, {"mlir reduce/columns"})
    assert wrong == [] and methods["mlir reduce/columns"] == "exact"
    faults.plant(monkeypatch, wrong_sum)
    _, wrong = exact_forms(*SUM, {}, STACKS, {"mlir reduce/columns"})
    assert wrong and "mlir differs" in wrong[0]


# -- another checkout -------------------------------------------------------------------------------------------------
def test_another_checkout_is_judged(monkeypatch):
    tree = OtherTree(digests.ROOT)
    monkeypatch.setattr(
        other_tree, "own_modules", lambda unit, dtypes: iter(list(digests.own_modules(unit, dtypes))[:3])
    )
    try:
        count, wrong = refusals(tree, *SUM, STACKS, 10)
        assert (count, wrong) == (13, [])
        run = tree.run

        def flipped(text, stack, inputs):
            found = run(text, stack, inputs)
            return [replace(r, results=tuple(x + 1 for x in r.results)) for r in found] if stack == "mlir" else found

        monkeypatch.setattr(tree, "run", flipped)
        _, wrong = refusals(tree, *SUM, STACKS, 10)
        assert wrong and "mlir" in wrong[0]
    finally:
        tree.close()


def test_what_is_no_checkout_says_so():
    with pytest.raises(InputError, match="no folder and no revision 'no-such-thing'"), tree_of("no-such-thing"):
        pass
