"""XlaBuilder: each function of `ops` gives the values that numpy gives."""

import inspect

import ml_dtypes
import numpy as np
import pytest

import testbed
from testbed import XlaBuilder, ops

from ...differential.fake_inputs import fake_inputs
from ...formats.builder.elementwise import ALIASES, BINARY, FUNCTIONS, UNARY
from ...hlo.attributes import ConvolutionDims
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...tools import builder_stub
from ..support.built import RNG, V, X, Y, add, built, evaluated

K = np.array([2, 0, 1], np.int32)
C = (X + 1j * Y).astype(np.complex64)
P = X > 0
IMAGE = RNG.standard_normal((1, 2, 5, 5), dtype=np.float32)
KERNEL = RNG.standard_normal((3, 2, 3, 3), dtype=np.float32)
SQUARE = (V[:3, None] * V[None, :3] + 4 * np.eye(3)).astype(np.float32)


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
"""Functions that the tests of test_builder.py call."""


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


def test_convolution_dims_may_be_given_as_an_object():
    dims = ConvolutionDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    module = built(lambda b, x, k: ops.conv(x, k, [1, 1], "SAME", dimension_numbers=dims), IMAGE, KERNEL)
    inputs = fake_inputs(module, 0)
    np.testing.assert_allclose(testbed.evaluate(module, inputs)[0], convolved(*inputs), rtol=1e-3, atol=1e-4)
