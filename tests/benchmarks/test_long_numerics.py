"""The table of long numerics: its programs are right, and it judges by the limit."""

import json

import numpy as np
import pytest

from ...benchmarks.long import numerics as long_numerics
from ...benchmarks.long.cases import Case, LongProgram
from ...benchmarks.long.numerics import Line, error_of, limit_of, main, measure, row
from ...benchmarks.long.programs import PROGRAMS

TOLERANCE = {"bf16": 0.3, "f16": 0.1}
"""Short sums of narrow floats are rounded in each step."""


def _one(n: int, g: np.random.Generator) -> Case:
    """A program whose result is 1 and should be 2."""
    return Case("HloModule m\nENTRY e { ROOT c = f32[] constant(1) }", (), lambda: np.asarray(2.0))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_exact_result_is_the_evaluators(name):
    line = measure(PROGRAMS[name], 10, ["evaluator"], seed=1)
    (error,) = line.errors.values()
    assert error <= next((limit for dtype, limit in TOLERANCE.items() if name.startswith(dtype)), 1e-5)
    assert not line.failures


def test_an_error_is_relative_to_the_element_or_to_the_largest():
    exact, found = np.array([1.0, 100.0]), np.array([1.01, 100.0], np.float32)
    assert error_of(found, exact, whole=False) == pytest.approx(0.01)
    assert error_of(found, exact, whole=True) == pytest.approx(0.0001)
    assert error_of(np.array([np.nan, 1.0], np.float32), exact, whole=True) == np.inf


def test_the_limit_is_twice_xlas_error_and_at_least_2e_7():
    free, fixed = (LongProgram("p", _one, in_order=in_order) for in_order in (False, True))
    assert limit_of(free, 1e-9, np.dtype(np.float32)) == limit_of(free, None, np.dtype(np.float32)) == 2e-7
    assert limit_of(fixed, 3e-5, np.dtype(np.float32)) == 6e-5
    assert limit_of(free, None, np.dtype(np.float16)) == np.finfo(np.float16).eps
    assert limit_of(fixed, None, np.dtype(np.float32)) is None


def test_a_line_above_the_limit_is_named_and_so_is_a_failure():
    line = Line("p", 20, {"legacy": 3e-7, "xla": 1e-8}, 2e-7, {"mlir": "not supported"})
    assert line.above == ["legacy", "mlir"]
    text = row(line, ["legacy", "mlir", "xla"])
    assert "above: legacy, mlir" in text and "failed" in text and "[mlir: not supported]" in text
    assert row(Line("p", 20, {"legacy": 3e-7}, None, {}), ["legacy"]).endswith("not judged")


def test_the_command_prints_writes_and_judges(tmp_path, capsys, monkeypatch):
    path = tmp_path / "lines.json"
    arguments = ["--max-log2", "11", "--only", "sum x²", "--stacks", "legacy", "--no-xla", "--json", str(path)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "without XLA's errors" in out and "3 programs, 6 lines, 0 above the limit" in out
    assert [(line["program"], line["log2"]) for line in json.loads(path.read_text())][:2] == [
        ("sum x²", 10),
        ("sum x²", 11),
    ]
    monkeypatch.setattr(long_numerics, "SMALLEST", 0.0)
    wrong = LongProgram("wrong", _one)
    monkeypatch.setattr(long_numerics, "PROGRAMS", {"wrong": wrong})
    assert main(["--max-log2", "10", "--stacks", "legacy", "--no-xla"]) == 1
    assert "above: legacy" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--max-log2", "28"], ["--only", "nothing like it"], ["--stacks", "gpu"]])
def test_bad_arguments_end_in_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]
