"""Properties that both stacks share: the sequence of thunks, the kernels' names, and the kernel ABI."""

import re

import pytest

from ...backends.base import CompileOptions
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...planning.scratch import COUNTS

TEXT = """HloModule m
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
body {
  t = (s32[], f32[6]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[6] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[6] sine(v)
  ROOT r = (s32[], f32[6]) tuple(j, w)
}
condition {
  t = (s32[], f32[6]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(1000)
  ROOT p = pred[] compare(i, n), direction=LT
}
less {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT p = pred[] compare(x, y), direction=LT
}
ENTRY e {
  p = f32[6,5] parameter(0)
  q = f32[6,5] parameter(1)
  m = f32[6,5] multiply(p, q)
  zero = f32[] constant(0)
  s = f32[6] reduce(m, zero), dimensions={1}, to_apply=add
  start = s32[] constant(0)
  t = (s32[], f32[6]) tuple(start, s)
  u = (s32[], f32[6]) while(t), condition=condition, body=body
  v = f32[6] get-tuple-element(u), index=1
  wide = f32[6,2000] broadcast(v), dimensions={0}
  sorted = f32[6,2000] sort(wide), dimensions={1}, to_apply=less
  ROOT r = f32[6] reduce(sorted, zero), dimensions={1}, to_apply=add
}
"""


@pytest.fixture(scope="module")
def stages() -> dict[str, dict[str, str]]:
    """Stack → name of the stage, without the stack's name and number → text."""
    found = {}
    for stack in ("legacy", "mlir"):
        options = CompileOptions(cache=None, keep_stages=True)
        texts = compile_module(parse_module(TEXT), Flags.parse(stack), options).stages
        found[stack] = {re.sub(r"^\w+\.\d+\.", "", name): text for name, text in texts}
    return found


def definitions(ir: str) -> dict[str, list[str]]:
    """Public functions of an LLVM module: name → parameters, each with its attributes."""
    found = {}
    for name, rest in re.findall(r'^define (?!private|internal)[^@\n]*@"?([\w.]+)"?\((.*)$', ir, re.M):
        parameters, depth = [""], 1
        for character in rest:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth == 0:
                break
            if character == "," and depth == 1:
                parameters.append("")
            else:
                parameters[-1] += character
        found[name] = parameters
    return found


def test_both_stacks_give_the_same_thunk_skeleton(stages):
    assert "while" in stages["legacy"]["thunks.txt"]
    assert stages["legacy"]["thunks.txt"] == stages["mlir"]["thunks.txt"]


def test_both_stacks_define_the_same_kernels(stages):
    assert set(definitions(stages["legacy"]["ll"])) == set(definitions(stages["mlir"]["ll"])) != set()


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_kernels_keep_the_abi(stages, stack):
    for name, parameters in definitions(stages[stack]["ll"]).items():
        scratch = f"dereferenceable({8000 + COUNTS})"  # a row, and room for counts of its digits
        assert ("sort" in name) == (scratch in parameters[-1])  # it comes last
        for parameter in parameters:
            assert re.match(r"\s*(ptr|[\w.]+\*)", parameter), f"{name}: {parameter}"
            for promise in ("noalias", "align", "dereferenceable"):
                assert promise in parameter, f"{name}: {parameter} lacks {promise}"
