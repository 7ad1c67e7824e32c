"""Findings on disk: what is written is read back, is a MODULE, and holds a unit test that fails until it is mended."""

from __future__ import annotations

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from ...differential import finding as findings
from ...differential.child import Child
from ...differential.finding import array_text, case_of, finding_of, read_finding, stages_of, write_finding
from ...differential.outcome import Outcome, OutcomeKind, Run, RunKind, outcome
from ...differential.setting import Setting
from ...formats.program import Program, load_program
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError

TEXT = "HloModule m\n\nENTRY e {\n  p = bf16[4] parameter(0)\n  ROOT r = bf16[4] negate(p)\n}\n"
MODULE = parse_module(TEXT)
X = [np.array([1, -2, np.nan, np.inf], ml_dtypes.bfloat16)]
STACKS = ("evaluator", "mlir,negate=legacy", "legacy")


def found(kind: OutcomeKind = OutcomeKind.DIFFER) -> Outcome:
    return Outcome(kind, ("legacy",), 'legacy "differs"', {s: Run(RunKind.RAN, (-X[0],)) for s in STACKS}, flaky=True)


def test_what_is_written_is_read_back(tmp_path):
    setting = Setting(red_zones=True, threads=2)
    case = finding_of(MODULE, X, found(), setting=setting, seed=7)
    folder = write_finding(tmp_path / "f", case, expected=[-X[0]], verdict="more words")
    again = read_finding(folder)
    assert (again.text, again.stacks, again.kind) == (case.text, STACKS, OutcomeKind.DIFFER)
    assert (again.blamed, again.seed, again.flaky, again.setting) == (("legacy",), 7, True, setting)
    assert again.inputs[0].tobytes() == X[0].tobytes()
    assert (folder / "verdict.txt").read_text() == "more words\n"
    assert {p.name for p in (folder / "stages").iterdir()} == {"legacy", "mlir,negate=legacy"}
    assert any(p.suffix == ".s" for p in (folder / "stages/legacy").iterdir())
    program = load_program(str(folder))
    assert program.expected is not None and program.expected[0].tobytes() == (-X[0]).tobytes()


def test_the_command_repeats_each_mixture(tmp_path):
    case = finding_of(MODULE, X, found())
    (line,) = findings.rerun_of(case, tmp_path / "a b").splitlines()
    assert line == f"./testbed diff '{tmp_path}/a b' --stacks evaluator,legacy,mlir --emitters mlir,negate=legacy"


def test_what_diff_has_no_option_for_is_repeated_by_bisect(tmp_path):
    case = finding_of(MODULE, X, found(), setting=Setting(optimized=False))
    folder = write_finding(tmp_path / "f", case)
    assert (folder / "rerun").read_text() == f"./testbed bisect {folder}\n"
    assert not read_finding(folder).setting.optimized and "optimized=False" in (folder / "test_case.py").read_text()


def test_the_command_and_the_case_keep_the_checking_mode(tmp_path):
    case = finding_of(MODULE, X, found(), setting=Setting(memory=True))
    folder = write_finding(tmp_path / "f", case)
    lines = (folder / "rerun").read_text().splitlines()
    assert lines and all(line.endswith(" --debug memory") for line in lines)
    assert read_finding(folder).setting.memory and "memory=True" in (folder / "test_case.py").read_text()
    case = findings.replace(case, setting=Setting(memory=True, optimized=False))
    assert findings.rerun_of(case, folder) == f"./testbed bisect {folder}  # in the checking mode, as case.json says"


def test_the_unit_test_fails_until_it_is_mended(tmp_path):
    """Its verdict is that of the stacks, not what is written in the folder."""
    healthy = finding_of(MODULE, X, found())
    broken = findings.replace(healthy, text=TEXT.replace("bf16[4] negate", "bf16[5] negate"))
    for case, status in ((healthy, 0), (broken, 1)):
        file = tmp_path / f"test_{status}.py"
        file.write_text(findings.unit_test(case))
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", str(file)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert run.returncode == status, run.stdout + run.stderr


@pytest.mark.parametrize("x", [
    np.array([1.5, -0.0], np.float32),
    np.zeros((0, 3), np.int8),
    np.array(True),
    np.full((2, 3), 7, np.uint64),
    np.full(3, -0.0, np.float64),
    np.array([1 + 2j], np.complex64),
    np.array([np.nan, 1], np.float16),
    np.array([[1, 2]], ml_dtypes.bfloat16),
    np.array([1, -2], ml_dtypes.int4),
], ids=str)  # fmt: skip
def test_arrays_are_python(x):
    again = eval(array_text(x), {"np": np, "ml_dtypes": ml_dtypes})
    assert (again.dtype, again.shape, again.tobytes()) == (x.dtype, x.shape, x.tobytes())


def test_a_stack_that_fails_has_its_error_as_stage(monkeypatch):
    def fail(*_):
        raise KeyError("x")

    monkeypatch.setattr(findings, "compile_module", fail)
    assert stages_of(MODULE, "legacy") == (("error.txt", "KeyError: 'x'\n"),)


def test_stages_come_from_a_child():
    with Child() as child:
        stages = child.call(stages_of, MODULE, "mlir")
    assert [name for name, _ in stages][-1].endswith(".s")


def test_a_program_is_a_case_with_inputs_of_a_seed():
    one, other = (case_of(Program("m", TEXT, MODULE), seed=seed) for seed in (None, 1))
    assert one.seed == 0 and other.seed == 1 and one.inputs[0].tobytes() != other.inputs[0].tobytes()
    given = case_of(Program("m", TEXT, MODULE, tuple(X)))
    assert given.seed is None and given.inputs[0] is X[0] and given.kind is None


@pytest.mark.parametrize("change, message", [
    (lambda d: d.pop("stacks"), "not a case"),
    (lambda d: d.update(kind="odd"), "not a case"),
    (lambda d: d.update(schema=99), "schema 99"),
    (lambda d: d.update(setting={"speed": 1}), "not a case"),
    (None, "case.json is missing"),
])  # fmt: skip
def test_a_damaged_finding_is_one_line(tmp_path, change, message):
    folder = write_finding(tmp_path / "f", finding_of(MODULE, X, found()), stages={})
    file = folder / "case.json"
    if change is None:
        file.unlink()
    else:
        stored = json.loads(file.read_text())
        change(stored)
        file.write_text(json.dumps(stored))
    with pytest.raises(InputError, match=message):
        read_finding(folder)


def test_lhlo_is_no_case():
    program = Program("m", TEXT, MODULE, plan=object())
    with pytest.raises(InputError, match="LHLO"):
        case_of(program)


def test_an_outcome_becomes_a_finding():
    result = outcome(MODULE, X, ["evaluator", "legacy"])
    assert finding_of(MODULE, X, result).kind is OutcomeKind.AGREE
