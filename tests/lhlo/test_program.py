"""Whole programs as LHLO: golden text, round trips, control flow, constants in every layout."""

import importlib.util
import subprocess
from pathlib import Path

import numpy as np

from ...formats.text.parser import parse_module
from ...hlo.ir import Literal
from ...hlo.shapes import array
from ...lhlo import from_plan, parse_bytecode, parse_text
from ...lhlo.from_plan import in_memory_order
from ...planning.plan import KernelStep
from ...planning.planner import plan
from ..support.corpus import sample
from ..support.lhlo_requests import assert_program_kernels
from ..support.passes import AS_WRITTEN

HERE = Path(__file__).parents[1]


def test_kernels_of_a_program():
    rules = HERE / "golden/lhlo_loop.hlo"
    program = plan(parse_module(rules.read_text(), rules.name))
    assert_program_kernels(program, from_plan(program))


def file_check() -> Path:
    spec = importlib.util.find_spec("llvm")
    assert spec is not None and spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations))) / "bin/FileCheck"


def check(text: str, rules: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([file_check(), rules], input=text, capture_output=True, text=True, check=False)


def test_golden_loop():
    rules = HERE / "golden/lhlo_loop.hlo"
    text = from_plan(plan(parse_module(rules.read_text(), rules.name))).to_text()
    done = check(text, rules)
    assert done.returncode == 0, done.stderr + text
    broken = check(text.replace('"lhlo.exponential"', '"lhlo.tanh"'), rules)
    assert broken.returncode == 1 and "lhlo.exponential" in broken.stderr


def test_conditional():
    text = """HloModule m
a { x = f32[4]{0} parameter(0)
  ROOT y = f32[4]{0} negate(x) }
b { x = f32[4]{0} parameter(0)
  ROOT y = f32[4]{0} abs(x) }
ENTRY e { i = s32[] parameter(0)
  x = f32[4]{0} parameter(1)
  ROOT c = f32[4]{0} conditional(i, x, x), branch_computations={a, b} }"""
    made = from_plan(plan(parse_module(text), AS_WRITTEN))
    assert made.to_text().count('"lhlo.branch"') == 2
    assert '}) {name = "c"} : (memref<i32>) -> ()' in made.to_text()
    assert parse_text(made.to_text()).to_text() == made.to_text()


def test_complex_constant_is_held_by_its_parts():
    text = """HloModule m
ENTRY e { x = c64[2]{0} parameter(0)
  k = c64[2]{0} constant({(1, -0), (nan, inf)})
  ROOT y = c64[2]{0} add(x, k) }"""
    made = from_plan(plan(parse_module(text))).to_text()
    assert "memref<2x2xf32> = dense<[[1.000000e+00, -0.000000e+00], [0x7FC00000, 0x7F800000]]>" in made
    assert "(memref<2x2xf32>) -> memref<2xcomplex<f32>>" in made
    assert parse_text(made).to_text() == made


def test_constants_lie_in_the_order_of_their_layout():
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    shape = array(
        parse_module("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }").result_shape.dtype, 2, 3
    ).with_layout((0, 1))
    stored = in_memory_order(Literal(shape, value))
    assert stored.shape.dims == (3, 2) and stored.array.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_corpus_programs_round_trip():
    for path in sample("jax_programs/*/module.hlo", 3, seed=3):
        program = plan(parse_module(path.read_text(), str(path)))
        made = from_plan(program)
        text = made.to_text()
        assert parse_text(text).to_text() == text
        assert parse_bytecode(made.to_bytecode()).to_text() == text
        steps = [s for s in program.walk() if isinstance(s, KernelStep)]
        assert text.count("kernel = ") == len(steps)
        assert_program_kernels(program, made)
