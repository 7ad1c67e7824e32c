"""migration/ledger*.py: states and their rules, the flags that a ledger stands for, its file and what damages it."""

import datetime
import re
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...formats.whole_files import write_text
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.opcodes import Op
from ...migration import Flags, default
from ...migration.ledger import (
    OPTIONS,
    SOAK_DAYS,
    Hold,
    Ledger,
    LedgerError,
    Move,
    Row,
    flags_text,
    judge,
    move,
    new_ledger,
    roll_back,
)
from ...migration.ledger_file import RECORDS, change_ledger, ledger_text, parse_ledger, read_ledger
from ...migration.ledger_states import FILE, STATES, stack_of
from ...migration.units import row_names
from ..support.ledgers import BAD, DAY, GOOD, ledger_file

NAME = "reduce.float.host"
LATER = DAY + datetime.timedelta(SOAK_DAYS)
HELD = Hold(datetime.date(2026, 6, 1), "wrong on long rows")


def test_the_packages_own_ledger_is_read_and_names_every_row():
    ledger = read_ledger()
    assert sorted(ledger.rows) == row_names() and FILE.read_text() == ledger_text(ledger)
    assert str(Flags.parse("ledger")) == str(Flags.parse(flags_text(ledger)))


def test_rules_behind_the_ledger_replace_its_own(monkeypatch, tmp_path):
    on = judge(new_ledger(), NAME, GOOD)
    monkeypatch.setattr(default, "FILE", ledger_file(tmp_path, on))
    flags = Flags.parse("ledger,sort=mlir,reduce:complex=mlir")
    assert flags.stack_of(Op.SORT, [DType.F32]) == "mlir" and flags.stack_of(Op.REDUCE, [DType.C64]) == "mlir"
    assert flags.stack_of(Op.DOT, [DType.F32]) == "legacy" and Flags.parse(str(flags)) == flags


@pytest.mark.parametrize(
    ("op", "dtypes", "stack"),
    [
        (Op.REDUCE, [DType.F32], "mlir"),
        (Op.REDUCE, [DType.F64], "mlir"),
        (Op.REDUCE, [DType.F16], "legacy"),
        (Op.REDUCE, [DType.F32, DType.S32], "legacy"),
        (Op.TANH, [DType.F32], "legacy"),
    ],
)
def test_what_is_less_far_decides(op, dtypes, stack):
    assert Flags.parse(flags_text(judge(new_ledger(), NAME, GOOD))).stack_of(op, dtypes) == stack


def test_flags_of_whole_ledgers():
    off, on = new_ledger(), new_ledger()
    for name in row_names():
        on = judge(on, name, GOOD)
    assert flags_text(off) == "legacy" and flags_text(on) == "mlir"
    assert flags_text(move(on, "dot.half", "off", DAY)) == "mlir,dot:half=legacy"
    for name in [n for n in row_names() if n.startswith("dot.")]:
        on = move(on, name, "off", DAY)
    assert flags_text(on) == "mlir,dot=legacy"
    assert flags_text(move(off, "dot.half", "shadow", DAY)).startswith("mlir,dot:half=shadow,concatenate=legacy,")


def test_a_gate_moves_a_row_and_a_refusal_does_not():
    passed, refused = judge(new_ledger(), NAME, GOOD).row(NAME), judge(new_ledger(), NAME, BAD).row(NAME)
    assert passed.state == "on" and passed.history[-1].reason == "promoted by its gate"
    assert refused.state == "off" and refused.evidence == BAD and refused.history == ()


def test_on_needs_a_gate_or_a_reason():
    for ledger, why in ((new_ledger(), "no gate has run"), (judge(new_ledger(), NAME, BAD), "20% slower")):
        with pytest.raises(LedgerError, match=why):
            move(ledger, NAME, "on", DAY)
        assert move(ledger, NAME, "on", DAY, "tried by hand").row(NAME).history[-1].reason == "tried by hand"
    sent_back = move(judge(new_ledger(), NAME, GOOD), NAME, "off", DAY)
    assert move(sent_back, NAME, "on", DAY).row(NAME).state == "on"


def test_removal_waits_and_is_final():
    on = judge(new_ledger(), NAME, GOOD)
    with pytest.raises(LedgerError, match="has been on for 20 days"):
        move(on, NAME, "removed", LATER - datetime.timedelta(1))
    with pytest.raises(LedgerError, match="is off: only a row that its gate put on"):
        move(new_ledger(), NAME, "removed", LATER)
    with pytest.raises(LedgerError, match="is on: only a row that its gate put on"):
        move(move(new_ledger(), NAME, "on", DAY, "by hand"), NAME, "removed", LATER)
    gone = move(on, NAME, "removed", LATER)
    for change in (lambda: move(gone, NAME, "off", LATER), lambda: roll_back(gone, NAME, LATER)):
        with pytest.raises(LedgerError, match="its old emitters are removed"):
            change()
    assert "reduce:float" not in flags_text(gone)


def test_a_rollback_goes_one_step_back_and_never_forward():
    ledger = judge(move(new_ledger(), NAME, "shadow", DAY), NAME, GOOD)
    ledger = roll_back(ledger, NAME, DAY, "slow on one row")
    assert ledger.row(NAME).state == "shadow"
    assert str(ledger.row(NAME).history[-1]) == "2026-03-01 on -> shadow: rolled back: slow on one row"
    ledger = roll_back(ledger, NAME, DAY)
    assert ledger.row(NAME).state == "off"
    with pytest.raises(LedgerError, match="never been moved forward"):
        roll_back(ledger, NAME, DAY)


def test_an_expired_hold_is_an_error_until_the_row_is_promoted():
    held = move(judge(new_ledger(), NAME, GOOD), NAME, "off", DAY, "", HELD)
    assert flags_text(held, HELD.until) == "legacy"
    with pytest.raises(LedgerError, match=r"held back until 2026-06-01 \(wrong on long rows\).*promote"):
        flags_text(held, HELD.until + datetime.timedelta(1))
    assert judge(held, NAME, GOOD).row(NAME).hold is None
    assert judge(held, NAME, BAD).row(NAME).hold == HELD
    with pytest.raises(LedgerError, match="is held back"):
        move(new_ledger(), NAME, "on", DAY, "why", HELD)


def test_an_unknown_row_names_the_nearest():
    with pytest.raises(LedgerError, match=r"no row 'reduce.flaot' \(did you mean 'reduce.float'"):
        new_ledger().row("reduce.flaot")
    with pytest.raises(LedgerError, match="testbed toggles lists them"):
        new_ledger().row("@")
    assert new_ledger().row("reduce.float") == new_ledger().row(NAME)


# -- the file ---------------------------------------------------------------------------------------------------------
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
dates = st.dates(datetime.date(2000, 1, 1))
evidence = st.builds(
    replace,
    st.just(GOOD),
    cases=st.integers(0, 10**9),
    ratio=st.floats(allow_nan=False),
    worst_ulp=st.floats(0),
    date=dates,
    versions=words,
    refused=words,
)


@st.composite
def rows(draw, name):
    states = draw(st.lists(st.sampled_from(STATES), max_size=4))
    steps = [Move(draw(dates), a, b, draw(words)) for a, b in zip(["off", *states], states)]
    hold = draw(st.none() | st.builds(Hold, dates, words))
    return Row(name, draw(st.sampled_from(list(OPTIONS))), tuple(steps), hold, draw(st.none() | evidence))


@given(st.lists(st.sampled_from(row_names()), unique=True, max_size=4).flatmap(lambda n: st.tuples(*map(rows, n))))
def test_every_ledger_round_trips(some):
    ledger = Ledger({**new_ledger().rows, **{row.name: row for row in some}})
    text = ledger_text(ledger)
    assert parse_ledger(text, "x").rows == ledger.rows and ledger_text(parse_ledger(text, "x")) == text


def test_rows_are_sections_so_that_branches_merge(tmp_path):
    """git merges two branches that moved different rows, and conflicts in the row that both moved."""
    texts = {
        "base": ledger_text(new_ledger()),
        "one": ledger_text(judge(new_ledger(), "dot.float", GOOD)),
        "two": ledger_text(judge(new_ledger(), "dot.half", GOOD)),
        "three": ledger_text(move(new_ledger(), "dot.float", "shadow", DAY)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def merge(ours, theirs):
        command = ["git", "merge-file", "-p", ours, "base", theirs]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    clean = merge("one", "two")
    assert clean.returncode == 0
    assert {r.name for r in parse_ledger(clean.stdout, "x").rows.values() if r.state == "on"} == {
        "dot.float.host",
        "dot.half.host",
    }
    torn = merge("one", "three")
    assert torn.returncode > 0
    line = torn.stdout[: torn.stdout.index("<<<<<<<")].count("\n") + 1
    with pytest.raises(LedgerError, match=rf"^x:{line}:1: a merge was left unfinished"):
        parse_ledger(torn.stdout, "x")


WHOLE = ledger_text(judge(move(new_ledger(2), NAME, "shadow", DAY, "tried"), NAME, GOOD))
HATCH = WHOLE.replace(f"[{NAME}.evidence]", f'[{NAME}.hold]\nuntil = 2026-06-01\nreason = "r"\n[{NAME}.evidence]')


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("[concatenate.complex.host]", "[concatenate.complex.host", "3:26", "not TOML: expected ']'"),
        ("[concatenate.complex.host]", "[concatenate.complx.host]", "3:1", "did you mean 'concatenate.complex.host'?"),
        ("[concatenate.complex.host]", "[@.y.z]", "3:2", "not TOML"),
        ("[concatenate.complex.host]", "[x.y.z]", "3:1", "no such row: 'x.y.z'"),
        ("[concatenate.complex.host]", "stray = 1\n[concatenate.complex.host]", "3:9", "'stray' stands in no row"),
        ("option = 2", "option = 9", "5:10", "no option 9 (one of 1, 2, 3, 4)"),
        ("option = 2", "option = true", "5:10", "option is True, not a int"),
        ("option = 2", "optoin = 2", "5:10", "unknown key 'optoin'"),
        ("option = 2\n", "", "3:1", "option is missing"),
        ('[dot.half.host]\nstate = "off"\noption = 2\nhistory = []\n', "", "271:1", "the row dot.half.host is missing"),
        ('state = "off"', 'state = "on"', "4:9", "state is 'on', but the history ends in 'off'"),
        ("history = []", 'history = ["yesterday"]', "6:11", "no step of a history: 'yesterday'"),
        ("history = []", 'history = ["2026-02-30 off -> off"]', "6:11", "no date: 2026-02-30"),
        ("history = []", 'history = ["2026-02-20 on -> off"]', "6:11", "history goes on from on, but was at off"),
        ("cases = 40", "cases = 4000", "seal", "the evidence is not what the gate wrote"),
        ('kind = "sampled"', 'kind = "believed"', "kind", "no class of evidence: 'believed'"),
        ("ratio = 1.01", 'ratio = "fast"', "ratio", "ratio is 'fast', not a float"),
        ("until = 2026-06-01", "until = 7", "until", "until is 7, not a date"),
        ("until = 2026-06-01", "until = 2026-06-01T10:00:00", "until", "not a date"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(old, new, where, what):
    assert old in HATCH
    text = HATCH.replace(old, new, 1)
    if ":" not in where:
        line = next(n for n, words in enumerate(text.splitlines(), 1) if words.startswith(f"{where} = "))
        where = f"{line}:{len(where) + 4}"
    with pytest.raises(LedgerError) as caught:
        parse_ledger(text, "l.toml")
    assert str(caught.value).startswith(f"l.toml:{where}: ") and what in str(caught.value)


def test_every_cut_is_refused():
    """A file that was cut short never reads as a ledger with other facts."""
    end = WHOLE.rindex("history = []") + len("history = []")
    for cut in (*range(0, end, 97), WHOLE.rindex("[")):
        with pytest.raises(LedgerError) as caught:
            parse_ledger(WHOLE[:cut], "x")
        assert caught.value.location is not None


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone.toml: no such file"):
        read_ledger(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="cannot open"):
        change_ledger(tmp_path / "no" / "gone.toml", lambda ledger: ledger)


def test_a_change_that_fails_leaves_the_file(tmp_path):
    path = ledger_file(tmp_path)
    before = path.read_bytes()
    with pytest.raises(LedgerError):
        change_ledger(path, lambda ledger: move(ledger, NAME, "on", DAY))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_writers_at_once_lose_nothing(tmp_path):
    path = ledger_file(tmp_path)
    names = row_names()

    def work(part):
        for name in part:
            change_ledger(path, lambda ledger, name=name: move(ledger, name, "shadow", DAY))

    threads = [threading.Thread(target=work, args=(names[n::4],)) for n in range(2)]
    for thread in threads:
        thread.start()
    code = "import sys; from testbed.cli.main import main; sys.exit(main())"
    other = [sys.executable, "-c", code, "toggles", "--ledger", str(path), "set", names[2], "shadow"]
    assert subprocess.run(other).returncode == 0
    for thread in threads:
        thread.join()
    moved = {name for name, row in read_ledger(path).rows.items() if row.state == "shadow"}
    assert moved == {*names[0::4], *names[1::4], names[2]}


def test_a_full_disk_leaves_the_file(tmp_path, monkeypatch):
    path = ledger_file(tmp_path)
    before = path.read_bytes()

    def full(path, text):
        write_text(path / "below a file", text)

    monkeypatch.setattr("testbed.migration.ledger_file.write_text", full)
    with pytest.raises(InputError, match="cannot write"):
        change_ledger(path, lambda ledger: move(ledger, NAME, "shadow", DAY))
    assert path.read_bytes() == before


OTHER = Ledger({name: Row(name, 3) for name in row_names()}, stacks=("mlir", "legacy"))


def test_a_ledger_may_be_of_other_stacks():
    on = judge(OTHER, NAME, GOOD)
    text = ledger_text(on)
    assert 'old = "mlir"\nnew = "legacy"\n' in text
    assert parse_ledger(text, "l").stacks == OTHER.stacks and ledger_text(parse_ledger(text, "l")) == text
    assert "\nold = " not in ledger_text(new_ledger())
    assert flags_text(OTHER) == "mlir" and flags_text(on).startswith("legacy,concatenate=mlir,")
    assert [stack_of(state, OTHER.stacks) for state in ("off", "on", "removed")] == ["mlir", "legacy", "legacy"]


def test_other_stacks_have_no_shadow():
    with pytest.raises(LedgerError, match="legacy has no shadow"):
        move(OTHER, NAME, "shadow", DAY)


def test_an_unknown_stack_in_a_ledger_is_one_line():
    text = ledger_text(OTHER).replace('new = "legacy"', 'new = "mlri"')
    with pytest.raises(LedgerError, match="no stack 'mlri'") as caught:
        parse_ledger(text, "l")
    assert (caught.value.location.line, caught.value.location.column) == (4, 7)


def test_the_ledger_of_a_migration_that_is_over_is_a_record():
    ledger = read_ledger(FILE.with_name("structured.toml"))
    assert ledger.stacks == ("mlir", "mlir-structured") and {row.state for row in ledger.rows.values()} == {"on"}
    assert all(row.evidence and not row.evidence.refused for row in ledger.rows.values())
    for use in (flags_text, lambda ledger: move(ledger, NAME, "off", DAY), lambda ledger: roll_back(ledger, NAME, DAY)):
        with pytest.raises(LedgerError, match="the migration from mlir to mlir-structured is over"):
            use(ledger)


def test_the_ledger_of_xlas_own_migration():
    ledger = read_ledger(FILE.with_name("xla.toml"))
    assert ledger.stacks == ("xla-old", "xla-new") and sorted(ledger.rows) == row_names()
    for row in ledger.rows.values():
        on = row.evidence is not None and not row.evidence.refused
        assert stack_of(row.state, ledger.stacks) == ("xla-new" if on else "xla-old"), "a row moves by its gate alone"
        assert row.evidence is None or "jaxlib 0.10.2" in row.evidence.versions
        assert row.evidence is None or re.fullmatch("[0-9a-f]{12}", row.evidence.commit)
    assert {row.state for row in ledger.rows.values()} == {"on", "off"}


def test_rows_on_both_of_xlas_stacks_are_no_flags():
    off = Ledger({name: Row(name, 1) for name in row_names()}, stacks=("xla-old", "xla-new"))
    some = judge(off, NAME, GOOD)
    every = some
    for name in row_names():
        every = judge(every, name, GOOD)
    assert (flags_text(off), flags_text(every)) == ("xla-old", "xla-new")
    with pytest.raises(LedgerError, match="a program is on one of xla-old and xla-new, and rows of this ledger are on"):
        flags_text(some)


def test_records_are_the_ledgers_beside_the_packages_own():
    """Evidence names a commit without these files, so that a gate may write one row after the other."""
    assert {path.name for path in FILE.parent.glob("*.toml")} == {FILE.name, "weights.toml", *RECORDS}
