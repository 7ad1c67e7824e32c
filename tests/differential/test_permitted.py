"""What the float rules leave open on given inputs is granted, and a wrong result beside it is not."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise, permutations

import ml_dtypes
import numpy as np
import pytest

from ...differential.bounds import bounds_of
from ...differential.comparison import disagreeing
from ...differential.permitted import Permitted
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.dtypes import FROM_NUMPY
from ..support.permits import permits

BIG, INF, NAN = np.float32(3e38), np.inf, np.nan

ADD = "add { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b) }\n"
ROWS = f"""HloModule m
{ADD}ENTRY e {{ x = f32[1,4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[1] reduce(x, z), dimensions={{1}}, to_apply=add }}
"""
WINDOWS = ROWS.replace(
    "ROOT r = f32[1] reduce(x, z), dimensions={1}", "ROOT r = f32[1,1] reduce-window(x, z), window={size=1x4}"
)
PAIRS = """HloModule m
both { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  x = f32[] add(a, c)
  y = f32[] maximum(b, d)
  ROOT t = (f32[], f32[]) tuple(x, y) }
ENTRY e { x = f32[1,4] parameter(0)
  z = f32[] constant(0)
  l = f32[] constant(-inf)
  t = (f32[1], f32[1]) reduce(x, x, z, l), dimensions={1}, to_apply=both
  ROOT r = f32[1] get-tuple-element(t), index=0 }
"""
ENTRIES = """HloModule m
ENTRY e { x = f32[1,4] parameter(0)
  w = f32[4] constant({1, 1, 1, 1})
  ROOT r = f32[1] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""


DOT = """HloModule m
ENTRY e {{ x = {t}[{n}] parameter(0)
  y = {t}[{n}] parameter(1)
  ROOT r = {t}[] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}} }}
"""


@pytest.mark.parametrize("text", [ROWS, WINDOWS, PAIRS, ENTRIES], ids=["reduce", "window", "pairs", "dot"])
@pytest.mark.parametrize("row, allowed, wrong", [
    ([BIG, BIG, -BIG, -BIG], [0, INF, -INF, NAN], [BIG, -BIG]),
    ([BIG, BIG, -BIG, 1], [BIG, INF], [-INF, NAN, 0]),
    ([-BIG, -BIG, BIG, 1], [-BIG, -INF], [INF, NAN, 0]),
    ([BIG, -BIG, 1, 1], [2], [INF, -INF, NAN]),
    ([BIG, BIG, -INF, 1], [-INF, NAN], [INF, 0]),
    ([-BIG, -BIG, INF, 1], [INF, NAN], [-INF, 0]),
    ([-BIG, -BIG, -INF, 1], [-INF], [INF, NAN, 0]),
    ([INF, -INF, BIG, BIG], [NAN], [INF, -INF, 0]),
    ([NAN, BIG, BIG, BIG], [NAN], [INF, 0]),
    ([1, 2, 3, 4], [10, 10.000001], [INF, NAN, 10.0001, 9.9999]),
])  # fmt: skip
def test_sums_overflow_only_where_terms_of_one_sign_do(text, row, allowed, wrong):
    inputs = [np.array([row], np.float32)]
    assert [v for v in allowed if not permits(text, inputs, v)] == []
    assert [v for v in wrong if permits(text, inputs, v)] == []


@pytest.mark.parametrize("signs, allowed, wrong", [
    (([BIG, -BIG], [2, 1]), [BIG, INF], [-INF, NAN, 0]),  # 2 · BIG overflows unless it is fused, or scaled
    (([BIG, -INF], [2, 1]), [-INF, NAN], [INF, 0]),
    (([BIG, -INF], [1, 1]), [-INF], [INF, NAN]),
    (([-BIG, BIG], [-1, -1]), [0], [INF, -INF, NAN]),
    (([-BIG, -BIG, BIG], [-1, -1, -1.1]), [2.7e38, INF], [-INF, NAN]),
    (([BIG, BIG, BIG], [-1, -1, 1.1]), [-2.7e38, -INF], [INF, NAN]),
])  # fmt: skip
def test_products_overflow_only_where_their_sums_may(signs, allowed, wrong):
    text = DOT.format(t="f32", n=len(signs[0]))
    inputs = [np.array(x, np.float32) for x in signs]
    assert [v for v in allowed if not permits(text, inputs, v)] == []
    assert [v for v in wrong if permits(text, inputs, v)] == []


@pytest.mark.parametrize("name, kind", [("f8e4m3fn", ml_dtypes.float8_e4m3fn), ("f8e5m2", ml_dtypes.float8_e5m2)])
@pytest.mark.parametrize("row", [
    (1, 1 / 14, -1 / 14, 0), (1, 1 / 28, 1 / 56, -1 / 28), (1, 1 / 7, -13 / 14, 1 / 28), (-1, -1 / 7, 13 / 14, 0),
    (-1, 1, 1 / 2, -1 / 2), (1, 1, -1, -1), (3 / 4, 3 / 8, -1 / 2, -1 / 4), (1 / 2, -1, -1 / 14, 1 / 56),
])  # fmt: skip
def test_sums_of_narrow_floats_overflow_in_some_orders(name, kind, row):
    """Whatever an order gives, rounded in each step or once, overflow being NaN or infinite."""
    x = (np.array(row) * float(ml_dtypes.finfo(kind).max)).astype(kind)
    for text in (ROWS.replace("f32", name), WINDOWS.replace("f32", name)):
        module = parse_module(text)
        permitted, bound = Permitted(module, [x[None]]), bounds_of(module)[0]
        shape = module.result_shape.dims
        for order in permutations(x):
            steps = reduce(lambda a, b: (np.float32(a) + np.float32(b)).astype(kind), order)
            once = sum(order, start=np.float32(0)).astype(kind)
            assert not any(permitted.forbids(0, np.full(shape, v), bound).any() for v in (steps, once)), order


@pytest.mark.parametrize("name, kind", [("f8e4m3fn", ml_dtypes.float8_e4m3fn), ("f8e5m2", ml_dtypes.float8_e5m2)])
@pytest.mark.parametrize("row, wrong", [
    ((1 / 4, -1 / 4, 1 / 14, 0), (NAN, INF, 1, -1)),
    ((1, 1, 1, 1), (0, 1 / 4, -1)),
    ((-1, 1 / 28, -1 / 2, -1), (0, 1)),
])  # fmt: skip
def test_sums_of_narrow_floats_are_seen_to_be_wrong(name, kind, row, wrong):
    most = float(ml_dtypes.finfo(kind).max)
    x = (np.array(row) * most).astype(kind)
    for text in (ROWS.replace("f32", name), WINDOWS.replace("f32", name)):
        assert [w for w in wrong if permits(text, [x[None]], np.float64(w * most).astype(kind))] == []


def test_many_open_sums_may_go_the_same_way():
    """Chosen apart, eight of them would hardly ever have no NaN and one sign."""
    text = f"""HloModule m
{ADD}ENTRY e {{ x = f32[8,4] parameter(0)
  z = f32[] constant(0)
  s = f32[8] reduce(x, z), dimensions={{1}}, to_apply=add
  ROOT r = f32[] reduce(s, z), dimensions={{0}}, to_apply=add }}
"""
    inputs = [np.tile(np.array([BIG, BIG, -BIG, -BIG], np.float32), (8, 1))]
    assert [v for v in (0, INF, -INF, NAN) if not permits(text, inputs, v)] == []


@pytest.mark.parametrize("name, kind, big", [
    ("f64", np.float64, 1.5e308), ("f16", np.float16, 6e4), ("bf16", ml_dtypes.bfloat16, 3e38),
])  # fmt: skip
def test_sums_of_other_types_overflow_likewise(name, kind, big):
    x = np.array([[big, big, -big, 1]], kind)
    for text, inputs in (
        (ROWS.replace("f32", name), [x]), (DOT.format(t=name, n=4), [x[0], np.ones(4, kind)]),
    ):  # fmt: skip
        assert [v for v in (big, INF) if not permits(text, inputs, v)] == []
        assert [v for v in (-INF, NAN, big / 2) if permits(text, inputs, v)] == []


@pytest.mark.parametrize("name, kind, big", [
    ("f64", np.float64, 1.5e308), ("f32", np.float32, 3e38), ("c128", np.complex128, 1.5e308),
])  # fmt: skip
@pytest.mark.parametrize("row", [[1, -1], [1, 1, -1, -1]])  # the magnitudes overflow together, or those of one sign
def test_what_is_left_of_the_largest_terms_has_their_error(name, kind, big, row):
    x = np.array([[big * r for r in row] + [1, 2]], kind)
    zero = "constant((0, 0))" if name == "c128" else "constant(0)"
    rows = ROWS.replace("f32", name).replace("1,4", f"1,{x.size}").replace("constant(0)", zero)
    for text, inputs in ((rows, [x]), (DOT.format(t=name, n=x.size), [x[0], np.ones(x.size, kind)])):
        assert [v for v in (0, 1, 2, 3) if not permits(text, inputs, v)] == []
        assert [v for v in (big / 1000, -big / 1000) if permits(text, inputs, v)] == []


def test_parts_of_complex_sums_overflow_likewise():
    x = np.array([BIG, BIG, -BIG], np.complex64) * 1j
    for text, inputs in ((DOT.format(t="c64", n=3), [x, np.ones(3, np.complex64)]), (COMPLEX_ROWS, [x[None]])):
        assert permits(text, inputs, complex(0, BIG)) and permits(text, inputs, complex(0, INF))
        assert not permits(text, inputs, complex(0, 1e38))
    assert not permits(COMPLEX_ROWS, [x[None]], complex(INF, BIG)) and not permits(COMPLEX_ROWS, [x[None]], NAN)


COMPLEX_ROWS = ROWS.replace("f32", "c64").replace("1,4", "1,3").replace("constant(0)", "constant((0, 0))")


def test_what_follows_an_open_sum_is_open_too_and_nothing_else():
    text = f"""HloModule m
{ADD}ENTRY e {{ x = f32[2,4] parameter(0)
  z = f32[] constant(0)
  s = f32[2] reduce(x, z), dimensions={{1}}, to_apply=add
  ROOT r = f32[2] tanh(s) }}
"""
    module, inputs = parse_module(text), [np.array([[BIG, BIG, -BIG, -BIG], [1, 2, -1, -2]], np.float32)]
    forbidden = [
        Permitted(module, inputs).forbids(0, np.array([v, v], np.float32), bounds_of(module)[0]).tolist()
        for v in (1, -1, NAN, 0, 2)
    ]
    assert forbidden == [[False, True], [False, True], [False, True], [False, False], [True, True]]


TWICE = "HloModule m\nENTRY e { x = f32[1,4] parameter(0)\n  ROOT r = f32[1,4] add(x, x) }\n"
ZEROS = {
    "reduce": (ROWS, True),
    "window": (WINDOWS, True),
    "pairs": (PAIRS, True),
    "dot": (ENTRIES, True),
    "twice": (TWICE, False),
    "maximum": (ROWS.replace("add(", "maximum("), False),
}


@pytest.mark.parametrize("text, free", ZEROS.values(), ids=ZEROS)
def test_the_sign_of_a_zero_is_free_in_sums_only(text, free):
    """Also where sums have no rounding errors; then nothing else is free."""
    inputs = [np.zeros((1, 4), np.float32)]
    assert permits(text, inputs, 0.0, rounding=False)
    assert permits(text, inputs, -0.0, rounding=False) == free
    assert not permits(text, inputs, 1e-30, rounding=False)
    ones = [np.ones((1, 4), np.float32)]
    (result,) = evaluate(parse_module(text), ones)
    assert not permits(text, ones, np.nextafter(result.flat[0], np.float32(9)), rounding=False)


def test_cancellation_takes_errors_of_the_terms_and_no_more():
    """1000.0 + … - 1000.0: an error of one step is 3e-5, whatever is left."""
    inputs = [np.array([[1000.1, 0.01, -1000.1, 0.0001]], np.float32)]
    (exact,) = evaluate(parse_module(ROWS), inputs)
    bound = bounds_of(parse_module(ROWS))[0]
    assert bound.ulp * np.spacing(exact[0]) < 1e-8
    assert permits(ROWS, inputs, exact[0] + np.spacing(np.float32(1000)))
    assert not permits(ROWS, inputs, exact[0] + 20 * np.spacing(np.float32(1000)))
    assert not permits(ROWS, inputs, exact[0] - 0.01)  # a term is missing


CUBE = """c = f32[1,1] cholesky(x), lower=true
  m = f32[1] reshape(c)"""
PRODUCT = "m = f32[1] reduce(x, o), dimensions={1}, to_apply=mul"
SQUARE = "q = f32[1,1] multiply(x, x)\n  m = f32[1] reshape(q)"


@pytest.mark.parametrize("lines, values, steps", [
    (SQUARE, [1000.1], 1), (CUBE, [1000.1], 2), (PRODUCT, [11.1, 9.7, 10.3], 2),
], ids=["a fused product", "cholesky", "a product of all"])  # fmt: skip
def test_what_is_left_of_a_large_value_has_its_error(lines, values, steps):
    """m - (what m is) is 0, or some steps of m's size."""
    text = f"""HloModule m
mul {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] multiply(a, b) }}
ENTRY e {{ x = f32[1,{len(values)}] parameter(0)
  y = f32[1] parameter(1)
  o = f32[] constant(1)
  {lines}
  ROOT r = f32[1] subtract(m, y) }}
"""
    x = np.array([values], np.float32)
    (whole,) = evaluate(parse_module(text), [x, np.zeros(1, np.float32)])
    step = float(np.spacing(whole[0]))
    assert permits(text, [x, whole], steps * step / 2) and permits(text, [x, whole], -steps * step / 2)
    assert not permits(text, [x, whole], 100 * step)


def test_an_error_before_a_selection_of_small_values_stays_as_large():
    """tanh(x) - 1 is off by ulps of 1; the maximum of the differences is small itself."""
    text = """HloModule m
most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
ENTRY e { x = f32[4] parameter(0)
  t = f32[4] tanh(x)
  o = f32[4] constant({1, 1, 1, 1})
  d = f32[4] subtract(t, o)
  n = f32[] constant(-inf)
  ROOT r = f32[] reduce(d, n), dimensions={0}, to_apply=most }
"""
    inputs = [np.array([1, 2, 3, 0.5], np.float32)]
    (exact,) = evaluate(parse_module(text), inputs)
    one = np.spacing(np.float32(0.5))
    assert permits(text, inputs, exact + 2 * one) and permits(text, inputs, exact - 2 * one)
    assert not permits(text, inputs, exact + 40 * one)


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("direction, least", [("EQ", 1), ("NE", 0), ("GT", 0), ("LE", 1), ("LT", None), ("GE", None)])
def test_a_subnormal_of_a_narrow_float_may_compare_as_zero(kind, direction, least):
    """least: the result if it counts as 0, where that is another result."""
    name = "bf16" if kind is ml_dtypes.bfloat16 else "f16"
    text = f"""HloModule m
ENTRY e {{ x = {name}[1] parameter(0)
  z = {name}[1] constant({{0}})
  ROOT r = pred[1] compare(x, z), direction={direction} }}
"""
    info = ml_dtypes.finfo(kind)
    tiny, normal, nan = (np.array([v], kind) for v in (info.smallest_subnormal, info.smallest_normal, np.nan))
    truth = {"EQ": 0, "NE": 1, "GT": 1, "LE": 0, "LT": 0, "GE": 1}[direction]
    assert permits(text, [tiny], truth)
    assert permits(text, [tiny], 1 - truth) == (least is not None)
    assert permits(text, [normal], truth) and not permits(text, [normal], 1 - truth)
    assert permits(text, [nan], direction == "NE") and not permits(text, [nan], direction != "NE")


@pytest.mark.parametrize(
    "op, flushed, wrong",
    [
        ("divide(x, x)", np.nan, 2.0),
        ("multiply(x, k)", 0.0, 9e-3),
        ("sign(x)", 0.0, -1.0),
        ("ceil(x)", 0.0, 2.0),
        ("floor(n)", -0.0, 1.0),
        ("exponential(x)", 0.5, 2.0),
    ],
)
def test_a_subnormal_of_f16_may_count_as_zero_in_arithmetic(op, flushed, wrong):
    text = f"""HloModule m
ENTRY e {{ x = f16[1] parameter(0)
  n = f16[1] negate(x)
  k = f16[1] constant({{6e4}})
  ROOT r = f16[1] {op} }}
"""
    tiny = [np.array([1e-7], np.float16)]
    (truth,) = evaluate(parse_module(text), tiny)
    is_free = op != "exponential(x)"
    assert permits(text, tiny, truth) and permits(text, tiny, flushed) == is_free and not permits(text, tiny, wrong)
    assert not permits(text, [np.array([1e-4], np.float16)], flushed)


def test_narrow_numbers_are_compared_in_their_order():
    text = """HloModule m
ENTRY e { x = bf16[1] parameter(0)
  y = bf16[1] parameter(1)
  ROOT r = pred[1] compare(x, y), direction=LT }
"""
    numbers = [np.array([x], ml_dtypes.bfloat16) for x in (-2, -1, 1, 2)]
    for low, high in pairwise(numbers):
        assert permits(text, [low, high], True) and not permits(text, [low, high], False)
        assert permits(text, [high, low], False) and not permits(text, [high, low], True)


def test_integers_are_never_free():
    text = "HloModule m\nENTRY e { x = s32[3] parameter(0)\n  ROOT r = s32[3] add(x, x) }\n"
    assert permits(text, [np.ones(3, np.int32)], 2) and not permits(text, [np.ones(3, np.int32)], 3)


TRAINING = """HloModule m
ENTRY e { x = f64[17,2] parameter(0)
  scale = f64[2] constant({1, 1})
  offset = f64[2] constant({0, 0})
  t = (f64[17,2], f64[2], f64[2]) batch-norm-training(x, scale, offset), epsilon=0.5, feature_index=1
  ROOT r = f64[2] get-tuple-element(t), index=2 }
"""
MEAN = f"""HloModule m
{ADD.replace("f32", "f64")}ENTRY e {{ x = f64[17,2] parameter(0)
  z = f64[] constant(0)
  s = f64[2] reduce(x, z), dimensions={{0}}, to_apply=add
  n = f64[2] constant({{17, 17}})
  m = f64[2] divide(s, n)
  b = f64[17,2] broadcast(m), dimensions={{1}}
  ROOT r = f64[17,2] subtract(x, b) }}
"""


def test_what_cancels_in_a_batch_norm_is_off_by_what_cancels():
    """Equal elements: by E[(x - E[x])²] the variance is some 1e-32, by E[x²] - E[x]² some 1e-16, of both signs."""
    same = [np.full((17, 2), 0.8703575474)]
    assert all(permits(TRAINING, same, value) for value in (0.0, 5e-32, 2e-16, -2e-16))
    assert not any(permits(TRAINING, same, value) for value in (1e-6, -1e-6, 0.75, np.nan))
    spread = [np.linspace([-1.0, -1.0], [1.0, 1.0], 17)]
    assert permits(TRAINING, spread, 0.375)
    assert not any(permits(TRAINING, spread, value) for value in (0.3750001, 0.0, 0.3529411764705882))


def test_the_distance_from_a_mean_is_off_by_what_cancels():
    same = [np.full((17, 2), 0.8703575474)]
    assert all(permits(MEAN, same, value) for value in (0.0, 2e-16, -2e-16))
    assert not any(permits(MEAN, same, value) for value in (1e-12, 0.05))


TRANSFORMS = {
    "FFT": ("c64[2,8]", "c64[2,8]", np.complex64),
    "IFFT": ("c128[2,8]", "c128[2,8]", np.complex128),
    "RFFT": ("f64[2,8]", "c128[2,5]", np.float64),
    "IRFFT": ("c64[2,5]", "f32[2,8]", np.complex64),
}


@pytest.mark.parametrize("kind", TRANSFORMS)
@pytest.mark.parametrize("special", ["nan", "inf", "most"])
def test_a_transform_spreads_what_is_not_finite_and_no_other_does(kind, special):
    given, result, dtype = TRANSFORMS[kind]
    module = parse_module(f"""HloModule m
ENTRY e {{ x = {given} parameter(0)
  ROOT r = {result} fft(x), fft_type={kind}, fft_length={{8}} }}
""")
    x = np.linspace(1, 2, int(np.prod(module.entry.parameters[0].shape.dims))).reshape(2, -1).astype(dtype)
    x[0, 1:3] = {"nan": NAN, "inf": INF, "most": np.finfo(dtype).max}[special]
    (expected,) = evaluate(module, [x])
    (bound,) = bounds_of(module)
    permitted = Permitted(module, [x])
    for value in (NAN, INF, -INF):
        both = np.full_like(expected, complex(value, value) if expected.dtype.kind == "c" else value)
        assert not permitted.forbids(0, np.where([[True], [False]], both, expected), bound).any()
        assert permitted.forbids(0, both, bound)[1].all()
    other = np.full_like(expected, 1e4)  # among numbers as large as `most`, it would be within the bound
    assert special == "most" or permitted.forbids(0, other, bound).all()


def test_transforms_of_nothing_have_no_results():
    module = parse_module("""HloModule m
ENTRY e { x = c64[0,8] parameter(0)
  ROOT r = c64[0,8] fft(x), fft_type=FFT, fft_length={8} }
""")
    (bound,) = bounds_of(module)
    empty = np.zeros((0, 8), np.complex64)
    assert Permitted(module, [empty]).forbids(0, empty, bound).shape == (0, 8)


@pytest.mark.parametrize("narrow", [
    "f32[2] reduce-precision(m), exponent_bits=8, mantissa_bits=1", "bf16[2] convert(m)",
])  # fmt: skip
def test_a_subnormal_that_arithmetic_keeps_may_be_rounded_to_the_least_normal_number(narrow):
    lines = ["x = f32[2] parameter(0)", "y = f32[2] parameter(1)", "m = f32[2] NAME(x, y)", f"ROOT r = {narrow}"]
    text = "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"
    kept, moved = (parse_module(text.replace("NAME(x, y)", op)) for op in ("maximum(x, y)", "copy(x)"))
    x = np.array([1.1754e-38, -1.1754e-38], np.float32)
    least = np.array([2.0**-126, -(2.0**-126)], np.float32)
    for module, agrees in ((kept, True), (moved, False)):
        (bound,), (result,) = bounds_of(module), evaluate(module, [x, x][: len(module.entry.parameters)])
        dtype = FROM_NUMPY[result.dtype]
        zero = np.copysign(np.zeros(2), least).astype(result.dtype)
        assert disagreeing(zero, least.astype(result.dtype), dtype, bound).any() != agrees
        assert disagreeing(zero, (2 * least).astype(result.dtype), dtype, bound).all()


@pytest.mark.parametrize(("operand", "free"), [(complex(0, NAN), True), (complex(0, 2), False)])
def test_signs_beside_a_nan_are_free(operand, free):
    module = parse_module("HloModule m\nENTRY e { x = c64[1] parameter(0)\n  ROOT r = c64[1] acosh(x) }\n")
    x = np.array([operand], np.complex64)
    (expected,) = evaluate(module, [x])
    other = expected.copy()
    other.imag = -expected.imag
    (bound,) = bounds_of(module)
    assert np.isfinite(expected.imag) and Permitted(module, [x]).forbids(0, other, bound)[0] != free


@pytest.mark.parametrize("op", ["sine", "cosine"])
def test_complex_sines_are_off_relative_to_one(op):
    (bound,) = bounds_of(
        parse_module(f"HloModule m\nENTRY e {{ x = c64[1] parameter(0)\n  ROOT r = c64[1] {op}(x) }}\n")
    )
    exact = np.array([0.009056129 + 0.014017288j], np.complex64)
    assert not disagreeing(exact + np.complex64(2e-7j), exact, FROM_NUMPY[exact.dtype], bound).any()
    assert disagreeing(exact + np.complex64(2e-6j), exact, FROM_NUMPY[exact.dtype], bound).all()


@pytest.mark.parametrize(("exponent", "free"), [(2.7724715e26, True), (2.7724715, False)])
def test_a_complex_power_has_any_direction_where_its_angle_is_large(exponent, free):
    """The angle is exponent · log |x|, and a rounding of the logarithm turns the result; its magnitude is known."""
    text = "HloModule m\nENTRY e { x = c64[1] parameter(0)\n y = c64[1] parameter(1)\n ROOT r = c64[1] power(x, y) }\n"
    module, given = parse_module(text), [np.array([1.317117], np.complex64), np.array([-1e-3 - 1j * exponent], "c8")]
    (found,), (bound,), permitted = evaluate(module, given), bounds_of(module), Permitted(module, given)
    for turn in (0.5, 1.5j, -1j, -1):
        turned = (found * np.complex64(turn / abs(turn) if free else np.exp(1e-2j))).astype(np.complex64)
        assert permitted.forbids(0, turned, bound)[0] != free
    assert permitted.forbids(0, (found * np.complex64(1.7)).astype(np.complex64), bound)[0]
    assert not permitted.forbids(0, found, bound)[0]


def test_a_long_chain_of_narrow_sums_may_stand_still():
    """Next to a maximum, a sum of bf16 rounds at each step on one stack, and is made of partial sums on the other."""
    text = """HloModule m
both {
  s = bf16[] parameter(0)
  m = bf16[] parameter(1)
  x = bf16[] parameter(2)
  y = bf16[] parameter(3)
  t = bf16[] add(s, x)
  n = bf16[] maximum(m, y)
  ROOT r = (bf16[], bf16[]) tuple(t, n)
}
ENTRY e {
  x = bf16[911] parameter(0)
  y = bf16[911] parameter(1)
  zero = bf16[] constant(0)
  least = bf16[] constant(-inf)
  ROOT r = (bf16[], bf16[]) reduce(x, y, zero, least), dimensions={0}, to_apply=both
}
"""
    x = np.full(911, 0.4, ml_dtypes.bfloat16)
    for length, right, wrong in ((911, (128, 364), (-364, 1024)), (100, (40,), (20, 128))):
        inputs = [x[:length], x[:length]]
        program = text.replace("911", str(length)).replace(
            "ROOT r = (bf16[], bf16[]) reduce", "b = (bf16[], bf16[]) reduce"
        )
        program = program.replace("to_apply=both }", "to_apply=both\n  ROOT t = bf16[] get-tuple-element(b), index=0 }")
        program = program.replace(
            "to_apply=both\n}", "to_apply=both\n  ROOT t = bf16[] get-tuple-element(b), index=0\n}"
        )
        values = [(value, permits(program, inputs, value)) for value in (*right, *wrong)]
        assert values == [(value, value in right) for value in (*right, *wrong)]
