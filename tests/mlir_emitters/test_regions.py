"""Concatenations and paddings of large results: a nest for each region, without a branch an element, on both stacks."""

import re
from dataclasses import replace

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check

FIXED = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512), ranges=True)

CASES = {
    "operands in columns": (2, ("p = f32[200,70] parameter(0); q = f32[200,90] parameter(1); "
        "c = f32[200,160] concatenate(p, q), dimensions={1}; ROOT r = f32[200,160] exponential(c)")),
    "padded operands": (6, ("p = f32[100,256] parameter(0); q = f32[20,256] parameter(1); z = f32[] constant(3); "
        "a = f32[100,400] pad(p, z), padding=0_0x80_64; b = f32[20,400] pad(q, z), padding=0_0x80_64; "
        "c = f32[120,400] concatenate(a, b), dimensions={0}; ROOT r = f32[120,400] multiply(c, c)")),
    "padding around": (5, ("p = f32[100,200] parameter(0); z = f32[] parameter(1); q = f32[120,400] parameter(2); "
        "a = f32[120,400] pad(p, z), padding=9_11x90_110; ROOT r = f32[120,400] add(a, q)")),
    "padding and cropping": (3, ("p = f32[200,300] parameter(0); z = f32[] parameter(1); "
        "a = f32[180,380] pad(p, z), padding=-9_-11x40_40; ROOT r = f32[180,380] negate(a)")),
    "batches": (5, ("p = f32[4,30,300] parameter(0); z = f32[] constant(0); "
        "a = f32[4,32,512] pad(p, z), padding=0_0x1_1x100_112; ROOT r = f32[4,32,512] negate(a)")),
    "steps of two dimensions": (5, ("p = f32[12,30,300] parameter(0); z = f32[] constant(0); "
        "a = f32[12,32,1024] pad(p, z), padding=0_0x1_1x100_624; ROOT r = f32[12,32,1024] negate(a)")),
    "one dimension": (3, ("p = f32[400000] parameter(0); q = f32[300001] parameter(1); z = f32[] constant(1); "
        "a = f32[400002] pad(p, z), padding=0_2; c = f32[700003] concatenate(a, q), dimensions={0}; "
        "ROOT r = f32[700003] negate(c)")),
    "slices of what is joined": (2, ("p = f32[200,90] parameter(0); q = f32[200,170] parameter(1); "
        "c = f32[200,260] concatenate(p, q), dimensions={1}; s = f32[190,250] slice(c), slice={[3:193], [5:255]}; "
        "ROOT r = f32[190,250] negate(s)")),
    "two results": (2, ("p = f32[200,90] parameter(0); q = f32[200,170] parameter(1); w = f32[200,260] parameter(2); "
        "c = f32[200,260] concatenate(p, q), dimensions={1}; n = f32[200,260] add(c, w); "
        "m = f32[200,260] divide(w, c); ROOT r = (f32[200,260], f32[200,260]) tuple(n, m)")),
    "narrow numbers": (2, ("p = bf16[200,90] parameter(0); q = bf16[200,170] parameter(1); "
        "c = bf16[200,260] concatenate(p, q), dimensions={1}; ROOT r = bf16[200,260] abs(c)")),
    "complex numbers": (2, ("p = c64[200,90] parameter(0); q = c64[200,170] parameter(1); "
        "c = c64[200,260] concatenate(p, q), dimensions={1}; ROOT r = c64[200,260] negate(c)")),
    "preds": (3, ("p = pred[200,90] parameter(0); z = pred[] constant(true); "
        "a = pred[200,270] pad(p, z), padding=0_0x90_90; ROOT r = pred[200,270] not(a)")),
    "a padding alone": (3, ("p = f32[200,90] parameter(0); z = f32[] parameter(1); "
        "ROOT a = f32[200,270] pad(p, z), padding=0_0x90_90")),
    "a row that is cut": (2, ("p = f32[90] parameter(0); q = f32[70] parameter(1); y = f32[200,160] parameter(2); "
        "c = f32[160] concatenate(p, q), dimensions={0}; b = f32[200,160] broadcast(c), dimensions={1}; "
        "ROOT r = f32[200,160] add(b, y)")),
    "the same at two places": (4, ("p = f32[300,80] parameter(0); y = f32[300,320] parameter(1); "
        "z = f32[] constant(2); n = f32[300,80] negate(p); w = f32[300,160] concatenate(p, n), dimensions={1}; "
        "b = f32[300,320] pad(w, z), padding=0_0x80_80; ROOT r = f32[300,320] multiply(b, y)")),
    "halves that change places": (2, ("p = bf16[400,64] parameter(0); y = bf16[400,64] parameter(1); "
        "a = bf16[400,32] slice(p), slice={[0:400], [0:32]}; b = bf16[400,32] slice(p), slice={[0:400], [32:64]}; "
        "n = bf16[400,32] negate(b); c = bf16[400,64] concatenate(n, a), dimensions={1}; "
        "ROOT r = bf16[400,64] multiply(c, y)")),
}  # fmt: skip
"""What it is → (regions of the kernel, instructions)."""

ONE_NEST = {
    "a small result": "p = f32[9,200] parameter(0); q = f32[9,70] parameter(1); "
    "c = f32[9,270] concatenate(p, q), dimensions={1}; ROOT r = f32[9,270] negate(c)",
    "padding inside": "p = f32[200,100] parameter(0); z = f32[] parameter(1); "
    "a = f32[200,199] pad(p, z), padding=0_0x0_0_1; ROOT r = f32[200,199] negate(a)",
    "short runs": "p = f32[9000,1] parameter(0); q = f32[9000,2] parameter(1); "
    "c = f32[9000,3] concatenate(p, q), dimensions={1}; ROOT r = f32[9000,3] negate(c)",
    "too many": "; ".join(f"p{n} = f32[200,70] parameter({n})" for n in range(9))
    + f"; c = f32[200,630] concatenate({', '.join(f'p{n}' for n in range(9))}), dimensions={{1}}; "
    "ROOT r = f32[200,630] negate(c)",
    "steps along short rows": "p = f32[2,3,50000] parameter(0); q = f32[2,3,60000] parameter(1); "
    "c = f32[2,3,110000] concatenate(p, q), dimensions={2}; ROOT r = f32[2,3,110000] negate(c)",
    "reversed": "p = f32[200,90] parameter(0); q = f32[200,70] parameter(1); "
    "c = f32[200,160] concatenate(p, q), dimensions={1}; v = f32[200,160] reverse(c), dimensions={1}; "
    "ROOT r = f32[200,160] negate(v)",
    "operands in rows": "p = f32[90,200] parameter(0); q = f32[70,200] parameter(1); "
    "c = f32[160,200] concatenate(p, q), dimensions={0}; ROOT r = f32[160,200] negate(c)",
    "images": "p = f32[4,30,30,16] parameter(0); z = f32[] constant(0); "
    "a = f32[4,32,32,16] pad(p, z), padding=0_0x1_1x1_1x0_0; ROOT r = f32[4,32,32,16] negate(a)",
}


def text_of(body: str) -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.split(";") if line.strip())
    return f"HloModule m\nENTRY e {{\n{lines}\n}}\n"


def emitted(stack: str, body: str):
    (request,) = plan(optimize(parse_module(text_of(body)))).kernels
    return emitter(stack).emit([request], replace(FIXED, keep_stages=True))


def branches(llvm_ir: str) -> int:
    """Conditional branches of legacy's code that end no loop."""
    return len(re.findall(r'br i1 \S+ label %"then', llvm_ir))


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    check(text_of(CASES[name][1]))


@pytest.mark.parametrize("name", ONE_NEST)
def test_values_of_one_nest(name):
    check(text_of(ONE_NEST[name]))


@pytest.mark.parametrize("name", CASES)
def test_every_region_is_an_operation_of_linalg(name):
    count, body = CASES[name]
    kernel = dict(emitted("mlir", body).stages)["mlir"]
    assert kernel.count("linalg.generic") == count
    assert not re.search(r"scf\.if [^\n]*->", kernel), "an element has a branch"


@pytest.mark.parametrize("name", CASES)
def test_legacy_has_no_branch_for_an_element(name):
    """Steps of several dimensions are in regions by a branch for each step."""
    found = branches(emitted("legacy", CASES[name][1]).llvm_ir)
    assert found == (3 if name == "steps of two dimensions" else 0)


@pytest.mark.parametrize("name", ONE_NEST)
def test_one_nest_where_regions_do_not_pay(name):
    kernel = dict(emitted("mlir", ONE_NEST[name]).stages)["mlir"]
    assert "linalg.generic" not in kernel and "scf.if" in kernel
    assert branches(emitted("legacy", ONE_NEST[name]).llvm_ir) >= 1


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_kernel_in_regions_takes_ranges(stack):
    assert emitted(stack, CASES["one dimension"][1]).ranged
    assert emitted(stack, CASES["steps of two dimensions"][1]).ranged
