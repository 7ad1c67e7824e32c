"""The benchmark of loops over tables: each loop is a module, and what is not linear is told."""

import pytest

from ...benchmarks import table_loops
from ...benchmarks.table_loops import FACTORS, Slope, main
from ...benchmarks.table_programs import TABLE_LOOPS, inputs_of
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify


@pytest.mark.parametrize("loop", TABLE_LOOPS, ids=lambda loop: loop.name)
def test_each_loop_is_a_module_with_inputs(loop):
    module = parse_module(loop.text(9))
    verify(module)
    assert [x.shape for x in inputs_of(loop, 9)] == [shape.dims for shape in module.parameter_shapes]


def test_loops_are_many_and_have_names():
    assert len({loop.name for loop in TABLE_LOOPS}) == len(TABLE_LOOPS) >= 20


def test_a_line_for_each_loop_and_what_is_not_linear(monkeypatch, capsys):
    times = {"legacy": 4.0, "mlir": 16.0, "xla": 30.0}
    made = lambda loop, stack, length: Slope(tuple(1e-3 * times[stack] ** (f / 4) for f in FACTORS))  # noqa: E731
    monkeypatch.setattr(table_loops, "measure", made)
    assert main(["a knapsack", "branch", "--most", "5"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["a", "branch"] and lines[2].startswith("a knapsack") and len(lines) == 5
    assert lines[3:] == ["not linear: a branch that writes on mlir", "not linear: a knapsack on mlir"]
    assert main(["a knapsack", "--most", "9", "--stacks", "legacy,xla"]) == 0


def test_it_runs(capsys):
    assert main(["element from the one", "--length", "8", "--stacks", "legacy", "--most", "1e9"]) == 0
    assert "element from the one before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"), [(["none"], "no loop is named 'none'"), (["--stacks", "x"], "no stack x"),
                               (["--length", "2"], "at least 8 rows")]
)  # fmt: skip
def test_what_cannot_be_measured(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err
