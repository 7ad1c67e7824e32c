"""The programs of the sweep are right on both stacks."""

import pytest

from ...benchmarks.sweep import applications
from ..support.check import check
from ..support.sweeps import check_command

GROWING = {
    "gru",
    "gru_gradient",
    "inverted_residual",
    "inverted_residual_gradient",
    "lattice_boltzmann",
    "particle_filter",
}
GROWING |= {"page_rank", "rotated", "spheres"}
"""Drawn numbers let a rounding grow: weights of many units, variances of two numbers, rates that are negative, places
of hundreds whose fractions are weights.
"""

SIGNS = {"beam"}
"""The order of NaNs depends on their signs, which nothing specifies where they come from inf - inf."""

SLOW = {"nucleus", "running_mean"}
"""The evaluator takes four seconds."""


@pytest.mark.parametrize("name", [n for n in applications.APPLICATIONS if n not in GROWING | SIGNS | SLOW])
def test_values(name):
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    check(applications.PROGRAMS[name]())


def test_the_command_takes_its_own_programs(monkeypatch, capsys):
    check_command("applications", "blur", monkeypatch, capsys)
