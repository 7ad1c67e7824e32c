"""Signs of a vector that become integers keep all their bits: LLVM 22.1 loses some of them with AVX-512."""

import itertools
import re
from contextlib import nullcontext

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from ...codegen.llvm import parse, start
from ...codegen.open_module import open_module
from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions, Target
from ...codegen.sign_masks import has_mask_registers, with_tested_bits
from ..support.check import check
from ..support.processors import code_for

WIDE = EmitOptions(Target.level("x86-64-v4"))
CROWDED = """
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %r) {
  %x = load i8, ptr %a
  %high = shl i8 %x, 4
  %s0 = ashr i8 %high, 4
SQUARES_S
  %c0 = icmp eq i8 %high, -16
  %a1 = getelementptr i8, ptr %a, i64 1
  %y = load i8, ptr %a1
  %t0 = ashr i8 %y, 4
SQUARES_T
  %c1 = icmp eq i8 %y, -16
  %r1 = getelementptr i8, ptr %r, i64 1
  %u0 = load i8, ptr %a
  %u1 = mul i8 %u0, %u0
  %u2 = mul i8 %u1, %u1
  %exponents = load <2 x i8>, ptr %b
PRODUCTS_S
  %d0 = select i1 %c0, i8 1, i8 -16
  %negative = icmp slt <2 x i8> %exponents, zeroinitializer
  %n0 = extractelement <2 x i1> %negative, i64 0
  %e0 = select i1 %n0, i8 %d0, i8 %sp5
  store i8 %e0, ptr %r
PRODUCTS_T
  %d1 = select i1 %c1, i8 1, i8 -16
  %n1 = extractelement <2 x i1> %negative, i64 1
  %e1 = select i1 %n1, i8 %d1, i8 %tp5
  store i8 %e1, ptr %r1
  %v1 = mul i8 %u0, %u1
  %v2 = mul i8 %v1, %u2
  %r2 = getelementptr i8, ptr %r, i64 2
  store i8 %v2, ptr %r2
  ret void
}
"""
for name in "st":  # many values that are alive at once
    squares = (f"  %{name}{n + 1} = mul i8 %{name}{n}, %{name}{n}" for n in range(5))
    products = (f"  %{name}p{n} = mul i8 %{name}{'p' * (n > 1)}{n - 1}, %{name}{n}" for n in range(1, 6))
    CROWDED = CROWDED.replace(f"SQUARES_{name.upper()}", "\n".join(squares))
    CROWDED = CROWDED.replace(f"PRODUCTS_{name.upper()}", "\n".join(products))


def raw_llvmlite(text: str) -> str:
    """What llvmlite's LLVM makes of IR, as of a host program with inlined kernels."""
    start()
    target = WIDE.target
    machine = llvm.Target.from_triple(target.triple).create_target_machine(cpu=target.cpu, features=target.features)
    return machine.emit_assembly(parse(text))


def raw_library(text: str) -> str:
    """What libLLVM.so makes of IR, as of kernels."""
    with open_module(text, WIDE.target, "all") as module:
        return module.assembly()


@pytest.mark.parametrize("raw", [raw_llvmlite, raw_library])
def test_llvm_still_loses_signs(raw):
    """If this fails for both, codegen/sign_masks.py can go."""
    code = raw(CROWDED)
    assert "kshiftrw" in code and not re.search(r", %k\d$", code.split("kshiftrw")[0], re.MULTILINE)


def test_mask_registers_that_are_read_were_written():
    code = assembly(CROWDED, WIDE)
    assert "%k" in code and not re.search(r"vpmovmskb|vpmovb2m", code)


@pytest.mark.parametrize("test", [
    "icmp slt <8 x i16> %x, zeroinitializer", "trunc <8 x i16> %x to <8 x i1>", "trunc nuw <8 x i16> %x to <8 x i1>",
])  # fmt: skip
@pytest.mark.parametrize(("use", "changes"), [
    ("%i = extractelement <8 x i1> %m, i64 3", True),
    ("%i = bitcast <8 x i1> %m to i8", True),
    ("%i = freeze <8 x i1> %m", True),
    ("%i = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %m)", True),
    ("%i = xor <8 x i1> %m, splat (i1 true)", False),
    ("%i = extractelement <8 x i1> %m.other, i64 3", False),
])  # fmt: skip
def test_tests_that_become_integers_and_something_else_compare_a_bit(test, use, changes):
    head, tail = "define void @f(<8 x i16> %x) {\n", "  ret void\n}\n"
    other = "  %s = select <8 x i1> %m, <8 x i16> %x, <8 x i16> zeroinitializer\n"
    text = f"{head}  %m = {test}\n  {use}\n{other}{tail}"
    bit = -32768 if "slt" in test else 1
    compared = (
        f"  %tested.m = and <8 x i16> %x, splat (i16 {bit})\n  %m = icmp ne <8 x i16> %tested.m, zeroinitializer\n"
    )
    assert with_tested_bits(text) == (text.replace(f"  %m = {test}\n", compared) if changes else text)
    alone = f"{head}  %m = {test}\n  {use}\n{tail}"
    assert with_tested_bits(alone) == alone


def test_a_name_is_of_its_function():
    def function(name: str, uses: str) -> str:
        test = "  %2 = icmp slt <8 x i16> %0, zeroinitializer\n"
        return f"define void @{name}(<8 x i16> %0) {{\n{test}{uses}  ret void\n}}\n"

    one, other = "  %3 = extractelement <8 x i1> %2, i64 0\n", "  %4 = extractelement <8 x i1> %2, i64 1\n"
    mended = with_tested_bits(function("f", one) + function("g", one + other))
    assert mended.startswith(function("f", one)) and mended.count("%tested.2 = ") == 1


def test_only_processors_with_mask_registers_need_it():
    assert has_mask_registers(WIDE.target) and not has_mask_registers(Target.level("x86-64-v3"))


@pytest.mark.parametrize("level", ["host", "x86-64-v3", "x86-64-v4"])
def test_each_power_of_small_integers(level):
    pairs = np.array(list(itertools.product(range(-8, 8), repeat=2))).astype(ml_dtypes.int4)
    with nullcontext() if level == "host" else code_for(level):
        for start in range(0, 255, 3):
            bases, exponents = pairs[start : start + 3].T
            check(
                f"HloModule m_{level.replace('-', '_')}\n"
                "ENTRY e {\n  p = s4[3] parameter(0)\n  q = s4[3] parameter(1)\n  ROOT r = s4[3] power(p, q)\n}\n",
                [np.ascontiguousarray(bases), np.ascontiguousarray(exponents)],
            )
