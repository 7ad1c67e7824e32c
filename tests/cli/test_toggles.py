"""`testbed toggles`: shows the ledger, moves rows, and refuses what the ledger's rules forbid, in one line."""

import datetime

import pytest

from ...cli.main import main
from ...migration.ledger import Hold, flags_text, judge, move, new_ledger
from ...migration.ledger_file import read_ledger
from ..support.ledgers import BAD, DAY, GOOD, ledger_file

PAST = Hold(datetime.date(2026, 3, 31), "wrong on long rows")


def toggles(path, *arguments, status=0):
    assert main(["toggles", "--ledger", str(path), *arguments]) == status


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_table_fits(columns, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    ledger = judge(judge(new_ledger(2), "dot.float", GOOD), "dynamic-update-slice.complex", BAD)
    toggles(ledger_file(tmp_path, ledger))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    words = out.split()
    assert words.count("off") == 49 and "1 of 50 rows are on" in " ".join(words)
    if columns == 200:
        assert "dot.float                     on       2     40" in out
    if columns >= 80:
        assert "0.99-1.03" in out and "refused: 20% slower than the old emitters" in out
        assert "opt 2, LLVM dialect: 50 rows, run time 1.01, compile time 1.30" in out


def test_a_row_moves_and_comes_back(tmp_path, capsys):
    path = ledger_file(tmp_path)
    toggles(path, "set", "reduce.float", "shadow", "--reason", "a first try")
    toggles(path, "set", "reduce.float.host", "on", "--reason", "by hand")
    assert read_ledger(path).row("reduce.float").state == "on"
    toggles(path, "rollback", "reduce.float", "--reason", "slow")
    assert capsys.readouterr().out.splitlines() == [
        "reduce.float.host: off -> shadow",
        "reduce.float.host: shadow -> on",
        "reduce.float.host: on -> shadow",
    ]
    history = [str(m).partition(" ")[2] for m in read_ledger(path).row("reduce.float").history]
    assert history == ["off -> shadow: a first try", "shadow -> on: by hand", "on -> shadow: rolled back: slow"]


def test_a_ledger_begins_for_two_stacks_and_once(tmp_path, capsys):
    path = tmp_path / "xla.toml"
    begin = ("begin", "--old", "xla-old", "--new", "xla-new", "--option", "4")
    toggles(path, *begin)
    ledger = read_ledger(path)
    assert ledger.stacks == ("xla-old", "xla-new") and {row.option for row in ledger.rows.values()} == {4}
    toggles(path, "flags")
    assert capsys.readouterr().out == "xla-old\n"
    toggles(path, *begin, status=2)
    assert "xla.toml exists (give a new file)" in capsys.readouterr().err
    for old, new in (("mlir", "mlir"), ("legacy", "mlir-structured")):
        toggles(tmp_path / "other.toml", "begin", "--old", old, "--new", new, status=2)
        assert f"no migration from {old} to {new}" in capsys.readouterr().err
    assert not (tmp_path / "other.toml").exists()


def test_flags_are_printed(tmp_path, capsys):
    path = ledger_file(tmp_path, judge(new_ledger(), "dot.float", GOOD))
    toggles(path, "flags")
    assert capsys.readouterr().out.strip() == flags_text(read_ledger(path))


def test_an_expired_hold_shows_and_its_flags_are_refused(tmp_path, capsys):
    path = ledger_file(tmp_path, move(new_ledger(), "sort.float", "off", DAY, "", PAST))
    toggles(path, status=1)
    assert "EXPIRED" in capsys.readouterr().out
    toggles(path, "flags", status=2)
    assert "sort.float.host was held back until 2026-03-31 (wrong on long rows)" in capsys.readouterr().err
    later = str(datetime.date.today() + datetime.timedelta(30))
    toggles(path, "set", "sort.float", "off", "--until", later, "--reason", "still wrong")
    toggles(path)
    toggles(path, "flags")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["set", "reduce.flaot", "off"], "did you mean 'reduce.float'?"),
        (["rollback", "reduce.flaot"], "did you mean 'reduce.float'?"),
        (["rollback", "reduce.float"], "has never been moved forward"),
        (["set", "reduce.float", "on"], "not without evidence: no gate has run"),
        (["set", "reduce.float", "removed"], "only a row that its gate put on is removed"),
        (["set", "reduce.float", "onn"], "'onn' is not one of"),
        (["set", "reduce.float", "off", "--until", "2099-01-01"], "--until needs --reason"),
        (["set", "reduce.float", "off", "--until", "2020-01-01", "--reason", "r"], "--until 2020-01-01 has passed"),
        (
            ["set", "reduce.float", "on", "--until", "2099-01-01", "--reason", "r"],
            "only a row that is off or in shadow",
        ),
        (["set", "reduce.float", "off", "--until", "soon", "--reason", "r"], "'soon' does not match the format"),
        (["--json", "flags"], "--json prints the table"),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_what_is_refused_is_one_line_and_changes_nothing(arguments, what, tmp_path, capsys):
    path = ledger_file(tmp_path)
    before = path.read_bytes()
    toggles(path, *arguments, status=2)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("testbed: error: ") and what in line
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["ledger.toml"]


def test_a_damaged_ledger_is_one_line_with_its_place(tmp_path, capsys):
    path = ledger_file(tmp_path)
    path.write_text(path.read_text().replace('"off"', '"on"', 1))
    for arguments in ([], ["flags"], ["set", "reduce.float", "shadow"]):
        toggles(path, *arguments, status=2)
        assert f"testbed: error: {path}:4:9: state is 'on'" in capsys.readouterr().err
    toggles(tmp_path / "gone.toml", status=2)
    assert "gone.toml: no such file" in capsys.readouterr().err
