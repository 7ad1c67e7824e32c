"""Sums of arrays that repeat: a broadcast may have more elements than memory."""

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ..support.check import check

REGION = """s {{ a = {0}[] parameter(0)
  b = {0}[] parameter(1)
  ROOT r = {0}[] {1}(a, b) }}
"""


def program(dtype: str, opcode: str, dims: str, source: str, at: str, over: str, kept: str, start: str) -> str:
    return f"""HloModule m
{REGION.format(dtype, opcode)}ENTRY e {{ x = {dtype}[{source}] parameter(0)
  b = {dtype}[{dims}] broadcast(x), dimensions={{{at}}}
  z = {dtype}[] constant({start})
  ROOT w = {dtype}[{kept}] reduce(b, z), dimensions={{{over}}}, to_apply=s }}"""


@pytest.mark.parametrize(
    ("dtype", "opcode", "start", "wanted"),
    [
        ("f32", "add", "1", 5e9 + 1),
        ("bf16", "add", "0", 5e9),
        ("f64", "add", "0", 5e9),
        ("f32", "multiply", "3", 0.0),
        ("f32", "maximum", "-inf", 0.5),
        ("bf16", "minimum", "inf", 0.5),
    ],
)
def test_a_number_more_often_than_memory_holds(dtype, opcode, start, wanted):
    module = parse_module(program(dtype, opcode, "100000,100000", "", "", "0,1", "", start))
    x = np.asarray(0.5, module.entry.parameters[0].shape.dtype.numpy)
    (result,) = evaluate(module, [x])
    assert result == x.dtype.type(wanted)


def test_the_stacks_agree_on_it():
    check(program("f32", "add", "100000,1000", "", "", "0,1", "", "0"), [np.float32(0.5)])


@pytest.mark.parametrize("dtype", ["f32", "f16", "c64"])
@pytest.mark.parametrize(
    ("at", "over", "kept"), [("0", "1", "40"), ("1", "1", "40"), ("1", "0,1", ""), ("0", "0", "3000")]
)
def test_rows_and_columns_that_repeat(dtype, at, over, kept):
    """Against the same array written out, which does not repeat."""
    length = 40 if at == "0" else 3000
    text = program(dtype, "add", "40,3000", str(length), at, over, kept, "2" if dtype != "c64" else "(2, 1)")
    module = parse_module(text)
    x = np.random.default_rng(1).random(length).astype(module.entry.parameters[0].shape.dtype.numpy)
    (result,) = evaluate(module, [x])
    full = np.broadcast_to(x[:, None] if at == "0" else x[None, :], (40, 3000)).astype(np.complex128)
    wanted = full.sum(axis=tuple(int(d) for d in over.split(","))) + (2 if dtype != "c64" else 2 + 1j)
    limit = 2e-3 if dtype == "f16" else 1e-6
    assert np.all(np.abs(result.astype(np.complex128) - wanted) <= limit * np.abs(wanted))
