"""Cases of opcodes that compute or move arrays: elementwise, movement, regions, linear algebra."""

import math

from ...hlo.opcodes import Op
from .opcode_case import Case, binary, on, real, unary

ELEMENTWISE_CASES = {
    Op.ABS: unary(Op.ABS, "s32", [-3, 0, 5], [3, 0, 5]),
    Op.ACOS: real(Op.ACOS, math.acos, -0.5, 0.0, 1.0),
    Op.ACOSH: real(Op.ACOSH, math.acosh, 1.0, 2.5),
    Op.ASIN: real(Op.ASIN, math.asin, -0.5, 0.3),
    Op.ASINH: real(Op.ASINH, math.asinh, -2.0, 0.3),
    Op.ATANH: real(Op.ATANH, math.atanh, -0.5, 0.3),
    Op.CBRT: unary(Op.CBRT, "f64", [-8.0, 27.0], [-2.0, 3.0]),
    Op.CEIL: unary(Op.CEIL, "f32", [-1.5, 0.2], [-1.0, 1.0]),
    Op.COSINE: real(Op.COSINE, math.cos, 0.0, 2.0, 1e6),
    Op.COSH: real(Op.COSH, math.cosh, -1.0, 3.0),
    Op.COUNT_LEADING_ZEROS: unary(Op.COUNT_LEADING_ZEROS, "u8", [0, 1, 255], [8, 7, 0]),
    Op.ERF: real(Op.ERF, math.erf, -0.5, 2.0),
    Op.EXPONENTIAL: real(Op.EXPONENTIAL, math.exp, -1.0, 3.0),
    Op.EXPONENTIAL_MINUS_ONE: real(Op.EXPONENTIAL_MINUS_ONE, math.expm1, 1e-9, 2.0),
    Op.FLOOR: unary(Op.FLOOR, "f32", [-1.5, 1.9], [-2.0, 1.0]),
    Op.IMAG: unary(Op.IMAG, "c64", [1 + 2j, -3j], [2.0, -3.0], "f32"),
    Op.IS_FINITE: unary(Op.IS_FINITE, "f32", [1.0, math.inf, math.nan], [True, False, False], "pred"),
    Op.LOG: real(Op.LOG, math.log, 0.5, 10.0),
    Op.LOG_PLUS_ONE: real(Op.LOG_PLUS_ONE, math.log1p, 1e-9, 2.0),
    Op.LOGISTIC: real(Op.LOGISTIC, lambda x: 1 / (1 + math.exp(-x)), -2.0, 0.0, 3.0),
    Op.NEGATE: unary(Op.NEGATE, "s32", [1, -2], [-1, 2]),
    Op.NOT: unary(Op.NOT, "u8", [0, 5], [255, 250]),
    Op.POPCNT: unary(Op.POPCNT, "u8", [0, 7, 255], [0, 3, 8]),
    Op.REAL: unary(Op.REAL, "c64", [1 + 2j, -3j], [1.0, 0.0], "f32"),
    Op.ROUND_NEAREST_AFZ: unary(Op.ROUND_NEAREST_AFZ, "f32", [0.5, -2.5, 2.4], [1.0, -3.0, 2.0]),
    Op.ROUND_NEAREST_EVEN: unary(Op.ROUND_NEAREST_EVEN, "f32", [0.5, -2.5, 2.6], [0.0, -2.0, 3.0]),
    Op.RSQRT: unary(Op.RSQRT, "f64", [4.0, 0.25], [0.5, 2.0]),
    Op.SIGN: unary(Op.SIGN, "f32", [-7.0, 0.0, 3.0], [-1.0, 0.0, 1.0]),
    Op.SINE: real(Op.SINE, math.sin, 0.5, -2.0, 1e6),
    Op.SINH: real(Op.SINH, math.sinh, 0.5, -2.0),
    Op.SQRT: unary(Op.SQRT, "f64", [4.0, 2.0], [2.0, math.sqrt(2)]),
    Op.TAN: real(Op.TAN, math.tan, 0.5, -2.0),
    Op.TANH: real(Op.TANH, math.tanh, 0.5, -2.0),
    Op.CONVERT: unary(Op.CONVERT, "f32", [1.9, -300.0], [1, -128], "s8"),
    Op.BITCAST_CONVERT: unary(Op.BITCAST_CONVERT, "f32", [1.0, -2.0], [0x3F800000, 0xC0000000], "u32"),
    Op.REDUCE_PRECISION: on(
        "f32[2]", "reduce-precision(p0), exponent_bits=5, mantissa_bits=2", ("f32[2]", [1.1, 1.3]), to=[1.0, 1.25]
    ),
    # 1.3 lies 0.3 / 0.0078 = 38.4 steps of bf16 above 1: the random bits decide between 38 and 39
    Op.STOCHASTIC_CONVERT: on(
        "bf16[2]",
        "stochastic-convert(p0, p1)",
        ("f32[2]", [1.3, 1.3]),
        ("u32[2]", [0, 0xFFFFFFFF]),
        to=[1 + 38 / 128, 1 + 39 / 128],
    ),
    Op.ADD: binary(Op.ADD, "u8", [250, 1], [10, 2], [4, 3]),
    Op.AND: binary(Op.AND, "u8", [12], [10], [8]),
    Op.ATAN2: binary(Op.ATAN2, "f64", [1.0, -1.0], [1.0, -2.0], [math.atan2(1, 1), math.atan2(-1, -2)]),
    Op.COMPARE: binary(Op.COMPARE, "s32", [1, 2], [2, 1], [True, False], ", direction=LT", "pred"),
    Op.COMPLEX: binary(Op.COMPLEX, "f32", [1.0], [math.inf], [complex(1, math.inf)], result="c64"),
    Op.DIVIDE: binary(Op.DIVIDE, "s32", [-7, 7], [2, -2], [-3, -3]),
    Op.MAXIMUM: binary(Op.MAXIMUM, "f32", [1.0, math.nan], [2.0, 1.0], [2.0, math.nan]),
    Op.MINIMUM: binary(Op.MINIMUM, "f32", [1.0, math.nan], [2.0, 1.0], [1.0, math.nan]),
    Op.MULHI: binary(Op.MULHI, "u32", [1 << 31], [6], [3]),
    Op.MULTIPLY: binary(Op.MULTIPLY, "s8", [100, 3], [2, -4], [-56, -12]),
    Op.OR: binary(Op.OR, "u8", [12], [10], [14]),
    Op.POWER: binary(Op.POWER, "f64", [2.0, 9.0], [10.0, 0.5], [1024.0, 3.0]),
    Op.REMAINDER: binary(Op.REMAINDER, "s32", [-7, 7], [3, -3], [-1, 1]),
    Op.SHIFT_LEFT: binary(Op.SHIFT_LEFT, "u8", [3, 1], [6, 8], [192, 0]),
    Op.SHIFT_RIGHT_ARITHMETIC: binary(Op.SHIFT_RIGHT_ARITHMETIC, "s8", [-8, -1], [1, 9], [-4, -1]),
    Op.SHIFT_RIGHT_LOGICAL: binary(Op.SHIFT_RIGHT_LOGICAL, "s8", [-8, -1], [1, 9], [124, 0]),
    Op.SUBTRACT: binary(Op.SUBTRACT, "u8", [1], [2], [255]),
    Op.XOR: binary(Op.XOR, "u8", [12], [10], [6]),
    Op.CLAMP: on("s32[3]", "clamp(p0, p1, p2)", ("s32[]", 0), ("s32[3]", [-4, 2, 9]), ("s32[]", 5), to=[0, 2, 5]),
    Op.SELECT: on(
        "s32[2]", "select(p0, p1, p2)", ("pred[2]", [True, False]), ("s32[2]", [1, 2]), ("s32[2]", [3, 4]), to=[1, 4]
    ),
}

MOVEMENT = {
    Op.BITCAST: on("s32[4]{0}", "bitcast(p0)", ("s32[2,2]{0,1}", [[1, 2], [3, 4]]), to=[1, 3, 2, 4]),
    Op.BROADCAST: on("s32[2,3]", "broadcast(p0), dimensions={0}", ("s32[2]", [1, 2]), to=[[1, 1, 1], [2, 2, 2]]),
    Op.CONCATENATE: on(
        "s32[3]", "concatenate(p0, p1), dimensions={0}", ("s32[2]", [1, 2]), ("s32[1]", [3]), to=[1, 2, 3]
    ),
    Op.COPY: on("s32[2,2]{0,1}", "copy(p0)", ("s32[2,2]{1,0}", [[1, 2], [3, 4]]), to=[[1, 2], [3, 4]]),
    Op.DYNAMIC_RESHAPE: Case(
        """p = s32[6] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=6] set-dimension-size(p, n), dimensions={0}
  two = s32[] constant(2)
  r = s32[<=3,2] dynamic-reshape(d, two, two)
  c = s32[] get-dimension-size(r), dimensions={0}
  ROOT t = (s32[<=3,2], s32[]) tuple(r, c)""",
        ([[1, 2], [3, 4]], 2),
        ([1, 2, 3, 4, 5, 6], 4),
    ),
    Op.DYNAMIC_SLICE: on(
        "s32[2]", "dynamic-slice(p0, p1), dynamic_slice_sizes={2}", ("s32[4]", [1, 2, 3, 4]), ("s32[]", 3), to=[3, 4]
    ),
    Op.DYNAMIC_UPDATE_SLICE: on(
        "s32[4]",
        "dynamic-update-slice(p0, p1, p2)",
        ("s32[4]", [1, 2, 3, 4]),
        ("s32[2]", [8, 9]),
        ("s32[]", 1),
        to=[1, 8, 9, 4],
    ),
    Op.GATHER: on(
        "s32[2]",
        "gather(p0, p1), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1}",
        ("s32[4]", [5, 6, 7, 8]),
        ("s32[2,1]", [[2], [0]]),
        to=[7, 5],
    ),
    Op.GET_DIMENSION_SIZE: on("s32[]", "get-dimension-size(p0), dimensions={1}", ("s32[2,3]", [[0] * 3] * 2), to=3),
    Op.IOTA: Case("ROOT r = s32[2,3] iota(), iota_dimension=1", ([[0, 1, 2], [0, 1, 2]],)),
    Op.PAD: on("s32[6]", "pad(p0, p1), padding=1_2_1", ("s32[2]", [1, 2]), ("s32[]", 9), to=[9, 1, 9, 2, 9, 9]),
    Op.RESHAPE: on("s32[2,2]", "reshape(p0)", ("s32[4]", [1, 2, 3, 4]), to=[[1, 2], [3, 4]]),
    Op.REVERSE: on("s32[2,2]", "reverse(p0), dimensions={1}", ("s32[2,2]", [[1, 2], [3, 4]]), to=[[2, 1], [4, 3]]),
    Op.SCATTER: on(
        "f32[3]",
        "scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        ("f32[3]", [1.0, 2.0, 3.0]),
        ("s32[2,1]", [[1], [1]]),
        ("f32[2]", [10.0, 20.0]),
        to=[1.0, 32.0, 3.0],
    ),
    Op.SET_DIMENSION_SIZE: on(
        "s32[<=3]", "set-dimension-size(p0, p1), dimensions={0}", ("s32[3]", [1, 2, 3]), ("s32[]", 2), to=[1, 2]
    ),
    Op.SLICE: on("s32[2]", "slice(p0), slice={[1:4:2]}", ("s32[4]", [1, 2, 3, 4]), to=[2, 4]),
    Op.TRANSPOSE: on("s32[2,1]", "transpose(p0), dimensions={1,0}", ("s32[1,2]", [[1, 2]]), to=[[1], [2]]),
}

REGIONS = {
    Op.MAP: on(
        "f32[2]",
        "map(p0, p1), dimensions={0}, to_apply=add",
        ("f32[2]", [1.0, 2.0]),
        ("f32[2]", [3.0, 4.0]),
        to=[4.0, 6.0],
    ),
    Op.REDUCE: on(
        "f32[2]",
        "reduce(p0, p1), dimensions={1}, to_apply=add",
        ("f32[2,2]", [[1.0, 2.0], [3.0, 4.0]]),
        ("f32[]", 10.0),
        to=[13.0, 17.0],
    ),
    Op.REDUCE_WINDOW: on(
        "f32[3]",
        "reduce-window(p0, p1), window={size=2}, to_apply=add",
        ("f32[4]", [1.0, 2.0, 3.0, 4.0]),
        ("f32[]", 0.0),
        to=[3.0, 5.0, 7.0],
    ),
    Op.SCAN: Case(
        """p = f32[3] parameter(0)
  z = f32[] constant(0)
  ROOT r = (f32[3], f32[]) scan(p, z), dimensions={0}, num_carries=1, is_reverse=true, to_apply=step""",
        ([6.0, 5.0, 3.0], 6.0),
        ([1.0, 2.0, 3.0],),
        """step { x = f32[] parameter(0)
  c = f32[] parameter(1)
  s = f32[] add(x, c)
  ROOT t = (f32[], f32[]) tuple(s, s) }
""",
    ),
    Op.SELECT_AND_SCATTER: on(
        "f32[4]",
        "select-and-scatter(p0, p1, p2), window={size=2 stride=2}, select=ge, scatter=add",
        ("f32[4]", [1.0, 5.0, 7.0, 2.0]),
        ("f32[2]", [10.0, 20.0]),
        ("f32[]", 0.0),
        to=[0.0, 10.0, 20.0, 0.0],
    ),
    Op.SORT: on("f32[3]", "sort(p0), dimensions={0}, to_apply=ge", ("f32[3]", [1.0, 3.0, 2.0]), to=[3.0, 2.0, 1.0]),
    Op.TOPK: Case(
        "p = f32[4] parameter(0)\nROOT r = (f32[2], s32[2]) topk(p), k=2", ([9.0, 5.0], [2, 0]), ([5.0, 1.0, 9.0, 5.0],)
    ),
}

NORM = "epsilon=0, feature_index=1"
X = ("f64[2,1]", [[1.0], [3.0]])  # mean 2, variance 1

LINALG = {
    Op.BATCH_NORM_INFERENCE: on(
        "f64[2,1]",
        f"batch-norm-inference(p0, p1, p2, p3, p4), {NORM}",
        X,
        ("f64[1]", [10.0]),
        ("f64[1]", [5.0]),
        ("f64[1]", [1.0]),
        ("f64[1]", [4.0]),
        to=[[5.0], [15.0]],
    ),
    Op.BATCH_NORM_TRAINING: Case(
        f"""x = f64[2,1] parameter(0)
  s = f64[1] parameter(1)
  o = f64[1] parameter(2)
  ROOT r = (f64[2,1], f64[1], f64[1]) batch-norm-training(x, s, o), {NORM}""",
        ([[-5.0], [15.0]], [2.0], [1.0]),
        (X[1], [10.0], [5.0]),
    ),
    # the gradient of an upstream of 1 and 0: scale / 2 · (2·g - Σg - x̂·Σ(g·x̂)), with x̂ = -1 and 1
    Op.BATCH_NORM_GRAD: Case(
        f"""x = f64[2,1] parameter(0)
  s = f64[1] parameter(1)
  m = f64[1] parameter(2)
  v = f64[1] parameter(3)
  g = f64[2,1] parameter(4)
  ROOT r = (f64[2,1], f64[1], f64[1]) batch-norm-grad(x, s, m, v, g), {NORM}""",
        ([[0.0], [0.0]], [-1.0], [1.0]),
        (X[1], [10.0], [2.0], [1.0], [[1.0], [0.0]]),
    ),
    Op.CHOLESKY: on("f64[1,1]", "cholesky(p0), lower=true", ("f64[1,1]", [[9.0]]), to=[[3.0]]),
    Op.CONVOLUTION: on(
        "f32[1,2,1]",
        "convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f",
        ("f32[1,3,1]", [[[1.0], [2.0], [3.0]]]),
        ("f32[2,1,1]", [[[10.0]], [[1.0]]]),
        to=[[[12.0], [23.0]]],
    ),
    Op.DOT: on(
        "s32[2]",
        "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ("s32[2,2]", [[1, 2], [3, 4]]),
        ("s32[2]", [10, 1]),
        to=[12, 34],
    ),
    Op.FFT: on("c128[4]", "fft(p0), fft_type=FFT, fft_length={4}", ("c128[4]", [0j, 1, 0, 0]), to=[1, -1j, -1, 1j]),
    Op.RAGGED_DOT: on(
        "f32[3,1]",
        "ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
        ("f32[3,1]", [[1.0], [2.0], [3.0]]),
        ("f32[2,1,1]", [[[10.0]], [[100.0]]]),
        ("s32[2]", [1, 2]),
        to=[[10.0], [200.0], [300.0]],
    ),
    Op.SCALED_DOT: on(
        "f32[1,1]",
        "scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ("f32[1,2]", [[1.0, 2.0]]),
        ("f32[2,1]", [[3.0], [4.0]]),
        ("f32[1,1]", [[2.0]]),
        ("f32[2,1]", [[10.0], [100.0]]),
        to=[[2 * (30.0 + 800.0)]],
    ),
    Op.TRIANGULAR_SOLVE: on(
        "f64[2,1]",
        "triangular-solve(p0, p1), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
        ("f64[2,2]", [[2.0, 9.0], [1.0, 1.0]]),
        ("f64[2,1]", [[4.0], [5.0]]),
        to=[[2.0], [3.0]],
    ),
}
