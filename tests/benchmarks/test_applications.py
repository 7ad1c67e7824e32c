"""The programs of the sweep are right on both stacks."""

import pytest

from ...benchmarks import applications, op_shapes
from ..support.check import check

GROWING = {
    "gru",
    "gru_gradient",
    "inverted_residual",
    "inverted_residual_gradient",
    "lattice_boltzmann",
    "particle_filter",
}
GROWING |= {"page_rank", "spheres"}
"""Drawn numbers let a rounding grow: weights of many units, variances of two numbers, rates that are negative."""

SIGNS = {"beam"}
"""The order of NaNs depends on their signs, which nothing specifies where they come from inf - inf."""

SLOW = {"nucleus", "running_mean"}
"""The evaluator takes four seconds."""


@pytest.mark.parametrize("name", [n for n in applications.APPLICATIONS if n not in GROWING | SIGNS | SLOW])
def test_values(name):
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    check(applications.PROGRAMS[name]())


def test_the_command_takes_its_own_programs(monkeypatch, capsys):
    seen = []
    times = {"xla": 100.0, "legacy": 90.0, "mlir": 210.0}
    monkeypatch.setattr(op_shapes, "measure", lambda *given: seen.append(given[-1]) or times)
    monkeypatch.setattr(op_shapes, "installed", lambda: True)
    monkeypatch.setitem(applications.PROGRAMS, "blur", lambda: "")
    assert applications.main(["--only", "^blur$", "--threads", "1"]) == 1
    assert "1 programs, 1 above 2 times XLA's time" in capsys.readouterr().out
    assert seen == [256]
