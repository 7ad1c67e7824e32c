"""Reductions of nothing are what they begin with, whichever dimension is empty, in every layout, on both stacks; those
over no dimension combine each element with it.
"""

from itertools import combinations, permutations

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import PipelineOptions
from ...planning.planner import PlanOptions, plan
from ..support.check import check, make_inputs

WRITTEN = PlanOptions(PipelineOptions(("flatten", "layouts")))
REDUCED = [dims for n in (1, 2, 3) for dims in combinations(range(3), n)]


@pytest.mark.parametrize("dtype", ["f32", "s32"])
@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("sizes", [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 3, 0)], ids=str)
def test_every_layout_and_every_choice_of_dimensions(sizes, op, dtype):
    shape = f"{dtype}[{','.join(map(str, sizes))}]"
    lines, results, shapes = [f"z = {dtype}[] constant(7)"], [], []
    for n, layout in enumerate(permutations(range(3))):
        lines.append(f"x{n} = {shape}{{{','.join(map(str, layout))}}} parameter({n})")
        for reduced in REDUCED:
            name, dims = f"r{len(results)}", ",".join(map(str, reduced))
            kept = ",".join(str(sizes[d]) for d in range(3) if d not in reduced)
            lines.append(f"{name} = {dtype}[{kept}] reduce(x{n}, z), dimensions={{{dims}}}, to_apply=op")
            results.append(name)
            shapes.append(f"{dtype}[{kept}]")
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({', '.join(results)})")
    region = f"op {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] {op}(a, b) }}\n"
    body = "\n  ".join(lines)
    check(f"HloModule m\n{region}ENTRY e {{\n  {body}\n}}\n", None, ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s32", "c64"])
@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("shape", ["", "1", "5", "1,1,3,1"])
def test_a_reduction_over_no_dimension(shape, op, dtype):
    """As passes leave it where all reduced dimensions have one element."""
    if dtype == "c64" and op == "maximum":
        op = "multiply"
    whole = f"{dtype}[{shape}]"
    text = f"""HloModule m
op {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT r = {dtype}[] {op}(a, b) }}
ENTRY e {{ x = {whole} parameter(0)
  z = {dtype}[] constant({"(7, 0)" if dtype == "c64" else 7})
  n = {whole} negate(x)
  r = {whole} reduce(n, z), dimensions={{}}, to_apply=op
  ROOT s = {whole} add(r, x) }}
"""
    module = parse_module(text)
    inputs = make_inputs(module, 3)
    expected = evaluate(module, inputs)
    for stack in ("legacy", "mlir"):
        row = emitter(stack)
        found = HostCompiler().compile(plan(module, WRITTEN), lambda _, row=row: row, CompileOptions()).execute(inputs)
        np.testing.assert_array_equal(found[0], expected[0])
