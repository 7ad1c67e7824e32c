"""Parts of rows that move between large arrays go past the caches, on both stacks; those of small ones do not."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed
from ..support.processors import code_for, small_caches


def text_of(name: str, dtype: str, rows: int, columns: int, padding: str, cut: str, result: str) -> str:
    """The rows of two arrays, padded and cut."""
    s, whole = f"{dtype}[{rows},{columns}]", f"{dtype}[{2 * rows},{columns}]"
    (low, high), (left, right) = (map(int, p.split("_")) for p in padding.split("x"))
    padded = f"{dtype}[{2 * rows + low + high},{columns + left + right}]"
    return f"""HloModule {name}
ENTRY e {{
  x = {s} parameter(0)
  y = {s} parameter(1)
  z = {dtype}[] constant(0)
  c = {whole} concatenate(x, y), dimensions={{0}}
  p = {padded} pad(c, z), padding={padding}
  ROOT r = {dtype}[{result}] slice(p), slice={{{cut}}}
}}
"""


CASES = {
    "rows one place back": ("1_1x1_1", "[2:82], [2:2050]", "80,2048"),
    "rows one place further": ("1_1x1_1", "[1:81], [0:2048]", "80,2048"),
    "a wide edge": ("0_3x0_128", "[3:83], [64:2112]", "80,2048"),
    "rows of no whole lines": ("0_1x0_3", "[0:81], [1:2050]", "81,2049"),
}


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s8", "pred", "c64"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values(case, dtype, level):
    padding, cut, result = case
    name = f"{dtype}_{level.replace('-', '_')}_{padding}"
    zero = "false" if dtype == "pred" else "(0, 0)" if dtype == "c64" else "0"
    text = text_of(name, dtype, 40, 2048, padding, cut, result).replace("constant(0)", f"constant({zero})")
    with code_for(level), small_caches():
        check(text, None, ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("rows, streams", [(1024, True), (512, False), (256, False)])
def test_large_arrays_go_past_the_caches(stack, rows, streams):
    """Through them, what is written over is read: a third of the memory that moves. Both arrays fit with 8 MiB."""
    text = text_of("m", "f32", rows, 2048, "1_1x1_1", f"[2:{2 * rows + 2}], [2:2050]", f"{2 * rows},2048")
    code = emitter(stack).emit(plan(parsed(text)).kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir
    assert ("!nontemporal" in code) is streams


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_it_is_the_last_cache_that_they_go_past(stack):
    text = text_of("m", "f32", 40, 2048, "1_1x1_1", "[2:82], [2:2050]", "80,2048")
    with small_caches():
        code = emitter(stack).emit(plan(parsed(text)).kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir
    assert "!nontemporal" in code
