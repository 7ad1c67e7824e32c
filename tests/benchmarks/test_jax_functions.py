"""The functions of the sweep are right on both stacks, with transposes that are large enough to be read in tiles."""

import pytest

from ...benchmarks import jax_functions, op_shapes
from ..support.check import check

SIDE = 144


@pytest.mark.parametrize("name", jax_functions.FUNCTIONS)
def test_values(name):
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    check(jax_functions.hlo_text(jax_functions.FUNCTIONS[name], SIDE))


def test_the_command_takes_its_own_programs(monkeypatch, capsys):
    monkeypatch.setattr(op_shapes, "measure", lambda *rest: {"xla": 100.0, "legacy": 90.0, "mlir": 210.0})
    monkeypatch.setattr(op_shapes, "installed", lambda: True)
    monkeypatch.setitem(jax_functions.PROGRAMS, "x + xT 1024", lambda: "")
    assert jax_functions.main(["--only", "^x . xT 1024$", "--threads", "1"]) == 1
    assert "1 programs, 1 above 2 times XLA's time" in capsys.readouterr().out
