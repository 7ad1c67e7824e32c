"""The stack where nobody names one: what the ledger's rows say, read from their states alone."""

import datetime
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ... import compile, run
from ...cli.main import main
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...migration import Flags, compile_module, default
from ...migration.default import default_flags, scan
from ...migration.ledger import Hold, LedgerError, Move, flags_text, judge, move, new_ledger
from ...migration.ledger_file import change_ledger, ledger_text, parse_ledger, read_ledger
from ...migration.ledger_states import FILE, STATES, flags_of
from ...migration.platforms import prepare_on_platform
from ...migration.units import CLASSES, UNITS, row_names
from ..support.ledgers import DAY, GOOD, ledger_file

SUMS = """HloModule sums
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[8,16] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[8] reduce(x, z), dimensions={1}, to_apply=add }
"""
X = np.ones((8, 16), np.float32)
ROW = "reduce.float.host"


def all_on(ledger=None):
    """A ledger whose rows' gates have all passed."""
    ledger = ledger or new_ledger()
    for name in row_names():
        ledger = judge(ledger, name, GOOD)
    return ledger


WHOLE = ledger_text(all_on())


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that makes a ledger the package's own, and returns its file."""

    def becomes(ledger):
        path = ledger_file(tmp_path, ledger)
        monkeypatch.setattr(default, "FILE", path)
        return path

    return becomes


def stacks(executable):
    return [stack for _, stack in executable.kernels]


def states_of(ledger):
    return {name: row.state for name, row in ledger.rows.items()}


def test_each_program_of_the_package_follows_its_own_ledger():
    flags = Flags.parse("ledger")
    for name, row in read_ledger().rows.items():
        unit, dtypes, _ = name.split(".")
        wanted = {"off": "legacy", "shadow": "shadow"}.get(row.state, "mlir")
        (key,) = {flags.stack_of(op, [dtype]) for op in UNITS[unit] for dtype in CLASSES[dtypes]}
        assert key == wanted, name
    chosen = flags.stack_of(next(iter(UNITS["reduce"])), [next(iter(CLASSES["float"]))])
    for made in (compile(SUMS), compile_module(parse_module(SUMS)), compile(SUMS, "ledger")):
        assert stacks(made) == [chosen] and made(X).tolist() == [16.0] * 8


def test_a_row_that_is_rolled_back_goes_to_legacy_and_comes_again(own, capsys):
    path = own(all_on())
    assert str(Flags.parse("ledger")) == "mlir" and stacks(compile(SUMS)) == ["mlir"]
    assert main(["toggles", "--ledger", str(path), "rollback", ROW, "--reason", "wrong on long rows"]) == 0
    assert str(Flags.parse("ledger")) == "mlir,reduce:float=legacy" and stacks(compile(SUMS)) == ["legacy"]
    assert stacks(compile(SUMS, "mlir")) == ["mlir"] and stacks(compile(SUMS, "ledger,reduce:float=mlir")) == ["mlir"]
    change_ledger(path, lambda ledger: move(ledger, ROW, "on", DAY, "mended"))
    assert str(Flags.parse("ledger")) == "mlir" and stacks(compile(SUMS)) == ["mlir"]


def test_legacy_is_the_way_back_wherever_the_rows_are(own):
    own(all_on())
    assert stacks(compile(SUMS, "legacy")) == ["legacy"] and run(SUMS, [X], "legacy")[0].tolist() == [16.0] * 8
    assert stacks(compile(SUMS, Flags.parse("legacy"))) == ["legacy"]
    own(new_ledger())
    assert str(Flags.parse("ledger")) == "legacy" and stacks(compile(SUMS)) == ["legacy"]


def test_a_platform_without_rows_keeps_its_own_default(own, monkeypatch):
    """No other platform that is here everywhere has a choice of stacks, so the host loses its rows."""
    own(all_on())
    program = Program("sums", SUMS, parse_module(SUMS))

    def chosen(emitters=None):
        return stacks(prepare_on_platform("host", program, emitters))

    assert [chosen(), chosen("legacy"), chosen("reduce=legacy"), chosen("sort=legacy")] == [
        ["mlir"], ["legacy"], ["legacy"], ["mlir"],
    ]  # fmt: skip
    monkeypatch.setattr("testbed.migration.platforms.WITH_ROWS", ())
    assert [chosen(), chosen("mlir"), chosen("reduce=mlir"), chosen("sort=mlir")] == [
        ["legacy"], ["mlir"], ["mlir"], ["legacy"],
    ]  # fmt: skip
    assert prepare_on_platform("interpreter", program).run([X])[0].tolist() == [16.0] * 8


# -- the scan and the reader -------------------------------------------------------------------------------------------
@given(st.lists(st.sampled_from(STATES), min_size=len(row_names()), max_size=len(row_names())))
def test_states_are_those_of_the_reader(states):
    ledger = new_ledger()
    for name, state in zip(row_names(), states, strict=True):
        steps = () if state == "off" else (Move(DAY, "off", state, 'said "state = \\"on\\"" '),)
        ledger = ledger.with_row(replace(ledger.rows[name], history=steps, evidence=GOOD))
    text = ledger_text(ledger)
    assert scan(text) == states_of(parse_ledger(text, "l")) == states_of(ledger)
    assert flags_of(scan(text)) == flags_text(ledger)


def test_the_packages_own_states_are_scanned(monkeypatch):
    """The whole reader is for damage only."""
    wanted = flags_of(states_of(read_ledger(FILE)))
    monkeypatch.setattr("testbed.migration.ledger_file.read_ledger", None)
    assert default_flags() == wanted


def test_another_form_and_other_stacks_are_left_to_the_reader(own):
    own(new_ledger()).write_text(WHOLE.replace('state = "on"', "state = 'on'  # by hand").replace("\n", "\r\n"))
    assert default_flags() == "mlir"
    own(judge(new_ledger(stacks=("mlir", "legacy")), ROW, GOOD))
    assert default_flags() == flags_text(read_ledger(default.FILE)) and default_flags().startswith("legacy,")
    own(new_ledger(stacks=("mlir", "mlir-structured")))
    with pytest.raises(LedgerError, match="the migration from mlir to mlir-structured is over"):
        default_flags()


DAMAGED = [
    ("", "the row"),
    (WHOLE.replace(f"[{ROW}]", "[reduce.flaot.host]"), "reduce.flaot.host"),
    (WHOLE.replace('state = "on"', 'state = "onn"', 1), "onn"),
    (WHOLE.replace('state = "on"\n', "", 1), "state is missing"),
    (WHOLE.replace('state = "on"', '<<<<<<< a\nstate = "on"\n=======\nstate = "off"\n>>>>>>> b', 1), "unfinished"),
    (WHOLE.replace("seed", "<<<<<<< a\nseed", 1), "unfinished"),
    (WHOLE[: WHOLE.index("[transpose.narrow.host]")], "transpose.narrow.host is missing"),
    (WHOLE + WHOLE[WHOLE.index("[transpose.narrow.host]") :], "not TOML"),
    (WHOLE.replace("\n\n", '\n\nold = "left"\n\n', 1), "no stack 'left'"),
]


@pytest.mark.parametrize(("text", "what"), DAMAGED, ids=range(len(DAMAGED)))
def test_damage_where_the_states_are_is_the_readers_error(text, what, tmp_path, monkeypatch):
    path = tmp_path / "ledger.toml"
    path.write_text(text)
    monkeypatch.setattr(default, "FILE", path)
    with pytest.raises(LedgerError, match=what) as caught:
        compile(SUMS)
    assert str(caught.value).startswith(f"{path}:")
    assert stacks(compile(SUMS, "legacy")) == ["legacy"], "a stack that is named asks no ledger"


def test_a_missing_ledger_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(default, "FILE", tmp_path / "gone.toml")
    with pytest.raises(InputError, match=r"gone.toml: no such file"):
        compile(SUMS)
    (tmp_path / "m.hlo").write_text(SUMS)
    assert main(["run", str(tmp_path / "m.hlo")]) == 2
    assert "gone.toml: no such file" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "m.hlo"), "--emitters", "legacy"]) == 0


def test_an_expired_hold_ends_no_program(own):
    """It ends `toggles` and the tests of the package's own ledger: an installed package stops on no day."""
    past = Hold(datetime.date(2026, 3, 31), "wrong on long rows")
    ledger = all_on().with_row(replace(new_ledger().rows[ROW], hold=past))
    path = own(ledger)
    with pytest.raises(LedgerError, match="was held back until 2026-03-31"):
        flags_text(parse_ledger(path.read_text(), "l"))
    assert str(Flags.parse("ledger")) == "mlir,reduce:float=legacy"


SCRIPT = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import testbed
if sys.argv[1] == "load":
    program = testbed.load_executable(sys.argv[2])
else:
    program = testbed.compile(open(sys.argv[2]).read())
found = sum(name.endswith("ledger.toml") for name in opened)
heavy = ("tomllib", "testbed.migration.ledger", "testbed.migration.ledger_file")
print(found, [name for name in heavy if name in sys.modules])
"""


def test_a_start_reads_the_ledger_only_where_something_is_compiled(tmp_path):
    (tmp_path / "m.hlo").write_text(SUMS)
    compile(SUMS).save(tmp_path / "m.tbx")
    for what, file, reads in (("compile", "m.hlo", 1), ("load", "m.tbx", 0)):
        command = [sys.executable, "-c", SCRIPT, what, str(tmp_path / file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.stdout.strip() == f"{reads} []", done.stdout + done.stderr
