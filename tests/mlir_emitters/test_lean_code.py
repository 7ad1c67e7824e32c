"""What the new stack once did twice, or in a form of which LLVM made slow code: each test holds one such place."""

import re

import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...mlir_emitters.products.convolution_vectors import CONVERTED, best_sizes
from ...passes import pipeline
from ...planning.planner import plan

FIXED = EmitOptions(
    Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512vl,+fma", 512), ranges=False, keep_stages=True
)


def emitted(lines: str, *, optimized: bool = False) -> str:
    """The kernel's structured MLIR, or its LLVM IR after LLVM's optimiser. lines: the entry, and regions before it."""
    module = pipeline.optimize(parse_module(f"HloModule m\n{lines}"))
    made = emitter("mlir").emit(plan(module).emitted, FIXED)
    return optimize(made.llvm_ir, FIXED) if optimized else dict(made.stages)["mlir"]


@pytest.mark.parametrize("kind", ["f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz", "f4e2m1fn", "f8e8m0fnu"])
def test_a_rounded_number_is_encoded_once(kind):
    lines = f"ENTRY e {{ p = f32[64] parameter(0)\n q = f32[64] multiply(p, p)\n ROOT r = {kind}[64] convert(q) }}"
    assert emitted(lines).count("arith.trunci") == 1


def test_a_combination_of_narrow_numbers_is_encoded_once():
    lines = """add { x = f8e5m2[] parameter(0)
  y = f8e5m2[] parameter(1)
  ROOT s = f8e5m2[] add(x, y) }
ENTRY e { p = f8e5m2[64,16] parameter(0)
  i = s32[8,1] parameter(1)
  u = f8e5m2[8,16] parameter(2)
  ROOT r = f8e5m2[64,16] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"""
    assert emitted(lines).count("arith.trunci") == 1


def test_copies_of_rows_are_not_unrolled():
    lines = """ENTRY e { p = f8e4m3fn[256,500] parameter(0)
  q = f8e4m3fn[256,501] parameter(1)
  ROOT r = f8e4m3fn[256,1001] concatenate(p, q), dimensions={1} }"""
    assert len(re.findall(r"call void @llvm\.memcpy", emitted(lines, optimized=True))) == 2


def test_the_operand_of_a_scatter_is_copied_in_memory_order():
    lines = """add { x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT s = c64[] add(x, y) }
ENTRY e { p = c64[16,16] parameter(0)
  i = s32[32,1] parameter(1)
  u = c64[32,16] parameter(2)
  ROOT r = c64[16,16] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"""
    assert "llvm.masked.gather" not in emitted(lines, optimized=True)


def test_distant_positions_of_a_window_are_not_gathered():
    """Of a window that lies in the padding for the most part, a run took eight times as long as on legacy."""
    lines = """ENTRY e { p = f32[3,3,7,7] parameter(0)
  q = f32[5,11,11,7] parameter(1)
  ROOT r = f32[5,21,2,7] convolution(p, q), window={size=11x11 pad=3_25x3_6}, dim_labels=01bf_o01i->f01b }"""
    assert "llvm.masked.gather" not in emitted(lines, optimized=True)


def test_sums_of_complex_convolutions_stay_apart():
    lines = """ENTRY e { p = c64[1,8,8,4] parameter(0)
  q = c64[3,3,4,8] parameter(1)
  ROOT r = c64[1,8,8,8] convolution(p, q), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }"""
    body = emitted(lines, optimized=True)
    assert "phi <8 x float>" in body and "phi <16 x float>" not in body


def test_complex_tanh_has_two_exponentials():
    lines = "ENTRY e { p = c128[64] parameter(0)\n ROOT r = c128[64] tanh(p) }"
    text = emitted(lines)
    assert sorted(re.findall(r"math\.(exp\w*|\w+h)\b", text)) == ["exp", "expm1"]


def test_a_narrow_number_that_was_decoded_is_not_encoded_again():
    lines = """ENTRY e { p = f8e4m3fn[64] parameter(0)
  q = f8e4m3fn[64] parameter(1)
  c = pred[64] compare(p, q), direction=LT
  ROOT r = f8e4m3fn[64] select(c, p, q) }"""
    assert "arith.trunci" not in emitted(lines)


def test_no_place_in_a_reshaped_array_is_found_by_division():
    """A reduction in parts reads a reshape of what elementwise ops make of arrays of several dimensions."""
    lines = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e { p = f32[8,224,224,3] parameter(0)
  q = f32[8,224,224,3] parameter(1)
  d = f32[8,224,224,3] subtract(p, q)
  t = f32[8,224,224,3] multiply(d, d)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(t, z), dimensions={0,1,2,3}, to_apply=add }"""
    found = emitted(lines, optimized=True)
    assert "fmul" in found and not re.search(r"= u(rem|div) |= lshr ", found)


def test_weights_that_are_converted_are_few_in_a_tile():
    """Each costs an operation more than one that is read in the sums' dtype; 64 features at 26 positions."""
    assert best_sizes(16, 8, 26)[0] == 3 and best_sizes(16, 8, 26, CONVERTED)[0] == 2


def test_sums_of_few_columns_are_vectors_before_loops_are_unrolled():
    lines = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e { x = f32[4096,8] parameter(0)
  p = f32[4096,8] abs(x)
  zero = f32[] constant(0)
  ROOT r = f32[8] reduce(p, zero), dimensions={0}, to_apply=add }"""
    assert "followupVectorized" in emitted(lines)
    assert "fadd contract <8 x float>" in emitted(lines, optimized=True)


@pytest.mark.parametrize(("columns", "rows"), [(80, 4), (128, 4), (200, 8)])
def test_few_rows_of_narrow_columns_are_added_together(columns, rows):
    """Eight rows of a narrow array took twice the time from memory, and a third longer to compile."""
    lines = f"""add {{ x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }}
ENTRY e {{ p = f32[64,512,{columns}] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[64,{columns}] reduce(p, z), dimensions={{1}}, to_apply=add }}"""
    module = pipeline.optimize(parse_module(f"HloModule m\n{lines}"))
    made = emitter("mlir").emit(plan(module).emitted, FIXED)
    bodies = re.split(r"\bbr label\b", made.llvm_ir)
    assert max(len(re.findall(r" = load float,", body)) for body in bodies) == rows + 1
    assert bool(made.lean) == (columns <= 128)


def test_a_sorted_row_is_copied_back_one_vector_at_a_time():
    lines = "ENTRY e { p = f32[262144] parameter(0)\n ROOT r = f32[262144] sort(p), dimensions={0}, to_apply=less }"
    less = "less { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT c = pred[] compare(x, y), direction=LT }\n"
    assert len(re.findall(r"store <16 x float>", emitted(less + lines, optimized=True))) == 1
