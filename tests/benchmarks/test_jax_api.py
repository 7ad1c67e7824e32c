"""The functions of the sweep are right on both stacks: a sixth of them, or with --deep all."""

import zlib

import pytest

from ...benchmarks import jax_api, op_shapes
from ..support.check import check

GROWING = {"adam", "ndimage.map_coordinates", "special.logsumexp"}
"""Drawn numbers let a rounding grow: a difference of near numbers, below a root or beside a floor."""

FLUSHED = {"nn.hard_tanh"}
"""A selection that is a clamp to both stacks and XLA, which flushes subnormals; the evaluator's does not."""


SLOW = {"special.exp1"}
"""The evaluator takes minutes for its loops."""


def sampled(name):
    return pytest.param(name, marks=() if zlib.crc32(name.encode()) % 6 == 0 else pytest.mark.deep)


@pytest.mark.parametrize("name", [sampled(n) for n in jax_api.PROGRAMS if n not in GROWING | FLUSHED | SLOW])
def test_values(name):
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    check(jax_api.PROGRAMS[name]())


def test_the_command_takes_its_own_programs(monkeypatch, capsys):
    seen = []
    times = {"xla": 100.0, "legacy": 90.0, "mlir": 210.0}
    monkeypatch.setattr(op_shapes, "measure", lambda *given: seen.append(given[-1]) or times)
    monkeypatch.setattr(op_shapes, "installed", lambda: True)
    monkeypatch.setitem(jax_api.PROGRAMS, "interp", lambda: "")
    assert jax_api.main(["--only", "^interp$", "--threads", "1"]) == 1
    assert "1 programs, 1 above 2 times XLA's time" in capsys.readouterr().out
    assert seen == [256]
