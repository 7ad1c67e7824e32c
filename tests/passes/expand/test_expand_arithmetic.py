"""Expanders of batch normalisation, ragged and scaled dots, and stochastic conversions."""

import numpy as np
import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.dtypes import BY_NAME, DType
from ....hlo.opcodes import Op
from ...support.check import check
from ...support.passes import fill, opcodes, run, same


def entry(*lines: str) -> str:
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


# --- batch normalisation ---------------------------------------------------------------------------------------------

NORMS = {
    "batch-norm-inference": (4, lambda x, v: x),
    "batch-norm-training": (2, lambda x, v: f"({x}, {v}, {v})"),
    "batch-norm-grad": (3, lambda x, v: f"({x}, {v}, {v})"),
}


def norm(opcode: str, kind: str, dims: str, feature: int, vectors: str | None = None) -> str:
    count, result = NORMS[opcode]
    x, v = f"{kind}[{dims}]", f"{vectors or kind}[{dims.split(',')[feature]}]"
    shapes = [x, *[v] * count] + ([x] if opcode == "batch-norm-grad" else [])
    operands = ", ".join(f"p{n}" for n in range(len(shapes)))
    return entry(
        *(f"p{n} = {s} parameter({n})" for n, s in enumerate(shapes)),
        f"ROOT r = {result(x, v)} {opcode}({operands}), epsilon=0.001, feature_index={feature}",
    )


def norm_inputs(text: str, opcode: str) -> list[np.ndarray]:
    inputs = fill(parse_module(text), 7)
    variance = {"batch-norm-inference": 4, "batch-norm-grad": 3}.get(opcode)
    return [np.abs(x) if n == variance else x for n, x in enumerate(inputs)]


@pytest.mark.parametrize("opcode", NORMS)
@pytest.mark.parametrize(
    ("kind", "dims", "feature"),
    [("f32", "4,3,2", 1), ("f64", "2,3,4,5", 3), ("bf16", "3,6", 0), ("f16", "2,2,2,1", 2), ("f32", "3", 0),
     ("f32", "0,3", 1)],
)  # fmt: skip
def test_batch_norm(opcode, kind, dims, feature):
    text = norm(opcode, kind, dims, feature)
    inputs = norm_inputs(text, opcode)
    after = same(text, inputs, "expand-batch-norm")
    assert not {Op.BATCH_NORM_GRAD, Op.BATCH_NORM_INFERENCE, Op.BATCH_NORM_TRAINING} & opcodes(after)
    check(text, inputs)


def test_the_variance_of_large_numbers():
    """Where the mean is large beside the spread, the difference of two means would have no digit right."""
    text = norm("batch-norm-training", "f32", "64,2", 1)
    x, scale, offset = norm_inputs(text, "batch-norm-training")
    before, after = parse_module(text), run(text, "expand-batch-norm")
    inputs = [x + np.float32(3000), scale, offset]
    for wanted, given in zip(evaluate(before, inputs), evaluate(after, inputs), strict=True):
        assert np.allclose(wanted, given, rtol=1e-3, atol=1e-2)


# --- ragged-dot ------------------------------------------------------------------------------------------------------

RAGGED = [
    # free dimension: rows of a group meet the group's own matrix
    ("f32[11,5]", "f32[3,5,7]", "s32[3]", "f32[11,7]",
     "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
    ("f32[2,11,5]", "f32[2,5,3,7]", "s64[2,3]", "f32[2,11,7]",
     ("lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, "
      "lhs_ragged_dims={1}, rhs_group_dims={2}")),
    ("f32[2,11,5]", "f32[3,5,7]", "s32[2,3]", "f32[2,11,7]",
     "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={1}, rhs_group_dims={0}"),
    # contracting dimension: a result a group
    ("f32[11,5]", "f32[11,7]", "s32[3]", "f32[3,5,7]",
     "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}"),
    # batch dimension: a plain dot
    ("f32[11,5,2]", "f32[11,2,7]", "s32[3]", "f32[11,5,7]",
     "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}"),
]  # fmt: skip


@pytest.mark.parametrize("sizes", [(3, 0, 4), (11, 0, 0), (5, 5, 1), (0, 0, 0)])
@pytest.mark.parametrize("number", range(len(RAGGED)))
def test_ragged_dot(number, sizes):
    x, y, groups, result, how = RAGGED[number]
    text = entry(f"x = {x} parameter(0)", f"y = {y} parameter(1)", f"g = {groups} parameter(2)",
                 f"ROOT r = {result} ragged-dot(x, y, g), {how}")  # fmt: skip
    left, right, given = fill(parse_module(text), number)
    inputs = [left, right, np.broadcast_to(np.array(sizes), given.shape).astype(given.dtype)]
    after = same(text, inputs, "expand-dots")
    assert Op.RAGGED_DOT not in opcodes(after)
    if sizes == (3, 0, 4):
        check(text, inputs)


@pytest.mark.parametrize("kind", ["bf16", "s8"])
def test_ragged_dot_of_other_types(kind):
    x, y, groups, result, how = RAGGED[0]
    wide = "s32" if kind == "s8" else kind
    text = entry(f"x = {x} parameter(0)", f"y = {y} parameter(1)", f"g = {groups} parameter(2)",
                 f"ROOT r = {result.replace('f32', wide)} ragged-dot(x, y, g), {how}")  # fmt: skip
    text = text.replace("f32", kind)
    check(text, [*fill(parse_module(text), 3)[:2], np.array([2, 9, 0], np.int32)])


# --- scaled-dot ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "scale", "result"),
    [("f8e4m3fn", "f8e8m0fnu", "f32"), ("bf16", "bf16", "bf16"), ("f32", "f32", "f32"), ("f8e5m2", "bf16", "f16")],
)
def test_scaled_dot(kind, scale, result):
    text = entry(
        f"x = {kind}[2,4,64] parameter(0)", f"y = {kind}[2,64,3] parameter(1)", f"a = {scale}[2,4,2] parameter(2)",
        f"b = {scale}[2,1,3] parameter(3)",
        f"ROOT r = {result}[2,4,3] scaled-dot(x, y, a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    )  # fmt: skip
    inputs = fill(parse_module(text), 5)
    inputs[2:] = [np.abs(x.astype(np.float32)).astype(x.dtype) for x in inputs[2:]]
    after = same(text, inputs, "expand-dots")
    assert Op.SCALED_DOT not in opcodes(after)
    check(text, inputs)


def test_scaled_dot_with_a_scalar_for_no_scale():
    text = entry(
        "x = bf16[4,8] parameter(0)", "y = bf16[8,3] parameter(1)", "a = bf16[4,2] parameter(2)",
        "b = bf16[] constant(1)",
        "ROOT r = f32[4,3] scaled-dot(x, y, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )  # fmt: skip
    same(text, fill(parse_module(text), 6), "expand-dots")
    check(text)


# --- stochastic-convert ----------------------------------------------------------------------------------------------

CORNERS = [0.0, -0.0, 0.25, -0.25, 0.5, 1.75, -1.75, 126.5, 127.5, -128.5, 3e4, -3e4, np.inf, -np.inf, np.nan]


ROUNDED_TO = ("s8", "u8", "s16", "s32", "u32", "s64")


@pytest.mark.parametrize(
    "source, target",
    [
        *((source, target) for source in ("f64", "f32", "bf16", "f16") for target in ROUNDED_TO),
        *(("f32", target) for target in ("bf16", "f16", "f8e4m3fn")),  # floats are rounded from f32 alone
    ],
)
def test_stochastic_convert(source, target):
    kind, bits = BY_NAME[source], BY_NAME[f"u{BY_NAME[source].bits}"]
    most = 2**bits.bits - 1
    random = [0, 1, most // 4 - 1, most // 4, most // 4 + 1, most // 2, most // 2 + 1, most // 4 * 3, most]
    x, r = np.meshgrid(np.array(CORNERS), np.array(random, np.uint64))
    text = entry(
        f"x = {source}[9,15] parameter(0)", f"r = {bits.value}[9,15] parameter(1)",
        f"ROOT c = {target}[9,15] stochastic-convert(x, r)",
    )  # fmt: skip
    inputs = [x.astype(kind.numpy), r.astype(bits.numpy)]
    after = same(text, inputs, "expand-stochastic-convert", exact=kind is not DType.F32 or BY_NAME[target].is_integer)
    assert Op.STOCHASTIC_CONVERT not in opcodes(after)
    check(text, inputs)


def test_stochastic_convert_rounds_up_with_the_fraction_as_probability():
    text = entry("x = f32[4096] parameter(0)", "r = u32[4096] parameter(1)",
                 "ROOT c = s32[4096] stochastic-convert(x, r)")  # fmt: skip
    random = np.random.default_rng(0).integers(0, 2**32, 4096, np.uint32)
    (out,) = check(text, [np.full(4096, 2.3, np.float32), random])
    assert set(out.tolist()) == {2, 3} and abs(out.mean() - 2.3) < 0.03
