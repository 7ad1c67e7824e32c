"""XlaBuilder: operators, embedded computations, what may be said of a module; an error names the caller's line."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import testbed
from testbed import XlaBuilder, ops

from ...hlo.dtypes import DType
from ...hlo.equality import difference
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...migration.api import to_text
from ..support.built import V, X, add, built, evaluated
from ..support.check import check


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
        "literal=f32[2]{0} {1, 2}",
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
