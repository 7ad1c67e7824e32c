"""Long running sums become running sums of parts; results do not change."""

from dataclasses import replace

import numpy as np
import pytest

from ....backends.base import CompileOptions
from ....codegen.options import EmitOptions
from ....codegen.threads import on_threads
from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ....passes.canonical import split_running
from ....thunks import KernelThunk
from ...support.passes import fill, run, same

PASSES = ("flatten", "split-reductions", "dce")


def text(x: str, op: str = "add", start: str = "0", window: str = "") -> str:
    t, size = x[: x.index("[")], int(x[x.rindex(",") + 1 if "," in x else x.index("[") + 1 : x.index("]")])
    ones = "1x" * x.count(",")
    pads = "0_0x" * x.count(",")
    window = window or f"size={ones}{size} pad={pads}{size - 1}_0"
    return f"""HloModule m
region {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT s = {t}[] {op}(a, b) }}
ENTRY e {{ x = {x} parameter(0)
  z = {t}[] constant({start})
  ROOT r = {x} reduce-window(x, z), window={{{window}}}, to_apply=region }}
"""


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(split_running, "LONG", 512)


def runs(module) -> list[tuple[int, ...]]:
    return [i.shape.dims for i in module.entry.instructions if i.opcode is Op.REDUCE_WINDOW]


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        (text("s32[1024]", start="5"), (128, 8)),
        (text("s32[1024]", start="5", window="size=1024 pad=0_1023"), (128, 8)),
        (text("s32[1,700]", "maximum", "-7"), (140, 5)),
        (text("u8[1024]", "xor", "9"), (128, 8)),
        (text("pred[1024]", "or", "false"), (128, 8)),
        (text("f64[1024]", start="5"), (128, 8)),
        (text("f32[1024]", "minimum", "inf", "size=1024 pad=0_1023"), (128, 8)),
    ],
)
@pytest.mark.usefixtures("short")
def test_is_divided_and_keeps_the_results(case: str, parts: tuple[int, ...]):
    changed = same(case, fill(parse_module(case), 1, high=5), *PASSES, exact="f64" not in case)
    assert runs(changed) == [parts, parts[:1]]


@pytest.mark.parametrize(
    "case",
    [
        text("s32[256]"),  # short
        text("s32[1009]"),  # no even parts
        text("s32[4,1024]"),  # rows, which threads may share as they are
        text("bf16[1024]"),
        text("s32[512]", window="size=3 pad=1_1"),
        text("s32[1024]", "subtract"),
    ],
)
@pytest.mark.usefixtures("short")
def test_others_stay(case: str):
    assert runs(run(case, *PASSES)) == runs(parse_module(case))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_threads_share_the_parts_and_no_bit_depends_on_them(stack: str):
    module = parse_module(text("f32[1048576]"))
    options = CompileOptions(emit=replace(EmitOptions.host(), ranges=True))
    executable = compile_module(module, Flags.parse(stack), options)
    assert any(isinstance(t, KernelThunk) and t.split is not None for t in executable.thunks.walk())
    x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    with on_threads(1):
        (alone,) = executable.execute([x])
    with on_threads(3):
        (together,) = executable.execute([x])
    wanted = np.cumsum(x, dtype=np.float64)
    assert alone.tobytes() == together.tobytes()
    assert np.abs(alone - wanted).max() <= 4 * np.spacing(np.float32(np.abs(wanted).max()))
