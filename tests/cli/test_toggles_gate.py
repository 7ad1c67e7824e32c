"""The gate of `testbed toggles promote`: what it refuses and why; XLA's own migration, replayed.

Limits are wide and the planted faults are large, so that a loaded machine changes no outcome.
"""

import datetime
import re
import subprocess
from dataclasses import replace

import pytest

from ...benchmarks.suite import machine
from ...cli import toggles_gate
from ...cli.main import main
from ...cli.toggles_gate import run_gate
from ...cli.toggles_promote import with_every_input
from ...codegen.threads import on_threads, threads
from ...differential.exhaustive import Result, rows
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...migration import Flags
from ...migration.ledger import SOAK_DAYS, Hold, LedgerError, flags_text, judge, move, new_ledger, roll_back
from ...migration.ledger_file import ledger_text, parse_ledger, read_ledger
from ...migration.parity import Parity
from ...migration.units import row_names
from ..support import planted
from ..support.ledgers import DAY, GOOD, ledger_file
from ..support.planted_gate import QUICK

WIDE = Parity(cases=6, mean=3, each=5, compile=3, memory=3)
ROW = "reduce.float"


def gate(ledger, parity=WIDE):
    """The ledger after the row's gate, as `promote` does it."""
    evidence, speeds = run_gate(ledger.row(ROW), 6, [], parity, settings=QUICK)
    assert len(speeds) == evidence.workloads == 4 and evidence.cases == 6
    return judge(ledger, ROW, evidence)


def stack(ledger):
    """Where the ledger sends a sum of f32."""
    return Flags.parse(flags_text(ledger, DAY)).stack_of(Op.REDUCE, [DType.F32])


FAULTS = [
    (planted.slow, "times as slow on average"),
    (planted.wrong, "wrong in 2 of 6 cases: case 0: mlir is "),
    (planted.slow_to_compile, "compiling takes "),
    (planted.hungry, "times the memory"),
]


@pytest.mark.parametrize(("fault", "why"), FAULTS, ids=[f.__name__ for f, _ in FAULTS])
def test_a_planted_fault_is_refused(fault, why, monkeypatch):
    planted.plant(monkeypatch, fault)
    row = gate(new_ledger()).row(ROW)
    assert row.state == "off" and row.history == ()
    assert why in row.evidence.refused
    assert ("wrong in" in row.evidence.refused) is (fault is planted.wrong)


def test_history_replayed(monkeypatch):
    """On by default, reverted, on again; one op sent back; the old emitters deleted. The gate stops what went back."""
    ledger = off = new_ledger()

    # XLA turned its first version on by default and had to revert it. The gate refuses it.
    planted.plant(monkeypatch, planted.slow)
    ledger = gate(ledger)
    assert ledger.row(ROW).state == "off" and stack(ledger) == "legacy"
    with pytest.raises(LedgerError, match="times as slow"):
        move(ledger, ROW, "on", DAY)
    # Turned on all the same, with a reason: a rollback restores what was.
    forced = move(ledger, ROW, "on", DAY, "the default, as in XLA")
    assert stack(forced) == "mlir"
    assert flags_text(roll_back(forced, ROW, DAY, "slow"), DAY) == flags_text(off, DAY)

    # The mended version passes.
    monkeypatch.undo()
    ledger = gate(ledger)
    assert ledger.row(ROW).state == "on" and stack(ledger) == "mlir"

    # A later change makes it wrong. The gate says so, the old emitters are kept, and the op goes back, for a time.
    planted.plant(monkeypatch, planted.wrong)
    ledger = gate(ledger)
    assert "wrong in 2 of 6 cases" in ledger.row(ROW).evidence.refused
    later = DAY + datetime.timedelta(365)
    with pytest.raises(LedgerError, match="only a row that its gate put on"):
        move(ledger, ROW, "removed", later)
    until = Hold(DAY + datetime.timedelta(90), "wrong sums")
    ledger = roll_back(ledger, ROW, DAY, "wrong sums", until)
    assert stack(ledger) == "legacy"
    with pytest.raises(LedgerError, match="held back until"):
        flags_text(ledger, later)
    with pytest.raises(LedgerError, match="wrong in 2 of 6"):
        move(ledger, ROW, "on", DAY)

    # Mended again, on again, and after three weeks the old emitters go for good.
    monkeypatch.undo()
    ledger = gate(ledger)
    row = ledger.row(ROW)
    assert row.state == "on" and row.hold is None
    on = row.history[-1].date
    with pytest.raises(LedgerError, match="remove its old emitters after 21"):
        move(ledger, ROW, "removed", on + datetime.timedelta(SOAK_DAYS - 1))
    ledger = move(ledger, ROW, "removed", on + datetime.timedelta(SOAK_DAYS))
    with pytest.raises(LedgerError, match="restore them with git"):
        roll_back(ledger, ROW, later)
    states = [m.new for m in ledger.row(ROW).history]
    assert states == ["on", "off", "on", "removed"]


def test_programs_are_timed_on_one_thread(monkeypatch):
    """The processor time of several would count the waiting of the pool, too (ADR 40)."""
    seen = []
    monkeypatch.setattr(toggles_gate, "_races", lambda *_: seen.append(threads()) or ([], 0))
    with on_threads(3):
        run_gate(new_ledger().row(ROW), 1, [], WIDE)
        assert seen == [1] and threads() == 3


def test_promote_writes_evidence_and_a_refusal_keeps_the_state(tmp_path, monkeypatch, capsys):
    path = ledger_file(tmp_path)
    planted.plant(monkeypatch, planted.wrong)
    monkeypatch.setattr("testbed.cli.toggles_gate.commit", lambda: "0123456789ab")
    monkeypatch.setattr("testbed.cli.toggles_gate.suites", list)
    monkeypatch.setattr("testbed.cli.toggles_gate.SETTINGS", QUICK)
    before = path.read_bytes()
    assert (
        main(["toggles", "--ledger", str(path), "promote", ROW, "--cases", "5", "--checks", "none", "--dry-run"]) == 1
    )
    assert path.read_bytes() == before
    assert main(["toggles", "--ledger", str(path), "promote", ROW, "--cases", "5", "--checks", "none"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "reduce.float.host: refused: wrong in " in out and "only 5 cases ran, of 40" in out
    row = read_ledger(path).row(ROW)
    assert row.state == "off" and row.evidence.refused.startswith("wrong in ") and row.evidence.commit


def test_a_checkout_with_changes_is_refused(tmp_path, monkeypatch, capsys):
    """Evidence names the commit that was measured; a dry run writes none."""
    path = ledger_file(tmp_path)
    monkeypatch.setattr("testbed.cli.toggles_gate.commit", lambda: "uncommitted")
    monkeypatch.setattr("testbed.cli.toggles_gate.run_gate", lambda *_, **__: (replace(GOOD, commit="uncommitted"), []))
    before = path.read_bytes()
    assert main(["toggles", "--ledger", str(path), "promote", ROW]) == 2
    assert "changes that are in no commit" in capsys.readouterr().err and path.read_bytes() == before
    assert main(["toggles", "--ledger", str(path), "promote", ROW, "--dry-run"]) == 0
    assert path.read_bytes() == before


def test_evidence_names_the_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert toggles_gate.commit() == "unknown"
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    clean = toggles_gate.commit()
    assert re.fullmatch("[0-9a-f]{12}", clean)
    (tmp_path / "migration").mkdir()
    (tmp_path / "migration/ledger.toml").write_text("")
    assert toggles_gate.commit() == clean
    (tmp_path / "more").write_text("")
    assert toggles_gate.commit() == "uncommitted"
    monkeypatch.setenv("PATH", "")
    assert toggles_gate.commit() == "unknown"


def test_all_rows_go_on_where_a_run_was_cut_short(tmp_path, monkeypatch, capsys):
    """A row that has evidence of the commit and the versions of now is left out."""
    path, ran = ledger_file(tmp_path), []
    monkeypatch.setattr("testbed.cli.toggles_gate.commit", lambda: "0123456789ab")

    def gate(row, *rest, **options):
        ran.append(row.name)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return replace(GOOD, commit="0123456789ab", versions=toggles_gate.versions()), []

    monkeypatch.setattr("testbed.cli.toggles_gate.run_gate", gate)
    assert main(["toggles", "--ledger", str(path), "promote", "--all"]) == 130
    first = list(ran)
    assert main(["toggles", "--ledger", str(path), "promote", "--all"]) == 0
    assert ran == [*first, *row_names()[2:]] and first == row_names()[:3]
    assert f"{len(row_names()) - 2} rows have no evidence of this commit" in capsys.readouterr().out
    assert read_ledger(path).row(ROW).state == "on"


def test_pairs_that_ran_on_every_input_are_counted():
    """A pair that is wrong on some input refuses the row."""
    row = new_ledger().row("elemental.half")
    results = [Result(r.name, 0, "agree") for r in rows([DType.F16], frozenset({Op.TANH, Op.SINE}))]
    found = with_every_input(row, GOOD, results)
    assert (found.kind, found.every_input, found.refused) == ("sampled", 2, "") and found.pairs > 100
    wrong = with_every_input(row, GOOD, [*results, Result("negate f16", 0, "differ")])
    assert wrong.every_input == 2 and wrong.refused == "wrong on some input: negate f16"
    complete = replace(found, every_input=found.pairs)
    text = ledger_text(judge(new_ledger(), row.name, complete))
    assert parse_ledger(text, "f").row(row.name).evidence == complete
    assert "every_input" not in ledger_text(judge(new_ledger(), row.name, GOOD))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["promote"], "give rows, or --all"),
        (["promote", ROW, "--exhaustive", "gone"], "gone"),
        (["promote", "reduce.flaot"], "did you mean 'reduce.float'?"),
        (["promote", ROW, "--cases", "0"], "--cases"),
        (["promote", ROW, "--corpus", "gone"], "manifest.jsonl: no such file"),
    ],
)
def test_what_is_refused_is_one_line(arguments, what, tmp_path, capsys, monkeypatch):
    path = ledger_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("testbed.cli.toggles_gate.commit", lambda: "0123456789ab")
    monkeypatch.setattr("testbed.cli.toggles_gate.suites", list)
    before = path.read_bytes()
    assert main(["toggles", "--ledger", str(path), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("testbed: error: ") and what in line and path.read_bytes() == before
