"""XlaBuilder: each function of `ops` gives the values that numpy gives, and an error names the line of the caller."""

import inspect
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import testbed
from testbed import XlaBuilder, ops

from ...differential.fake_inputs import fake_inputs
from ...formats.builder.elementwise import ALIASES, BINARY, FUNCTIONS, UNARY
from ...hlo.attributes import ConvolutionDims
from ...hlo.dtypes import DType
from ...hlo.equality import difference
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.shapes import Shape
from ...migration.api import to_text
from ...tools import builder_stub
from ..support.check import check

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4), dtype=np.float32)
Y = RNG.standard_normal((3, 4), dtype=np.float32)
V = RNG.standard_normal(4, dtype=np.float32)
K = np.array([2, 0, 1], np.int32)
C = (X + 1j * Y).astype(np.complex64)
P = X > 0
IMAGE = RNG.standard_normal((1, 2, 5, 5), dtype=np.float32)
KERNEL = RNG.standard_normal((3, 2, 3, 3), dtype=np.float32)
SQUARE = (V[:3, None] * V[None, :3] + 4 * np.eye(3)).astype(np.float32)


def built(make, *arrays):
    """The module of `make(builder, parameter…)`, which is also read back from its text."""
    b = XlaBuilder("case")
    values = [ops.parameter(b, n, array, f"x{n}") for n, array in enumerate(arrays)]
    module = b.build(make(b, *values))
    assert difference(module, testbed.parse(to_text(module))) is None
    return module


def evaluated(make, *arrays):
    return testbed.evaluate(built(make, *arrays), arrays)


def add(a, b):
    return a + b


def pooled(x):
    return x[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).max(axis=(3, 5))


def convolved(x, kernel):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", windows, kernel)


# name → (builder, ops → op, or a tuple of ops, arrays, the results)
CASES = {
    "constant": (lambda b: ops.constant(b, [[1.5, 2.0]]), [], [np.array([[1.5, 2]], np.float32)]),
    "constant_literal": (
        lambda b: ops.constant_literal(b, (np.float32(1), np.arange(3))),
        [],
        [np.float32(1), np.arange(3)],
    ),
    "zero": (lambda b: ops.zero(b, "bf16"), [], [np.zeros((), ml_dtypes.bfloat16)]),
    "one": (lambda b: ops.one(b, np.int8), [], [np.int8(1)]),
    "scalar_like": (lambda b, x: ops.scalar_like(x, 2), [X], [np.float32(2)]),
    "full_like": (lambda b, x: ops.full_like(x, 2), [X], [np.full((3, 4), 2, np.float32)]),
    "iota": (lambda b: ops.iota(b, "s32[2,3]", 1), [], [np.tile(np.arange(3, dtype=np.int32), (2, 1))]),
    "tuple": (lambda b, x, y: ops.tuple(b, [y, ops.tuple(b, [x])]), [X, Y], [Y, X]),
    "get_tuple_element": (lambda b, x, y: ops.get_tuple_element(ops.tuple(b, [x, y]), 1), [X, Y], [Y]),
    "optimization_barrier": (lambda b, x: ops.optimization_barrier(x), [X], [X]),
    "add_dependency": (
        lambda b, x: ops.add_dependency(x, ops.after_all(b, [ops.create_token(b), ops.create_token(b)])),
        [X],
        [X],
    ),
    "convert_element_type": (lambda b, x: ops.convert_element_type(x, "s32"), [X * 9], [(X * 9).astype(np.int32)]),
    "bitcast_convert_type": (
        lambda b, x: (
            ops.bitcast_convert_type(x, "u16"),
            ops.bitcast_convert_type(ops.bitcast_convert_type(x, np.uint8), "f32"),
        ),
        [X],
        [X.view(np.uint16).reshape(3, 4, 2), X],
    ),
    "reduce_precision": (
        lambda b, x: ops.reduce_precision(x, 8, 7),
        [X],
        [X.astype(ml_dtypes.bfloat16).astype(np.float32)],
    ),
    "conj": (lambda b, x: ops.conj(x), [C], [C.conj()]),
    "copy": (lambda b, x: ops.copy(x), [X], [X]),
    "compare": (lambda b, x, y: ops.compare(x, y, "GE", "TOTALORDER"), [X, Y], [X >= Y]),
    "eq": (lambda b, x: (ops.eq(x, x), x == x), [X], [X == X] * 2),
    "ne": (lambda b, x, y: (ops.ne(x, y), x != y), [X, Y], [X != Y] * 2),
    "ge": (lambda b, x, y: (ops.ge(x, y), x >= y), [X, Y], [X >= Y] * 2),
    "gt": (lambda b, x, y: (ops.gt(x, y), x > y), [X, Y], [X > Y] * 2),
    "le": (lambda b, x, y: (ops.le(x, y), x <= y), [X, Y], [X <= Y] * 2),
    "lt": (lambda b, x, v: (ops.lt(x, v, [1]), x < 0.5), [X, V], [X < V, X < 0.5]),
    "select": (
        lambda b, p, x: (ops.select(p, x, 0.0), ops.select(ops.constant(b, False), x, -x)),
        [P, X],
        [np.where(P, X, 0), -X],
    ),
    "clamp": (lambda b, x: ops.clamp(-0.5, x, 0.5), [X], [np.clip(X, -0.5, 0.5)]),
    "broadcast": (lambda b, x: ops.broadcast(x, [2, 3]), [V], [np.broadcast_to(V, (2, 3, 4))]),
    "broadcast_in_dim": (
        lambda b, x: ops.broadcast_in_dim(x, [2, 3, 4], [1, 2]),
        [X[:, :1]],
        [np.broadcast_to(X[:, :1], (2, 3, 4))],
    ),
    "reshape": (lambda b, x: ops.reshape(x, [2, 6]), [X], [X.reshape(2, 6)]),
    "collapse": (lambda b, x: ops.collapse(x, [1, 2]), [IMAGE], [IMAGE.reshape(1, 10, 5)]),
    "transpose": (lambda b, x: ops.transpose(x, [1, 0]), [X], [X.T]),
    "rev": (lambda b, x: ops.rev(x, [1]), [X], [X[:, ::-1]]),
    "slice": (lambda b, x: ops.slice(x, [1, 0], [3, 4], [1, 2]), [X], [X[1:3, ::2]]),
    "slice_in_dim": (lambda b, x: ops.slice_in_dim(x, 1, 4, 2, 1), [X], [X[:, 1:4:2]]),
    "dynamic_slice": (
        lambda b, x, k: ops.dynamic_slice(x, [ops.constant(b, 1), 2], [2, 2]),
        [X, K],
        [X[1:3, 2:4]],
    ),
    "dynamic_update_slice": (
        lambda b, x: ops.dynamic_update_slice(x, ops.constant(b, np.zeros((1, 4), np.float32)), [1, 0]),
        [X],
        [np.where(np.arange(3)[:, None] == 1, 0, X)],
    ),
    "pad": (
        lambda b, x: (ops.pad(x, 7.0, [(1, 0), (0, 2, 0)]), ops.pad(x, 7.0, "1_0x0_2")),
        [X],
        [np.pad(X, ((1, 0), (0, 2)), constant_values=7)] * 2,
    ),
    "pad_in_dim": (lambda b, x: ops.pad_in_dim(x, 0, 1, 2, 1), [X], [np.pad(X, ((0, 0), (2, 1)))]),
    "concat_in_dim": (lambda b, x, y: ops.concat_in_dim(b, [x, y], 1), [X, Y], [np.concatenate([X, Y], 1)]),
    "get_dimension_size": (lambda b, x: ops.get_dimension_size(x, 1), [X], [np.int32(4)]),
    "set_dimension_size": (
        lambda b, x: ops.get_dimension_size(ops.set_dimension_size(x, ops.constant(b, 2), 0), 0),
        [X],
        [np.int32(2)],
    ),
    "dynamic_reshape": (
        lambda b, x: ops.get_dimension_size(
            ops.dynamic_reshape(x, [ops.constant(b, 4), ops.constant(b, 3)], [4, 3], [True, False]), 0
        ),
        [X],
        [np.int32(4)],
    ),
    "gather": (
        lambda b, x, k: ops.gather(
            x, k, offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1, slice_sizes=[1, 4]
        ),
        [X, K],
        [X[K]],
    ),
    "scatter": (
        lambda b, x, k, u: ops.scatter(
            x,
            k,
            u,
            add,
            update_window_dims=[1],
            inserted_window_dims=[0],
            scatter_dims_to_operand_dims=[0],
            index_vector_dim=1,
            unique_indices=True,
        ),
        [X, K, Y],
        [X + Y[np.argsort(K)]],
    ),
    "reduce": (
        lambda b, x, y: (
            ops.reduce(x, 1.0, lambda a, v: a * v, [1]),
            ops.reduce([x, y], [0.0, 0.0], lambda a, c, v, w: (a + v, c + w), [0]),
        ),
        [X, Y],
        [X.prod(1), X.sum(0), Y.sum(0)],
    ),
    "reduce_all": (lambda b, x: ops.reduce_all(x, 0.0, add), [X], [X.sum()]),
    "reduce_window": (
        lambda b, x: (
            ops.reduce_window(x, -np.inf, ops.max, [1, 1, 2, 2], [1, 1, 2, 2]),
            ops.get_dimension_size(ops.reduce_window(x, 0.0, add, [1, 1, 2, 2], [1, 1, 2, 2], "SAME"), 3),
        ),
        [IMAGE],
        [pooled(IMAGE), np.int32(3)],
    ),
    "select_and_scatter": (
        lambda b, x: ops.select_and_scatter(
            x,
            lambda a, v: a >= v,
            [1, 4],
            None,
            [(0, 0), (0, 0)],
            ops.constant(b, np.ones((3, 1), np.float32)),
            0.0,
            add,
        ),
        [X],
        [(X.max(1, keepdims=True) == X).astype(np.float32)],
    ),
    "map": (lambda b, x, y: ops.map(b, [x, y], lambda u, v: u * v + 1.0), [X, Y], [X * Y + 1]),
    "sort": (
        lambda b, x, y: (ops.sort(x), ops.sort([x, y], lambda a, c, *_: a > c, 0, is_stable=True)[1]),
        [X, Y],
        [np.sort(X, 1), np.take_along_axis(Y, np.argsort(-X, 0, kind="stable"), 0)],
    ),
    "top_k": (
        lambda b, x: ops.top_k(x, 2),
        [X],
        [np.sort(X, 1)[:, :-3:-1], np.argsort(-X, 1)[:, :2].astype(np.int32)],
    ),
    "while_": (
        lambda b, x: ops.while_(lambda s: s[0] < 3, lambda s: [s[0] + 1, s[1] * 2.0], (0, x)),
        [X],
        [np.int32(3), X * 8],
    ),
    "conditional": (
        lambda b, x: (
            ops.conditional(ops.constant(b, False), [ops.neg, ops.abs], [x, x]),
            ops.conditional(ops.constant(b, 1), [ops.neg, lambda s: s[0] + s[1], ops.abs], [x, (x, x), x]),
        ),
        [X],
        [np.abs(X), X + X],
    ),
    "call": (lambda b, x, y: ops.call(b, lambda u, v: u - v, [x, y]), [X, Y], [X - Y]),
    "composite_call": (lambda b, x: ops.composite_call(b, ops.neg, [x], "my.negate"), [X], [-X]),
    "scan": (
        lambda b, x: ops.scan([x], [ops.broadcast(ops.constant(b, 0.0), [4])], lambda v, c: (c + v, c + v), 0),
        [X],
        [np.cumsum(X, 0), X.sum(0)],
    ),
    "fusion": (lambda b, x: ops.fusion(b, [x], lambda v: v * v), [X], [X * X]),
    "dot": (lambda b, x, y: ops.dot(x, y, "highest"), [X, Y.T.copy()], [X @ Y.T]),
    "dot_general": (
        lambda b, x, y: ops.dot_general(x, y, (([1], [1]), ([0], [0])), preferred_element_type="f64"),
        [X, Y],
        [np.einsum("bi,bi->b", X.astype(np.float64), Y.astype(np.float64))],
    ),
    "conv": (lambda b, x, k: ops.conv(x, k, [1, 1], "same"), [IMAGE, KERNEL], [convolved(IMAGE, KERNEL)]),
    "conv_general_dilated": (
        lambda b, x, k: ops.conv_general_dilated(x, k, [1, 1], [(1, 1), (1, 1)], dimension_numbers="bf01_oi01->bf01"),
        [IMAGE, KERNEL],
        [convolved(IMAGE, KERNEL)],
    ),
    "ragged_dot": (
        lambda b, x, w, n: ops.ragged_dot(x, w, n, (([1], [1]), ([], [])), [0], [0]),
        [X, np.stack([SQUARE[:, :2]] * 2)[:, [0, 1, 2, 0]], np.array([1, 2], np.int32)],
        [X @ SQUARE[[0, 1, 2, 0], :2]],
    ),
    "fft": (lambda b, x: ops.fft(x, "FFT", [4]), [C], [np.fft.fft(C)]),
    "cholesky": (lambda b, x: ops.cholesky(x), [SQUARE], [None]),
    "triangular_solve": (
        lambda b, a, x: ops.triangular_solve(a, x),
        [np.tril(SQUARE), X],
        [np.linalg.solve(np.tril(SQUARE), X)],
    ),
    "batch_norm_inference": (
        lambda b, x, v, m: ops.batch_norm_inference(x, v, v, m, m, 0.5, 1),
        [X, V, V * V],
        [(X - V * V) / np.sqrt(V * V + 0.5) * V + V],
    ),
    "batch_norm_training": (
        lambda b, x, v: ops.batch_norm_training(x, v, v, 0.5, 1),
        [X, V],
        [(X - X.mean(0)) / np.sqrt(X.var(0) + 0.5) * V + V, X.mean(0), X.var(0)],
    ),
    "batch_norm_grad": (lambda b, x, v: ops.batch_norm_grad(x, v, v, v, x, 3.0, 1)[2], [X, V], [X.sum(0)]),
    "stochastic_convert_type": (
        lambda b, x, r: ops.stochastic_convert_type(x, r, "s32"),
        [np.float32([2, 3]), np.uint32([1, 2])],
        [np.int32([2, 3])],
    ),
    "rng_bit_generator": (
        lambda b: ops.slice(
            ops.rng_bit_generator("rng_philox", ops.constant(b, np.uint64([1, 2])), "u32[4]")[1], [0], [0]
        ),
        [],
        [np.zeros(0, np.uint32)],
    ),
    "rng_uniform": (
        lambda b: ops.ge(ops.rng_uniform(ops.constant(b, 1.0), 2.0, "f32[9]"), 1.0),
        [],
        [np.ones(9, bool)],
    ),
    "rng_normal": (lambda b: ops.rng_normal(ops.constant(b, 1.0), 0.0, "f32[9]"), [], [np.ones(9, np.float32)]),
    "cross_replica_sum": (lambda b, x: ops.cross_replica_sum(x), [X], [X]),
    "all_reduce": (lambda b, x, y: ops.all_reduce([x, y], ops.max, [[0]]), [X, Y], [X, Y]),
    "all_gather": (lambda b, x: ops.all_gather(x, 0, 1), [X], [X]),
    "reduce_scatter": (lambda b, x: ops.reduce_scatter(x, add, 0, 1, [[0]]), [X], [X]),
    "all_to_all": (lambda b, x: ops.all_to_all(x, 1, 0, 1, [[0]]), [X], [X]),
    "all_to_all_tuple": (lambda b, x: ops.all_to_all_tuple([x]), [X], [X]),
    "collective_broadcast": (lambda b, x: ops.collective_broadcast(x, [[0]]), [X], [X]),
    "collective_permute": (lambda b, x: ops.collective_permute(x, [(0, 0)]), [X], [X]),
    "replica_id": (lambda b: ops.replica_id(b), [], [np.uint32(0)]),
    "partition_id": (lambda b: ops.partition_id(b), [], [np.uint32(0)]),
}

ELSEWHERE = {
    *("parameter", "get_shape", "after_all", "create_token", "custom_call", "infeed", "infeed_with_token", "outfeed"),
    *("outfeed_with_token", "send_with_token", "recv_with_token", "program_shape", "result_shape"),
}
"""Functions that other tests of this file call."""


@pytest.mark.parametrize("name", CASES)
def test_a_function_gives_the_values_of_numpy(name):
    make, arrays, wanted = CASES[name]
    results = evaluated(make, *arrays)
    assert len(results) == len(wanted)
    for result, value in zip(results, wanted):
        if value is not None:
            assert result.dtype == np.asarray(value).dtype or (name == "fft" and result.dtype == np.complex64)
            np.testing.assert_allclose(result, value, rtol=1e-4, atol=1e-5)
    if name == "cholesky":
        np.testing.assert_allclose(np.tril(results[0]) @ np.tril(results[0]).T, SQUARE, rtol=1e-5)


def functions():
    return {n: f for n, f in vars(ops).items() if inspect.isfunction(f) and not n.startswith("_")}


def test_every_function_has_a_case_and_a_docstring_with_xlas_name():
    assert set(functions()) == set(CASES) | ELSEWHERE | set(FUNCTIONS)
    undocumented = [n for n, f in functions().items() if not f.__doc__]
    assert not undocumented
    own = {"add_dependency", "partition_id"}  # HLO's, which XlaBuilder lacks
    unnamed = [n for n, f in functions().items() if "XlaBuilder's" not in f.__doc__ and "(" not in f.__doc__]
    assert set(unnamed) <= own


def test_every_elementwise_opcode_has_a_function():
    elementwise = {op for op, row in OPSET.items() if row.elementwise}
    derived = {*UNARY.values(), *BINARY.values()}
    by_hand = {Op.CONVERT, Op.BITCAST_CONVERT, Op.REDUCE_PRECISION, Op.STOCHASTIC_CONVERT, Op.COMPARE, Op.CLAMP}
    assert elementwise - derived == by_hand | {Op.SELECT, Op.COPY}
    assert derived <= elementwise
    assert set(ALIASES.values()) <= derived


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_elementwise_function_makes_its_opcode_for_every_type_of_the_table(name):
    op = UNARY.get(name) or BINARY.get(name) or ALIASES[name]
    row = OPSET[op]
    for dtype in sorted(row.dtypes, key=lambda d: d.value):
        b = XlaBuilder(name)
        x = ops.parameter(b, 0, (dtype, [3]))
        made = FUNCTIONS[name](*[x] * row.low)
        assert made.instruction.opcode is op and made.dims == (3,)
        b.build(made)


def test_the_stub_for_type_checkers_is_what_the_table_gives():
    assert builder_stub.STUB.read_text(encoding="utf-8") == builder_stub.formatted(builder_stub.stub_text())


# -- operators and broadcasting ---------------------------------------------------------------------------------------
def test_operators_are_those_of_hlo():
    i, j = np.array([7, -7, 6], np.int32), np.array([2, 2, -4], np.int32)
    made = lambda b, x, y, u, p, q: (  # noqa: E731
        *(x + y, 1 + x, x - y, 1 - x, x * y, x / y, x % y, -x, +x, abs(x), ~x, x & y, x | 1, x ^ y, x << 1, x >> 1),
        *(u >> 1, p & q, p | q, p ^ q, ~p, x**2, 3 & x, 2 * x, 9 / y, 9 % y, 2 ** abs(y), 5 | x, 5 ^ x),
    )
    u, p, q = np.array([4000000000], np.uint32), np.array([True, False]), np.array([True, True])
    results = evaluated(made, i, j, u, p, q)
    nine = np.int32(9)
    truncated = lambda a, c: np.trunc(a / c).astype(np.int32)  # noqa: E731
    wanted = [
        *(i + j, 1 + i, i - j, 1 - i, i * j, truncated(i, j), i - truncated(i, j) * j, -i, i, abs(i), ~i, i & j, i | 1),
        *(i ^ j, i << 1, i >> 1, u >> 1, p & q, p | q, p ^ q, ~p, i**2, 3 & i, 2 * i, truncated(nine, j)),
        *(9 - truncated(nine, j) * j, 2 ** abs(j), 5 | i, 5 ^ i),
    ]
    assert len(results) == len(wanted)
    for result, value in zip(results, wanted):
        np.testing.assert_array_equal(result, value)


def test_implicit_broadcasting_is_xlabuilders():
    made = lambda b, x, v, c: (  # noqa: E731
        *(x * 2, ops.add(x, v, [1]), ops.add(v, x, [1]), x - c, ops.max(v, 0.0), V + v, ops.sub(c, x)),
        ops.add(c, ops.slice(v, [0], [3]), [0]),
    )
    results = evaluated(made, X, V, X[:, :1].copy())
    one = X[:, :1]
    wanted = [X * 2, X + V, X + V, X - one, np.maximum(V, 0), V + V, one - X, one + V[:3, None]]
    for result, value in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6)


def test_what_is_built_runs_on_all_stacks():
    def softmax(x):
        row = lambda v: ops.broadcast_in_dim(v, x.dims, [0])  # noqa: E731
        e = ops.exp(x - row(ops.reduce(x, -np.inf, ops.max, [1])))
        return e / row(ops.reduce(e, 0.0, ops.add, [1]))

    module = built(lambda b, x: softmax(x), X)
    check(to_text(module), [X])
    (result,) = [testbed.compile(module, "mlir")(X)]
    np.testing.assert_allclose(result.sum(1), 1, rtol=1e-6)


# -- custom calls, tokens, collectives over several devices -----------------------------------------------------------
def test_a_custom_call_keeps_everything_that_xla_lets_one_say():
    b = XlaBuilder("calls")
    x = ops.parameter(b, 0, "f32[2,3]{0,1}")
    made = ops.custom_call(
        b,
        "target",
        [x],
        "(f32[2,3], s32[])",
        opaque='{"a": 1}',
        has_side_effect=True,
        output_operand_aliasing=[([0], (0, []))],
        literal=np.float32([1, 2]),
        schedule="SCHEDULE_EARLIEST",
        api_version="API_VERSION_TYPED_FFI",
        operand_shapes_with_layout=["f32[2,3]{0,1}"],
        computation=ops.neg,
    )
    text = to_text(b.build(made))
    for part in (
        'custom_call_target="target"',
        "custom_call_has_side_effect=true",
        "output_to_operand_aliasing={{0}: (0, {})}",
        "literal=f32[2] {1, 2}",
        "schedule=SCHEDULE_EARLIEST",
        "api_version=API_VERSION_TYPED_FFI",
        "operand_layout_constraints={f32[2,3]{0,1}}",
        'backend_config="{\\"a\\": 1}"',
        "to_apply=called",
    ):
        assert part in text
    assert difference(testbed.parse(text), testbed.parse(to_text(testbed.parse(text)))) is None
    with pytest.raises(testbed.InputError, match=r"unknown schedule 'SOON'.*SCHEDULE_LATEST"):
        ops.custom_call(b, "target", [], "f32[]", schedule="SOON")


def test_infeed_outfeed_send_and_recv_verify():
    b = XlaBuilder("host")
    data = ops.infeed(b, "f32[2]", "config")
    first = ops.outfeed(data, outfeed_config="other")
    more, token = ops.infeed_with_token(first, "s32[]")
    last = ops.outfeed_with_token(more, token, "s32[]")
    got = ops.recv_with_token(last, "f32[2]", 3, True)
    module = b.build((ops.send_with_token(got[0], got[1], 4), data))
    assert [i.opcode for i in module.entry.instructions if i.opcode in (Op.SEND_DONE, Op.RECV_DONE)] == [
        Op.RECV_DONE,
        Op.SEND_DONE,
    ]


def test_an_all_to_all_is_what_xla_makes_of_it():
    b = XlaBuilder("m")
    x = ops.parameter(b, 0, "f32[4,6]")
    moved = ops.all_to_all(x, 1, 0, 2, [[0, 1]])
    assert str(moved.shape) == "f32[8,3]"
    assert [i.opcode.value for i in b.build(moved).entry.instructions] == [
        *("parameter", "all-to-all", "reshape", "transpose", "reshape")
    ]
    assert (
        str(ops.all_gather(x, 1, 2).shape) == "f32[4,12]"
        and str(ops.reduce_scatter(x, ops.add, 0, 2).shape) == "f32[2,6]"
    )


# -- computations -----------------------------------------------------------------------------------------------------
def test_a_built_module_is_a_computation_and_is_embedded_once():
    sub = XlaBuilder("sum")
    total = sub.build(ops.parameter(sub, 0, "f32[]", "a") + ops.parameter(sub, 1, "f32[]", "b"))
    b = XlaBuilder("sum")
    x = ops.parameter(b, 0, X, "a")
    module = b.build((ops.reduce(x, 0.0, total, [0]), ops.reduce(x, 0.0, total, [1])))
    assert [c.name for c in module.computations] == ["sum", "sum.1"]
    for result, axis in zip(testbed.evaluate(module, [X]), (0, 1)):
        np.testing.assert_allclose(result, X.sum(axis), rtol=1e-5)
    parameters, result = ops.program_shape(total)
    assert [str(s) for s in parameters] == ["f32[]", "f32[]"] and result == ops.result_shape(total) == Shape(DType.F32)


def test_a_module_with_computations_of_its_own_is_embedded_with_them():
    inner = built(lambda b, x: ops.call(b, lambda v: ops.reduce_all(v, 0.0, ops.add), [x]), X)
    module = built(lambda b, x: (ops.call(b, inner, [x]), ops.reduce_all(x, 1.0, ops.mul)), X)
    total, product = testbed.evaluate(module, [X])
    np.testing.assert_allclose([total, product], [X.sum(), X.prod()], rtol=1e-4)


def test_a_function_reads_nothing_from_outside():
    b = XlaBuilder("m")
    x = ops.parameter(b, 0, "f32[4]", "x")
    zero = ops.constant(b, 0.0)
    with pytest.raises(testbed.InputError, match=r"of 'm' is used in 'reducer' \(pass it as an operand"):
        ops.reduce(x, 0.0, lambda a, v: a + v + zero, [0])
    with pytest.raises(testbed.InputError, match="call its build"):
        ops.reduce(x, 0.0, b.create_sub_builder("s"), [0])


# -- scopes -----------------------------------------------------------------------------------------------------------
def test_scopes_set_metadata_sharding_and_frontend_attributes():
    b = XlaBuilder("m")
    x = ops.parameter(b, 0, "f32[4]", "x")
    with b.scope("outer"), b.scope("inner"), b.sharding("{devices=[2]0,1}"), b.frontend_attributes(k="v"):
        y = -x
    line = inspect.currentframe().f_lineno - 1
    z = -y
    b.set_op_metadata(op_type="T", op_name="n", source_file="f.py", source_line=3)
    w = -z
    b.set_op_metadata()
    text = to_text(b.build(-w))
    rows = [row for row in text.splitlines() if " negate(" in row]
    assert f'metadata={{op_name="outer/inner" source_file="{__file__}" source_line={line}}}' in rows[0]
    assert "sharding={devices=[2]0,1}" in rows[0] and 'frontend_attributes={k="v"}' in rows[0]
    assert "metadata" not in rows[1] and "metadata" not in rows[3] and "sharding" not in rows[1]
    assert 'metadata={op_type="T" op_name="n" source_file="f.py" source_line=3}' in rows[2]
    with pytest.raises(testbed.InputError, match=r"metadata has no field 'line'"):
        b.set_op_metadata(line=3)


def test_aliases_and_donors_stand_in_the_header():
    b = XlaBuilder("m")
    x = ops.parameter(b, 0, "f32[4]")
    y = ops.parameter(b, 1, "f32[4]")
    b.set_up_alias([], 0)
    b.add_buffer_donor(1)
    module = b.build(x + y)
    assert "input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }" in to_text(module)
    b.set_up_alias([], 7)
    with pytest.raises(testbed.VerificationError, match="parameter 7"):
        b.build(x - y)


# -- errors -----------------------------------------------------------------------------------------------------------
def no_shape(b, x):
    return b.add("iota", iota_dimension=0)


WRONG = {
    "shapes differ": (lambda b, x: x + ops.slice(x, [0], [3]), r"shapes f32\[4\] and f32\[3\] differ \[BINARY3\]"),
    "ranks differ": (lambda b, x: x + ops.broadcast(x, [2]), "differ in rank .*broadcast_dimensions"),
    "no such map": (lambda b, x: ops.add(x, ops.broadcast(x, [2]), [2]), "does not map the 1 dimensions"),
    "order": (lambda b, x: ops.add(ops.broadcast(x, [4]), ops.broadcast(x, [2, 4]), [2, 1]), "not strictly"),
    "a fraction": (lambda b, x: ops.convert_element_type(x, "s32") + 1.5, "1.5 is a float, and .* is s32"),
    "out of range": (lambda b, x: ops.convert_element_type(x, "s8") + 300, "300 is out of range"),
    "no such type": (lambda b, x: ops.convert_element_type(x, "f31"), "'f31' is no element type"),
    "no such shape": (lambda b, x: ops.parameter(b, 1, "f32[4"), "expected"),
    "no such opcode": (lambda b, x: b.add("tanhh", [x]), "unknown opcode 'tanhh' .*tanh"),
    "no such attribute": (lambda b, x: b.add("negate", [x], dimensions=[0]), "negate has no attribute 'dimensions'"),
    "malformed text": (lambda b, x: ops.pad(x, 0.0, "1-1"), "padding=1-1: .*low_high"),
    "a word": (lambda b, x: ops.compare(x, x, "XX"), "direction"),
    "no shape": (no_shape, "iota needs a shape"),
    "operands": (lambda b, x: b.add("add", [x]), r"has 1 operands, but takes 2 operands \[ARITY1\]"),
    "truth": (lambda b, x: bool(x > 0), "has no truth value"),
    "index": (lambda b, x: x[0], "takes no index 0"),
    "branches": (lambda b, x: ops.conditional(ops.constant(b, True), [ops.neg], [x]), "1 branches for a pred"),
    "window": (lambda b, x: ops.reduce_window(x, 0.0, add, [2, 2]), "2 window dimensions for 1 dimensions"),
    "padding": (lambda b, x: ops.reduce_window(x, 0.0, add, [2], padding="some"), "unknown padding 'some'"),
    "region": (lambda b, x: ops.reduce(x, 0.0, lambda a, v: a > v, [0]), r"its result pred\[\] \[REDUCE3\]"),
    "parts": (lambda b, x: ops.reduce_scatter(x, add, 0, 3), "has no 3 equal parts"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_error_names_the_line_and_column_of_the_caller(name):
    make, message = WRONG[name]
    b = XlaBuilder("m")
    x = ops.parameter(b, 0, "f32[4]", "x")
    with pytest.raises(testbed.TestbedError, match=message) as caught:
        make(b, x)
    location = caught.value.location
    assert location.file == __file__ and location.column > 1
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = make.__code__.co_firstlineno
    assert first <= location.line <= first + 1, lines[location.line - 1]


def test_parameters_must_be_numbered_from_0():
    b = XlaBuilder("m")
    x = ops.parameter(b, 1, "f32[4]")
    with pytest.raises(testbed.VerificationError, match="COMP4") as caught:
        b.build(x)
    assert caught.value.location.file == __file__


def test_build_without_a_root_takes_the_last_op_and_an_empty_builder_is_refused():
    b = XlaBuilder("m")
    x = ops.parameter(b, 0, "f32[4]")
    assert b.get_shape(-x) == ops.get_shape(x)
    assert b.build().entry.root.opcode is Op.NEGATE
    with pytest.raises(testbed.InputError, match="has no instructions"):
        XlaBuilder("empty").build()


def test_names_are_made_valid():
    b = XlaBuilder("my module")
    x = ops.parameter(b, 0, "f32[4]", "1st [input]")
    module = testbed.parse(to_text(b.build(x + x)))
    assert module.name == "my_module" and module.entry.parameters[0].name == "_1st__input_"


def test_numpy_leaves_its_operators_to_the_op():
    b = XlaBuilder("m")
    x = ops.parameter(b, 0, "f32[4]")
    made = [V * x, np.float32(2) + x, V - x]
    assert all(isinstance(op, testbed.XlaOp) for op in made)
    assert isinstance(made[0].instruction.operands[0].attributes["literal"].array, np.ndarray)


def test_convolution_dims_may_be_given_as_an_object():
    dims = ConvolutionDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    module = built(lambda b, x, k: ops.conv(x, k, [1, 1], "SAME", dimension_numbers=dims), IMAGE, KERNEL)
    inputs = fake_inputs(module, 0)
    np.testing.assert_allclose(testbed.evaluate(module, inputs)[0], convolved(*inputs), rtol=1e-3, atol=1e-4)
