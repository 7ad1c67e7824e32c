"""One test per opcode (133): small inputs, with results computed by hand or by Python's math."""

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.opcodes import Op
from ..cases.opcode_case import ADD, GE
from ..cases.opcode_cases_arrays import ELEMENTWISE_CASES, LINALG, MOVEMENT, REGIONS
from ..cases.opcode_cases_world import CONTROL, ONE_DEVICE, RANDOM

CASES = ELEMENTWISE_CASES | MOVEMENT | REGIONS | LINALG | CONTROL | RANDOM | ONE_DEVICE


def test_each_opcode_has_a_case():
    assert set(CASES) == set(Op)


@pytest.mark.parametrize("opcode", CASES, ids=lambda o: o.value)
def test_opcode(opcode: Op):
    case = CASES[opcode]
    module = parse_module(
        f"HloModule m\n{ADD}{GE}{'' if case.computations == ADD else case.computations}\nENTRY e {{\n{case.body}\n}}\n"
    )
    assert opcode in {i.opcode for i in module.instructions()}
    leaves = [leaf for shape in module.parameter_shapes for _, leaf in shape.leaves()]
    inputs = [np.array(value).astype(leaf.dtype.numpy) for value, leaf in zip(case.inputs, leaves, strict=True)]
    results = evaluate(module, inputs, **case.options)
    wanted = [leaf for _, leaf in module.result_shape.leaves() if leaf.is_array]
    assert len(results) == len(case.results)
    for result, expected, leaf in zip(results, case.results, wanted, strict=True):
        assert result.dtype == leaf.dtype.numpy
        wide = np.complex128 if leaf.dtype.is_complex else np.float64
        np.testing.assert_allclose(result.astype(wide), np.array(expected, wide), rtol=1e-14, atol=1e-15)
        assert result.shape == np.shape(expected)


def test_rng_normal_has_its_mean_and_deviation():
    module = parse_module(
        "HloModule m\nENTRY e {\na = f32[] constant(3)\nb = f32[] constant(2)\n"
        "ROOT r = f32[20000] rng(a, b), distribution=rng_normal\n}\n"
    )
    (x,) = evaluate(module, [])
    assert abs(x.mean() - 3) < 0.1 and abs(x.std() - 2) < 0.1  # seven standard errors of the mean


def test_stochastic_convert_rounds_up_as_often_as_the_distance_says():
    text = (
        "HloModule m\nENTRY e {\np = f32[65536] parameter(0)\nb = u16[65536] parameter(1)\n"
        "ROOT r = bf16[65536] stochastic-convert(p, b)\n}\n"
    )
    x = np.full(65536, 1 + 0.25 / 128, np.float32)  # a quarter of the way to the next bf16
    (y,) = evaluate(parse_module(text), [x, np.arange(65536, dtype=np.uint16)])
    assert (y.astype(np.float32) > 1).sum() == 65536 // 4
