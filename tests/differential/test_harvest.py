"""differential/harvest.py: kernels of programs, each once, with shares of time and rows; kernels as modules."""

import numpy as np
import pytest

from ...differential.harvest import harvest, weights_of
from ...differential.kernel_module import kernel_module
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.errors import InputError
from ...hlo.verify.verifier import verify
from ...migration.api import evaluate
from ...migration.ledger import judge, new_ledger
from ...migration.weights import Weights, migrated, read_weights, share_of, write_weights
from ..support.ledgers import GOOD

LOOP = """HloModule loop

cond { p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }

body { p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[64] sine(x)
  ROOT r = (s32[], f32[64]) tuple(j, y) }

ENTRY e { x = f32[64] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[64]) tuple(z, x)
  ROOT w = (s32[], f32[64]) while(t), condition=cond, body=body }
"""
DOT = """HloModule {0}

ENTRY e {{ {0} = f32[8,8] parameter(0)
  ROOT r = f32[8,8] dot({0}, {0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}
"""


def program(text):
    module = parse_module(text)
    return Program(module.name, text, module)


def test_equal_kernels_are_one_and_programs_count_alike():
    kernels = {}
    for text in (DOT.format("a"), DOT.format("b"), LOOP):
        harvest(program(text), kernels)
    dots = [kernel for kernel in kernels.values() if kernel.rows == ("dot.float.host",)]
    assert len(dots) == 1 and list(dots[0].programs) == ["a", "b"] and dots[0].share == pytest.approx(2)
    assert sum(kernel.share for kernel in kernels.values()) == pytest.approx(3)
    weights = weights_of(kernels)
    assert (weights.programs, weights.kernels) == (3, len(kernels))
    assert sum(weights.shares.values()) == pytest.approx(1)
    assert share_of(weights, "dot.float.host") == pytest.approx(2 / 3)
    assert share_of(weights, "elemental.float.host") > 0  # inside the loop


def test_a_kernel_is_a_module_of_its_own():
    kernels = {}
    harvest(program(DOT.format("a")), kernels)
    (kernel,) = kernels.values()
    verify(kernel.module)
    again = parse_module(print_module(kernel.module))
    x = np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)
    assert evaluate(again, [x])[0].tolist() == evaluate(parse_module(DOT.format("a")), [x])[0].tolist()


def test_a_fusions_body_is_its_module():
    text = "HloModule m\nf { x = f32[4] parameter(0)\n ROOT y = f32[4] tanh(x) }\nENTRY e { p = f32[4] parameter(0)\n"
    text += " ROOT r = f32[4] fusion(p), kind=kLoop, calls=f }\n"
    assert kernel_module(parse_module(text).entry.root).entry.name == "f"


def test_an_operand_that_a_kernel_has_twice_is_one_parameter():
    text = "HloModule m\nENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[4] multiply(p, p) }\n"
    made = kernel_module(parse_module(text).entry.root)
    verify(made)
    assert evaluate(made, [np.full(4, -3, np.float32)])[0].tolist() == [9] * 4


def test_a_kernel_that_waits_for_another_is_a_module_without_it():
    text = "HloModule m\nENTRY e { p = f32[4] parameter(0)\n a = f32[4] tanh(p)\n b = f32[4] add(p, p)"
    text += ", control-predecessors={a}\n ROOT r = f32[4] multiply(a, b) }\n"
    made = kernel_module(parse_module(text).entry.instructions[2])
    verify(made)
    assert evaluate(made, [np.ones(4, np.float32)])[0].tolist() == [2] * 4


def test_weights_round_trip_and_damage_is_named(tmp_path):
    weights = Weights(2, 3, {"": 0.25, "dot.float.host": 0.5, "dot.float.host reduce.float.host": 0.25})
    path = tmp_path / "w.toml"
    write_weights(path, weights)
    assert read_weights(path) == weights
    for text in ("[shares", "programs = 1", 'programs = 1\nkernels = 1\n[shares]\na = "x"\n', "shares = 1"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"w.toml: no weights"):
            read_weights(path)


def test_what_has_migrated():
    weights = Weights(2, 3, {"": 0.25, "dot.float.host": 0.5, "dot.float.host reduce.float.host": 0.25})
    ledger = new_ledger()
    assert migrated(weights, ledger) == 0
    ledger = judge(ledger, "dot.float", GOOD)
    assert migrated(weights, ledger) == 0.5
    assert migrated(weights, judge(ledger, "reduce.float", GOOD)) == 0.75
    assert share_of(weights, "reduce.float.host") == 0.25


def test_the_packages_own_weights_are_whole():
    weights = read_weights()
    assert weights.programs > 0 and sum(weights.shares.values()) == pytest.approx(1, abs=0.01)
    assert {name for rows in weights.shares for name in rows.split()} <= new_ledger().rows.keys()
