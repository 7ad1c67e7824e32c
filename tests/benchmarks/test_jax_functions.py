"""The functions of the sweep are right on both stacks, with transposes that are large enough to be read in tiles."""

import pytest

from ...benchmarks.sweep import jax_functions
from ..support.check import check
from ..support.sweeps import check_command

SIDE = 144


@pytest.mark.parametrize("name", jax_functions.FUNCTIONS)
def test_values(name):
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    check(jax_functions.hlo_text(jax_functions.FUNCTIONS[name], SIDE))


def test_the_command_takes_its_own_programs(monkeypatch, capsys):
    check_command("functions", "x + xT 1024", monkeypatch, capsys)
