"""Paddings alone in a kernel, without AVX-512: rows in loops without a branch an element."""

import re

import numpy as np
import pytest

from ...codegen.options import EmitOptions, Target
from ...codegen.threads import set_threads, threads
from ...formats.text.parser import parse_module
from ...hlo.attributes import PadDim
from ...migration.choose import emitter
from ...mlir_emitters.pad import Run, run_of
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check, run_stack
from ..support.processors import code_for

ROWS = {
    "between": ("f32[40,60]", "f32[40,119]", "0_0x0_0_1"),
    "between rows, too": ("f64[31,33]", "f64[63,95]", "1_1_1x-1_-1_2"),
    "rows of narrow elements": ("s8[9,30,28]", "s8[9,34,30]", "0_0x1_3x1_1"),
    "cut off and added": ("bf16[90,60]", "bf16[85,60]", "-2_-3x-3_3"),
    "far apart": ("s8[50,20]", "s8[50,240]", "0_0x5_6_11"),
    "cut between elements": ("f32[70,60]", "f32[70,172]", "0_0x-4_-2_2"),
    "complex numbers": ("c64[40,60]", "c64[40,121]", "0_0x1_1_1"),
    "columns": ("f32[60,40]{0,1}", "f32[121,40]{0,1}", "1_1_1x0_0"),
    "preds": ("pred[60,60]", "pred[62,121]", "1_1x2_0_1"),
}
PARTS = {
    "one dimension": ("f32[270001]", "f32[540006]", "3_2_1"),
    "one long dimension": ("s8[1,1090000]", "s8[1,3269993]", "0_0x-5_0_2"),
}
"""What steps number the places of."""
PLAIN = {
    "a few elements": ("f32[20,30]", "f32[20,59]", "0_0x0_0_1"),
    "short rows": ("f32[9000,4]", "f32[9000,7]", "0_0x0_0_1"),
    "whole elements": ("f32[300,28]", "f32[302,30]", "1_1x1_1"),
    "only cut off": ("s8[90,90]", "s8[88,88]", "-1_-1x-1_-1"),
    "no element": ("f32[3,0]", "f32[3,4000]", "0_0x2000_2000_1"),
}


def text_of(operand: str, result: str, padding: str, name: str = "m") -> str:
    dtype = operand.split("[")[0]
    value = {"pred": "true", "c64": "(1, -2)"}.get(dtype, "3")
    return (
        f"HloModule {name}\nENTRY e {{\n  p = {operand} parameter(0)\n  z = {dtype}[] constant({value})\n"
        f"  ROOT r = {result} pad(p, z), padding={padding}\n}}\n"
    )


def kernel(text: str, level: str) -> str:
    (request,) = plan(optimize(parse_module(text))).kernels
    options = EmitOptions(Target.level(level), keep_stages=True, ranges=True)
    return dict(emitter("mlir").emit([request], options).stages)["mlir"]


def elements_have_branches(code: str) -> bool:
    return re.search(r"scf\.if [^\n]*->", code) is not None


@pytest.mark.parametrize("name", [*ROWS, *PARTS, *PLAIN])
def test_values(name):
    for level in ("x86-64-v2", "x86-64-v3"):
        with code_for(level):
            check(text_of(*(ROWS | PARTS | PLAIN)[name], f"m_{level.replace('-', '_')}"))


@pytest.mark.parametrize("name", ROWS)
def test_no_element_of_a_row_has_a_branch(name):
    assert not elements_have_branches(kernel(text_of(*ROWS[name]), "x86-64-v3"))


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_row_have_a_loop_without_branches(name):
    code = kernel(text_of(*PARTS[name]), "x86-64-v3")
    loops = re.split(r"\n\s*scf\.for ", code)[1:]
    assert len(loops) == 3 and [elements_have_branches(loop) for loop in loops] == [True, False, True]


@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_nest_where_rows_do_not_pay(name):
    code = kernel(text_of(*PLAIN[name]), "x86-64-v3")
    assert elements_have_branches(code) == (name not in ("only cut off", "no element"))


def test_processors_with_masks_keep_the_plain_nest():
    assert elements_have_branches(kernel(text_of(*ROWS["between"]), "x86-64-v4"))


def test_a_result_beside_another_is_computed_with_it():
    """The other may lie in the memory that the padding reads; both are computed at an element before one is stored."""
    text = (
        "HloModule beside\nENTRY e {\n  p = f32[120,81] parameter(0)\n  q = f32[120,41] parameter(1)\n"
        "  z = f32[] constant(0)\n  n = f32[120,41] negate(q)\n  a = f32[120,81] pad(n, z), padding=0_0x0_0_1\n"
        "  b = f32[120,81] multiply(a, p)\n  ROOT r = (f32[120,81], f32[120,81]) tuple(a, b)\n}\n"
    )
    with code_for("x86-64-v3"):
        check(text)


@pytest.mark.parametrize("name", [*ROWS, *PARTS])
def test_threads_do_not_change_results(name):
    text, before = text_of(*(ROWS | PARTS)[name], "t"), threads()
    with code_for("x86-64-v3"):
        shape = parse_module(text).entry.parameters[0].shape
        values = np.random.default_rng(1).integers(0, 2, shape.dims).astype(shape.dtype.numpy)
        try:
            set_threads(1)
            one = run_stack(text, "mlir", [values])[0]
            set_threads(3)
            assert run_stack(text, "mlir", [values])[0].tobytes() == one.tobytes()
        finally:
            set_threads(before)


@pytest.mark.parametrize("low", range(-7, 4))
@pytest.mark.parametrize("interior", range(4))
def test_runs_are_where_the_elements_are(low, interior):
    for size in range(1, 5):
        for high in range(-4, 3):
            padded = (size - 1) * (interior + 1) + 1 + low + high
            if padded < 1:
                continue
            places = {low + k * (interior + 1): k for k in range(size)}
            inside = sorted((at, k) for at, k in places.items() if 0 <= at < padded)
            run = run_of(PadDim(low, high, interior), size, padded)
            assert [(run.start + n * run.step, run.first + n) for n in range(run.count)] == inside


def test_the_end_of_a_run():
    assert Run(0, 3, 2, 4).end == 11
