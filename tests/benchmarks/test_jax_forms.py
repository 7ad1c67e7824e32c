"""The small programs of the sweep are right on both stacks: one of twenty, or with --deep all."""

import zlib

import pytest

from ...benchmarks.sweep import jax_forms
from ..support.check import check, parsed
from ..support.inputs import make_inputs
from ..support.sweeps import check_command

FINITE = ("cumprod from the end", "s32 mean of rows", "s64 mean of rows")
"""Of infinities and the largest integers, these depend on the order of operations, which HLO leaves open."""


def sampled(name):
    often = zlib.crc32(name.encode()) % 20 == 0 and "cummax 65536" not in name  # half a minute of the evaluator
    return pytest.param(name, marks=() if often else pytest.mark.deep)


@pytest.mark.parametrize("name", [sampled(n) for n in jax_forms.PROGRAMS])
def test_values(name):
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    text = jax_forms.PROGRAMS[name]()
    check(text, make_inputs(parsed(text), 0) if any(part in name for part in FINITE) else None)


def test_each_program_is_of_its_element_type():
    pytest.importorskip("jax", reason="needs ./testbed setup --xla")
    for dtype in (*jax_forms.FLOATS, *jax_forms.INTEGERS):
        name = "hash" if dtype in jax_forms.INTEGERS else "gelu"
        assert f"({dtype}[" in jax_forms.PROGRAMS[f"{dtype} {name}"]()


def test_the_command_takes_its_own_programs(monkeypatch, capsys):
    check_command("forms", "game of life", monkeypatch, capsys)
