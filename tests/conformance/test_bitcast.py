"""bitcast between element widths. Sub-byte elements take one byte each, so such a bitcast is no alias."""

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.layouts import is_alias
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...passes.pipeline import optimize
from ..support.passes import fill

FORMS = ["s4[16] s8[8]", "s8[8] s4[16]", "u4[4,6] u16[6]", "s32[3] u4[2,12]", "u2[16] s8[4]", "u8[2,8] f32[4]",
         "f32[4] u16[8]", "u8[16] u8[4,4]", "s4[4,8]{0,1} u8[16]", "u8[16] s4[4,8]{0,1}", "u4[8] s4[8]"]  # fmt: skip


def module(form: str, after: str = ""):
    source, target = form.split()
    body = f"p = {source} parameter(0)\n c = {source} copy(p)\n b = {target} bitcast(c)\n{after}"
    return parse_module(f"HloModule m\nENTRY e {{ {body} }}")


def comparable(array: np.ndarray) -> np.ndarray:
    """The array as bytes, or as numbers for types whose bytes have unused bits."""
    return array.view(np.uint8) if array.dtype.kind in "iuf" else array.astype(np.int32)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("form", FORMS)
def test_bitcast_is_what_the_evaluator_says(form, stack):
    target = form.split()[1]
    for after in (f" ROOT r = {target} copy(b)", f" ROOT r = ({target}, {target}) tuple(b, b)"):
        given = module(form, after)
        inputs = fill(given, 3)
        for got, want in zip(compile_module(given, Flags.parse(stack)).execute(inputs), evaluate(given, inputs)):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(comparable(got), comparable(want))


@pytest.mark.parametrize("form", FORMS)
def test_after_the_passes_a_bitcast_keeps_the_elements(form):
    target = form.split()[1]
    for i in optimize(module(form, f" ROOT r = {target} copy(b)")).instructions():
        if i.opcode is Op.BITCAST:
            assert i.shape.size == i.operands[0].shape.size


def test_a_bitcast_of_narrow_elements_to_others_is_no_alias():
    assert not is_alias(module("s4[16] s8[8]", " ROOT r = s8[8] copy(b)").entry.instructions[2])
    assert is_alias(module("u8[16] f32[4]", " ROOT r = f32[4] copy(b)").entry.instructions[2])
    assert is_alias(module("u4[8] s4[8]", " ROOT r = s4[8] copy(b)").entry.instructions[2])


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("form", ["s4[16] s8[8]", "u8[16] f32[4]"])
def test_inside_a_fusion_it_is_refused_by_both_stacks(form, stack):
    source, target = form.split()
    text = f"""HloModule m, is_scheduled=true
    f {{ p = {source} parameter(0)
      n = {source} not(p)
      ROOT b = {target} bitcast(n) }}
    ENTRY e {{ p = {source} parameter(0)
      ROOT r = {target} fusion(p), kind=kLoop, calls=f }}"""
    with pytest.raises(UnsupportedError, match="bitcast") as caught:
        compile_module(parse_module(text), Flags.parse(stack))
    assert "use bitcast-convert" in str(caught.value.remedy)
