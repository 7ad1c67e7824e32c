"""Results that repeat a row are copied from a piece on the stack; pads of short rows choose lanes of vectors."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads, split_kernels
from ..support.repeated import FORMS, OTHERS, broadcast


def kernel(text: str, level: str = "x86-64-v3") -> str:
    options = EmitOptions(Target.level(level), keep_stages=True)
    return dict(emitter("mlir").emit(plan(parse_module(text)).kernels, options).stages)["mlir"]


def padded(dtype: str, before: str, after: str, padding: str) -> str:
    zero = "(3, -1)" if dtype.startswith("c") else "7"
    return f"""HloModule m
ENTRY e {{ x = {dtype}[{before}] parameter(0)
  z = {dtype}[] constant({zero})
  ROOT r = {dtype}[{after}] pad(x, z), padding={padding} }}
"""


@pytest.mark.parametrize("form", FORMS)
def test_forms_with_a_piece(form):
    """XLA took a third of the time of a loop over rows of three bytes, which LLVM interleaves."""
    assert "memref.alloca" in kernel(FORMS[form])
    check(FORMS[form])


@pytest.mark.parametrize("form", OTHERS)
def test_forms_without(form):
    assert "memref.alloca" not in kernel(OTHERS[form])


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["s8", "bf16", "f32", "c64", "c128"])
def test_pads_of_short_rows(dtype, level):
    """Scattered, rows of complex numbers took five times XLA's time with AVX-512."""
    with code_for(level):
        for before, after, low_high in (("3", "5", "1_1"), ("7", "16", "8_1"), ("1", "3", "0_2"), ("5", "6", "1_0")):
            text = padded(dtype, f"1391,{before}", f"1391,{after}", f"0_0x{low_high}")
            assert "vector.shuffle" in kernel(text, level)
            check(text.replace("HloModule m", f"HloModule m_{level.replace('-', '_')}"))


def test_other_pads_have_no_vectors_of_their_own():
    for before, after, padding in (
        ("1,1500,3", "3,1500,4", "1_1x0_0x0_1"),
        ("1500,3", "1500,6", "0_0x0_1_1"),
        ("400,20", "400,21", "0_0x0_1"),
        ("3000,2", "3000,4", "0_0x0_2"),
    ):
        assert "vector.shuffle" not in kernel(padded("f32", before, after, padding))
        check(padded("f32", before, after, padding))
    assert "vector.shuffle" in kernel(padded("c64", "3000,2", "3000,4", "0_0x0_2"))


@pytest.mark.parametrize(
    "text", [broadcast("bf16", 400_000, 3), padded("c64", "20,2500,3", "20,2500,5", "0_0x0_0x1_1")]
)
def test_threads_write_the_same_bits(text):
    with number_of_threads():
        executable = check_threads(parse_module(text), "mlir")
        assert split_kernels(executable)
        check_ranges_alone(executable)
