"""The functions of the sweep are right on both stacks: a sixth of them, or with --deep all."""

import zlib

import pytest

from ...benchmarks.sweep import jax_api
from ..support.check import check
from ..support.sweeps import check_command

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
    check_command("api", "interp", monkeypatch, capsys)
