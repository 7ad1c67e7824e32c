"""The evaluator against XLA:CPU on structural opcodes, where jaxlib is installed."""

import numpy as np
import pytest

from ...backends.xla import XlaExecutable, installed
from ...differential.fake_inputs import fake_inputs
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ..support.passes import agree

pytestmark = pytest.mark.skipif(not installed(), reason="jaxlib is not installed (./testbed setup --xla)")

REGIONS = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
mul { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] multiply(x, y) }
max { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] maximum(x, y) }
ge { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=GE }
lt { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=LT }
"""

CASES = {
    "convolution with strides and padding": """  p = f32[2,9,8,4] parameter(0)
  k = f32[3,2,4,6] parameter(1)
  ROOT r = f32[2,5,8,6] convolution(p, k), window={size=3x2 stride=2x1 pad=1_1x0_1}, dim_labels=b01f_01io->b01f""",
    "convolution with dilations and reversal": """  p = f32[4,2,5,6] parameter(0)
  k = f32[3,4,2,2] parameter(1)
  ROOT r = f32[3,7,10,2] convolution(p, k),
    window={size=2x2 pad=0_0x1_2 lhs_dilate=2x2 rhs_dilate=3x3 rhs_reversal=1x1}, dim_labels=fb01_oi01->f01b""".replace(
        "f32[3,7,10,2]", "f32[3,6,11,2]"
    ),
    "convolution in feature groups": """  p = f32[2,6,5] parameter(0)
  k = f32[8,3,3] parameter(1)
  ROOT r = f32[2,8,3] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=2""",
    "convolution in batch groups": """  p = f32[6,5,4] parameter(0)
  k = f32[2,4,9] parameter(1)
  ROOT r = f32[2,4,9] convolution(p, k), window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=3""",
    "dot with batch dimensions": """  p = f32[3,5,4,2] parameter(0)
  q = f32[4,3,7,5] parameter(1)
  ROOT r = f32[3,2,7] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={1},
    lhs_contracting_dims={1,2}, rhs_contracting_dims={3,0}""",
    "dot of s8 in s32": """  p = s8[4,6] parameter(0)
  q = s8[6,3] parameter(1)
  ROOT r = s32[4,3] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "gather with batching dimensions": """  p = f32[3,7,5] parameter(0)
  i = s32[2,3,1] parameter(1)
  ROOT r = f32[2,3,2,5] gather(p, i), offset_dims={2,3}, collapsed_slice_dims={}, start_index_map={1},
    operand_batching_dims={0}, start_indices_batching_dims={1}, index_vector_dim=2, slice_sizes={1,2,5}""",
    "gather with a leading index vector": """  p = f32[6,7] parameter(0)
  i = s32[2,9] parameter(1)
  ROOT r = f32[9,2,3] gather(p, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0},
    index_vector_dim=0, slice_sizes={2,3}""",
    "scatter of windows": """  p = f32[6,7] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4,2,7] parameter(2)
  ROOT r = f32[6,7] scatter(p, i, u), update_window_dims={1,2}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mul""",
    "scatter with batching dimensions": """  p = f32[3,7,5] parameter(0)
  i = s32[2,3,1] parameter(1)
  u = f32[2,3,5] parameter(2)
  ROOT r = f32[3,7,5] scatter(p, i, u), update_window_dims={2}, inserted_window_dims={1},
    scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2,
    to_apply=add""",
    "reduce-window with all dilations": """  p = f32[7,8] parameter(0)
  z = f32[] constant(-inf)
  ROOT r = f32[7,4] reduce-window(p, z),
    window={size=2x3 stride=2x2 pad=1_2x0_1 lhs_dilate=2x1 rhs_dilate=2x1}, to_apply=max""",
    "cumulative sum by reduce-window": """  p = f32[40] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[40] reduce-window(p, z), window={size=40 pad=39_0}, to_apply=add""",
    "select-and-scatter with overlaps": """  p = f32[7,9] parameter(0)
  s = f32[4,4] parameter(1)
  z = f32[] constant(0.5)
  ROOT r = f32[7,9] select-and-scatter(p, s, z), window={size=3x3 stride=2x2 pad=1_1x0_0}, select=ge, scatter=add""",
    "sort along the first dimension": """  p = f32[17,3] parameter(0)
  ROOT r = f32[17,3] sort(p), dimensions={0}, is_stable=true, to_apply=lt""",
    "topk, smallest": "  p = f32[4,33] parameter(0)\n  ROOT r = (f32[4,5], s32[4,5]) topk(p), k=5, largest=false",
    "fft of two dimensions": """  p = c64[3,4,6] parameter(0)
  ROOT r = c64[3,4,6] fft(p), fft_type=FFT, fft_length={4,6}""",
    "inverse fft of odd length": """  p = c64[3,7] parameter(0)
  ROOT r = c64[3,7] fft(p), fft_type=IFFT, fft_length={7}""",
    "real fft": "  p = f32[3,4,6] parameter(0)\n  ROOT r = c64[3,4,4] fft(p), fft_type=RFFT, fft_length={4,6}",
    "inverse real fft": "  p = c64[3,4] parameter(0)\n  ROOT r = f32[3,7] fft(p), fft_type=IRFFT, fft_length={7}",
    "batch normalisation, training": """  p = f32[4,3,5] parameter(0)
  s = f32[3] parameter(1)
  o = f32[3] parameter(2)
  ROOT r = (f32[4,3,5], f32[3], f32[3]) batch-norm-training(p, s, o), epsilon=0.01, feature_index=1""",
    "batch normalisation, gradient": """  p = f32[4,3,5] parameter(0)
  s = f32[3] parameter(1)
  m = f32[3] parameter(2)
  c = f32[3] constant({0.5, 1, 2})
  g = f32[4,3,5] parameter(3)
  ROOT r = (f32[4,3,5], f32[3], f32[3]) batch-norm-grad(p, s, m, c, g), epsilon=0.01, feature_index=1""",
    "philox u32": """  s = u64[3] parameter(0)
  ROOT r = (u64[3], u32[5,3]) rng-bit-generator(s), algorithm=rng_philox""",
    "philox u64": """  s = u64[3] parameter(0)
  ROOT r = (u64[3], u64[9]) rng-bit-generator(s), algorithm=rng_philox""",
    "philox u8": """  s = u64[3] parameter(0)
  ROOT r = (u64[3], u8[9]) rng-bit-generator(s), algorithm=rng_philox""",
    "default of two words": """  s = u64[2] parameter(0)
  ROOT r = (u64[2], u32[9]) rng-bit-generator(s), algorithm=rng_default""",
    "three-fry u32, odd": """  s = u64[2] parameter(0)
  ROOT r = (u64[2], u32[5,7]) rng-bit-generator(s), algorithm=rng_three_fry""",
    "three-fry u32, even": """  s = u64[2] parameter(0)
  ROOT r = (u64[2], u32[5,6]) rng-bit-generator(s), algorithm=rng_three_fry""",
    "three-fry u64": """  s = u64[2] parameter(0)
  ROOT r = (u64[2], u64[3]) rng-bit-generator(s), algorithm=rng_three_fry""",
    "three-fry u16": """  s = u64[2] parameter(0)
  ROOT r = (u64[2], u16[10]) rng-bit-generator(s), algorithm=rng_three_fry""",
    "reduce of two dimensions": """  p = f32[3,4,5] parameter(0)
  z = f32[] constant(1)
  ROOT r = f32[4] reduce(p, z), dimensions={0,2}, to_apply=mul""",
    "negative and interior padding": """  p = f32[5,4] parameter(0)
  v = f32[] parameter(1)
  ROOT r = f32[6,5] pad(p, v), padding=-1_-2_1x1_0_0""",
}
for _side in ("true", "false"):
    for _lower in ("true", "false"):
        for _transpose in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
            CASES[f"triangular-solve left={_side} lower={_lower} {_transpose}"] = f"""  a = c64[2,3,3] parameter(0)
  b = c64[2,3,3] parameter(1)
  ROOT r = c64[2,3,3] triangular-solve(a, b), left_side={_side}, lower={_lower}, transpose_a={_transpose}"""


@pytest.mark.parametrize("name", CASES)
def test_structural_opcodes_agree_with_xla(name: str):
    text = f"HloModule m\n{REGIONS}\nENTRY e {{\n{CASES[name]}\n}}\n"
    module = parse_module(text)
    inputs = fake_inputs(module, 7)
    results, expected = evaluate(module, inputs), XlaExecutable(text).execute(inputs)
    agree(module, expected, results)


@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky_agrees_with_xla_in_its_triangle(lower: str):
    text = (
        "HloModule m\nENTRY e {\n  p = f32[2,4,4] parameter(0)\n"
        f"  ROOT r = f32[2,4,4] cholesky(p), lower={lower}\n}}\n"
    )
    root = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    matrix = root @ root.swapaxes(1, 2) + 4 * np.eye(4, dtype=np.float32)
    keep = np.tril if lower == "true" else np.triu
    (actual,), (wanted,) = evaluate(parse_module(text), [matrix]), XlaExecutable(text).execute([matrix])
    assert np.allclose(keep(actual), keep(wanted), rtol=1e-4)
