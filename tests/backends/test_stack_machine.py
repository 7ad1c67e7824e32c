"""The back end of the tutorial passes the conformance suite for what it declares, and stays small."""

from pathlib import Path

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.conformance import BackendConformance
from ...backends.registry import register_platform, unregister_platform
from ...examples.stack_machine import NAME, StackMachine, code_of
from ...formats.text.parser import parse_module
from ...hlo.errors import OutOfMemoryError

FILE = Path(__file__).parents[2] / "examples/stack_machine.py"


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_platform(NAME, StackMachine)
    yield
    unregister_platform(NAME)


class TestStackMachine(BackendConformance):
    platform = NAME
    programs = frozenset({"negate", "arithmetic", "empty", "scalar", "passed through", "layouts", "exponential"})


def test_it_is_a_tutorial():
    assert len(FILE.read_text().splitlines()) <= 300


def test_code_is_what_the_guide_shows():
    module = parse_module("HloModule m\nENTRY e { x = f32[3] parameter(0)\n ROOT n = f32[3] negate(x) }")
    assert code_of(module).words == (("load", 0), ("pick", 0), ("negate", None), ("pick", 1), ("store", 1))


def test_memory_comes_back_and_ends():
    device = StackMachine().executor()
    blocks = [device.allocate(1 << 18) for _ in range(4)]
    with pytest.raises(OutOfMemoryError, match="262,144 bytes"):
        device.allocate(1 << 18)
    for block in blocks:
        device.deallocate(block)
    assert device.allocate(1 << 20).size == 1 << 20


def test_constants_and_tuples():
    text = "ENTRY e { c = f32[] constant(2)\n x = f32[] parameter(0)\n y = f32[] multiply(x, c)\n k = f32[] copy(y)\n"
    module = parse_module(f"HloModule m\n{text} n = f32[] negate(k)\n ROOT t = (f32[], f32[], f32[]) tuple(n, c, k) }}")
    machine = StackMachine()
    results = machine.compiler().compile(module, None, CompileOptions(cache=None)).execute([np.float32(3)])
    assert [float(r) for r in results] == [-6, 2, 6]
