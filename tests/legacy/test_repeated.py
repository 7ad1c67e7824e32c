"""Results that repeat a row are copied from a block of rows on the stack."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...legacy import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads, split_kernels
from ..support.repeated import FORMS, OTHERS, broadcast


def text_of(hlo: str) -> str:
    return emit(plan(parse_module(hlo)).kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir


@pytest.mark.parametrize("dtype", ["pred", "s4", "s8", "f8e4m3fn", "bf16", "f16", "f32", "f64", "c64", "c128"])
def test_short_arrays_that_are_broadcast(dtype):
    """XLA took a third of the time of a loop over rows of three bytes, which LLVM interleaves."""
    for row, rows in ((3, 5000), (1, 20_000), (7, 2001), (2, 4099)):
        check(broadcast(dtype, rows, row))
    assert "alloca" in text_of(broadcast(dtype, 50_000, 3))


@pytest.mark.parametrize("form", FORMS)
def test_other_forms(form):
    assert "alloca" in text_of(FORMS[form])
    check(FORMS[form])


@pytest.mark.parametrize("form", OTHERS)
def test_others_have_no_block(form):
    assert "alloca" not in text_of(OTHERS[form])
    check(OTHERS[form])


def test_threads_write_the_same_bits():
    with number_of_threads():
        executable = check_threads(parse_module(broadcast("bf16", 400_000, 3)), "legacy")
        assert split_kernels(executable)
        check_ranges_alone(executable)
