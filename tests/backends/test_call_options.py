"""The options of a call: `out=`, arrays for its results, and `donate=`, arguments that may be overwritten; buffers."""

import array as arrays
import ctypes
import importlib.util

import numpy as np
import pytest

import testbed

from ...backends.base import CompileOptions
from ...backends.registry import platform

NESTED = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  d = f32[4] add(x, x)
  a = token[] after-all()
  pair = (f32[4], token[]) tuple(d, a)
  ROOT t = (f32[4], (f32[4], token[])) tuple(n, pair)
}"""
X = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module", params=["legacy", "mlir", "interpreter"])
def nested(request):
    if request.param == "interpreter":
        return platform("interpreter").compiler().compile(testbed.load(NESTED), None, CompileOptions(cache=None))
    return testbed.compile(NESTED, request.param)


def test_out_has_the_form_of_the_result(nested):
    first = nested(X)
    negated, (doubled, token) = nested(X + 1, out=first)
    assert negated is first[0] and doubled is first[1][0] and token is None
    np.testing.assert_array_equal(negated, -(X + 1))
    np.testing.assert_array_equal(doubled, 2 * (X + 1))
    for out in [(None, (doubled, None)), [None, [doubled, None]], (negated, None), None]:
        again = nested(X, out=out)
        np.testing.assert_array_equal(again[0], -X)
        np.testing.assert_array_equal(again[1][0], 2 * X)


@pytest.mark.parametrize(
    "out, message",
    [
        ((X,), "out: expected a tuple of 2, given 1 elements"),
        (X, "out: expected a tuple of 2, given ndarray"),
        ((None, (None,)), r"out\[1\]: expected a tuple of 2, given 1 elements"),
    ],
)
def test_out_of_another_form_is_refused(nested, out, message):
    with pytest.raises(testbed.InputError, match=message):
        nested(X, out=out)


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
def test_an_argument_called_out_or_donate_is_that_argument(emitters):
    program = testbed.compile(
        """HloModule m
ENTRY e {
  out = f32[4] parameter(0)
  donate = f32[4] parameter(1)
  ROOT r = f32[4] subtract(out, donate)
}""",
        emitters,
    )
    for _ in range(3):
        np.testing.assert_array_equal(program(out=X, donate=2 * X), -X)
        np.testing.assert_array_equal(program(X, donate=3 * X), -2 * X)


STEP = """HloModule step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {0}, may-alias) }
ENTRY e {
  state = f32[4] parameter(0)
  slots = (f32[4], f32[4]) parameter(1)
  x = f32[4] parameter(2)
  first = f32[4] get-tuple-element(slots), index=0
  new = f32[4] add(state, x)
  slot = f32[4] multiply(first, x)
  ROOT t = (f32[4], f32[4]) tuple(new, slot)
}"""


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
@pytest.mark.parametrize("donate", ["state", 0, ("state",), [0], ("state", "slots"), (0, 1), ()], ids=repr)
def test_donated_arguments_become_the_results(emitters, donate):
    program = testbed.compile(STEP, emitters)
    for _ in range(3):
        state, slots = np.ones(4, np.float32), (np.full(4, 2, np.float32), np.zeros(4, np.float32))
        new, slot = program(state, slots, X, donate=donate)
        np.testing.assert_array_equal(new, 1 + X)
        np.testing.assert_array_equal(slot, 2 * X)
        given = set([donate] if isinstance(donate, (str, int)) else donate)
        assert np.shares_memory(new, state) == bool(given & {"state", 0})
        assert np.shares_memory(slot, slots[0]) == bool(given & {"slots", 1})
        if not given:
            np.testing.assert_array_equal(state, 1)
            np.testing.assert_array_equal(slots[0], 2)


@pytest.mark.parametrize("donate, shown", [("stat", "'stat'"), (3, "3"), (-1, "-1"), (("x", "y"), "'y'")])
def test_a_donated_argument_that_does_not_exist_is_named(donate, shown):
    program = testbed.compile(STEP)
    with pytest.raises(testbed.InputError, match=rf"no argument {shown} .its arguments: state, slots, x"):
        program(X, (X, X), X, donate=donate)


def test_aliased_inputs_that_are_not_donated_stay_as_they_are_in_every_call():
    program, state, slots = testbed.compile(STEP), X + 1, (X + 2, X)
    for _ in range(5):
        new, slot = program(state, slots[0], slots[1], X)
        np.testing.assert_array_equal(new, 2 * X + 1)
        np.testing.assert_array_equal(slot, (X + 2) * X)
    again = program(state, *slots, X, out=(new, slot))
    assert again[0] is new and again[1] is slot
    np.testing.assert_array_equal(state, X + 1)
    np.testing.assert_array_equal(slots[0], X + 2)
    assert program._contexts.program.calls >= 5
    with pytest.raises(testbed.InputError, match="output 0 overlaps input 0"):
        program(new, *slots, X, out=(new, slot))


# -- buffers ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "make",
    [
        memoryview,
        lambda x: memoryview(x)[:],
        lambda x: arrays.array("f", x),
        lambda x: (ctypes.c_float * 4)(*x),
        lambda x: memoryview(np.repeat(x, 2))[::2],
    ],
    ids=["memoryview", "slice", "array.array", "ctypes", "strided"],
)
def test_buffers_are_taken(nested, make):
    negated, _ = nested(make(X))
    np.testing.assert_array_equal(negated, -X)


def test_a_buffer_is_not_copied():
    from ...backends.dlpack import from_buffer

    assert np.shares_memory(from_buffer(memoryview(X)), X)
    assert from_buffer(b"abc").tolist() == [97, 98, 99] and from_buffer("abc") is None
    assert from_buffer(memoryview(bytearray(8)).cast("B")).dtype == np.uint8


def test_a_buffer_of_another_type_is_refused(nested):
    with pytest.raises(testbed.InputError, match=r"argument x: expected f32\[4\], given f64\[4\]"):
        nested(arrays.array("d", [1, 2, 3, 4]))
    with pytest.raises(testbed.InputError, match=r"argument x: expected f32\[4\], given s8|given u8\[16\]"):
        nested(X.tobytes())


# -- JAX's trees ------------------------------------------------------------------------------------------------------
@pytest.mark.xla
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs ./testbed setup --xla")
class TestJaxTrees:
    def test_flat_arguments_and_results_are_served_natively(self):
        import jax

        single = testbed.compile(jax.jit(lambda x, y: x * y).lower(X, X))
        pair = testbed.compile(jax.jit(lambda x: (x + 1, x * 2)).lower(X))
        for program, given in [(single, (X, X + 1)), (pair, (X,))]:
            program(*given)
            before = program._contexts.program.calls
            result = program(*given)
            again = program(*given, out=result)
            assert program._contexts.program.calls == before + 2
            first = result if isinstance(result, np.ndarray) else result[0]
            assert (again if isinstance(again, np.ndarray) else again[0]) is first
        np.testing.assert_array_equal(single(X, X), X * X)

    def test_trees_of_results_and_donated_trees(self):
        import jax

        def step(params, x):
            return {"b": params["b"] + 1, "w": params["w"] * x}, x.sum()

        given = {"b": X, "w": X + 1}
        program = testbed.compile(jax.jit(step, donate_argnums=0).lower(given, X))
        for _ in range(3):
            first, total = program(given, X)
            np.testing.assert_array_equal(first["w"], (X + 1) * X)
            new, _ = program(first, X, out=({"b": None, "w": None}, total))
            mine = {k: v.copy() for k, v in given.items()}
            kept, _ = program(mine, X, donate="params")
            assert np.shares_memory(kept["b"], mine["b"]) and np.shares_memory(kept["w"], mine["w"])
            np.testing.assert_array_equal(new["b"], X + 2)
            np.testing.assert_array_equal(kept["w"], (X + 1) * X)
        with pytest.raises(testbed.InputError, match="out: "):
            program(given, X, out=({"b": None}, None))

    def test_an_array_of_jax_is_read_in_place(self):
        import jax.numpy as jnp

        from ...backends.dlpack import from_dlpack

        x = jnp.asarray(np.arange(1 << 16, dtype=np.float32))
        for array in (x, x.astype(jnp.bfloat16), x.astype(jnp.int8), x > 1):
            view = from_dlpack(array, "x")
            assert view.ctypes.data == array.unsafe_buffer_pointer() and not view.flags.writeable
            assert view.dtype == array.dtype
