"""Large reductions to few numbers become partial reductions and one of these; results do not change."""

from dataclasses import replace

import pytest

from ....backends.base import CompileOptions
from ....codegen.options import EmitOptions
from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ....passes.canonical import split_reductions
from ...support.passes import fill, run, same

PASSES = ("flatten", "split-reductions", "dce")


def text(x: str, result: str, dims: str, op: str = "add", start: str = "0") -> str:
    t = x[: x.index("[")]
    return f"""HloModule m
region {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT s = {t}[] {op}(a, b) }}
ENTRY e {{ x = {x} parameter(0)
  z = {t}[] constant({start})
  ROOT r = {result} reduce(x, z), dimensions={{{dims}}}, to_apply=region }}
"""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(split_reductions, "LARGE", 512)
    monkeypatch.setattr(split_reductions, "LEAST_IN_PART", 4)


def reductions(module) -> list:
    return [i for i in module.entry.instructions if i.opcode is Op.REDUCE]


@pytest.mark.parametrize(
    "case, partial",
    [
        (text("s32[1024]", "s32[]", "0", start="5"), (128,)),
        (text("s32[3,5,7,11]", "s32[]", "0,1,2,3"), (105,)),
        (text("s32[2,512]", "s32[2]", "1", "maximum", "-7"), (2, 128)),
        (text("s32[8192,3]", "s32[3]", "0", "multiply", "2"), (128, 3)),
        (text("s32[2,700,20]", "s32[20]", "0,1"), (140, 20)),
        (text("s32[4,2,192]", "s32[2]", "0,2", "minimum", "9"), (2, 96)),
        (text("s32[192,2,4]", "s32[2]", "0,2", "xor", "9"), (96, 2)),
        (text("f32[1024]", "f32[]", "0", start="5"), (128,)),
        (text("f32[1024]", "f32[]", "0", "maximum", "-inf"), (128,)),
        (text("pred[1024]", "pred[]", "0", "or", "false"), (128,)),
        (text("bf16[1024]", "bf16[]", "0", "minimum", "inf"), (128,)),
    ],
)
def test_is_divided_and_keeps_the_results(case: str, partial: tuple[int, ...]):
    changed = same(case, fill(parse_module(case), 1, high=5), *PASSES, exact="f32" not in case)
    assert [i.shape.dims for i in reductions(changed)] == [partial, changed.entry.root.shape.dims]


@pytest.mark.parametrize(
    "case",
    [
        text("s32[256]", "s32[]", "0"),  # small
        text("s32[32,64]", "s32[32]", "1"),  # many results
        text("s32[60,32]", "s32[32]", "0"),  # few elements of each
        text("s32[64,1024]", "s32[1024]", "0"),  # many columns
        text("s32[1021]", "s32[]", "0"),  # a prime
        text("bf16[1024]", "bf16[]", "0"),  # would be rounded twice
        text("s32[1024]", "s32[]", "0", "subtract"),
        text("f32[32,32]{0,1}", "f32[]", "0,1"),
    ],
)
def test_stays(case: str):
    assert len(reductions(run(case, *PASSES))) == 1


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_strict_sum_stays_one_chain(stack: str):
    module = parse_module(text("f32[524288]", "f32[]", "0"))
    for strict, count in ((False, 2), (True, 1)):
        options = CompileOptions(emit=replace(EmitOptions.host(), strict=strict))
        assert len(compile_module(module, Flags.parse(stack), options).kernels) == count
