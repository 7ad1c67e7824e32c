"""Maxima and roundings of f16 between other operations: LLVM computes them in f16 where it can, by elements or by many
instructions: 3 to 5 ms for 2¹⁸ elements instead of 0.03.
"""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed

S = "f16[65536]"
STEPS = {
    "clamp": (3, f"ROOT r = {S} clamp(p0, p1, p2)"),
    "two clamps": (3, f"a = {S} clamp(p0, p1, p2)\n  ROOT r = {S} clamp(p2, a, p0)"),
    "three maxima": (3, f"a = {S} maximum(p0, p1)\n  b = {S} minimum(a, p2)\n  ROOT r = {S} maximum(b, p0)"),
    "floor": (1, f"a = {S} floor(p0)\n  ROOT r = {S} maximum(a, p0)"),
    "roundings": (1, f"a = {S} ceil(p0)\n  b = {S} round-nearest-even(a)\n  ROOT r = {S} round-nearest-afz(b)"),
}


def module(count: int, lines: str) -> str:
    parameters = "\n  ".join(f"p{n} = {S} parameter({n})" for n in range(count))
    return f"HloModule m\n\nENTRY e {{\n  {parameters}\n  {lines}\n}}\n"


@pytest.mark.parametrize("step", STEPS)
def test_every_number(step):
    """All of f16, subnormals and NaN among them, against all in two other orders."""
    count, lines = STEPS[step]
    numbers = np.arange(1 << 16, dtype=np.uint16)
    orders = [numbers, numbers[::-1], (numbers * np.uint16(40_503)).astype(np.uint16)]
    check(module(count, lines), [x.copy().view(np.float16) for x in orders[:count]], ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("step", STEPS)
def test_they_are_vectors(step, stack, level):
    options = EmitOptions(Target.level(level))
    text = optimize(emitter(stack).emit(plan(parsed(module(*STEPS[step]))).kernels, options).llvm_ir, options)
    assert not re.search(r"@llvm\.(?:maximum|minimum)\.", text)
    assert re.search(r"= load <\d+ x (?:half|i16)>", text)
    if step != "roundings":
        assert re.search(r"@llvm\.smax\.v\d+i16\(", text)
