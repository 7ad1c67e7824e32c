"""Executables are called like functions: names, trees, numbers, DLPack; and what they say of a wrong argument."""

import ctypes
import gc
import importlib.util
import inspect
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import testbed

from ...backends.base import CompileOptions
from ...backends.dlpack import CODES, from_dlpack
from ...backends.registry import platform
from ...hlo.dtypes import FROM_NUMPY, DType

TEXT = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  pair = (f32[2], s32[]) parameter(1)
  n = f32[4] negate(x)
  ROOT t = (f32[4], (f32[2], s32[])) tuple(n, pair)
}"""
X, U = np.arange(4, dtype=np.float32), np.float32([5, 6])
Pair = namedtuple("Pair", "first second")


@pytest.fixture(scope="module", params=["legacy", "mlir", "interpreter"])
def executable(request):
    if request.param == "interpreter":
        return platform("interpreter").compiler().compile(testbed.load(TEXT), None, CompileOptions(cache=None))
    return testbed.compile(TEXT, request.param)


def one(shape, opcode="copy"):
    return testbed.compile(f"HloModule m\nENTRY e {{ x = {shape} parameter(0)\n ROOT r = {shape} {opcode}(x) }}")


@pytest.mark.parametrize(
    "arguments, named",
    [
        ((X, (U, 3)), {}),
        ((X, [U, np.int32(3)]), {}),
        ((X, Pair(U, 3)), {}),
        ((X, {"b": 3, "a": U}), {}),
        ((X, U, 3), {}),
        (([X, {"a": U, "b": 3}],), {}),
        ((X,), {"pair": (U, 3)}),
        ((), {"pair": (U, 3), "x": X}),
        ((X[::-1][::-1], (U.astype(">f4"), np.array(3, np.int32))), {}),
    ],
)
def test_arguments_are_taken_in_any_tree_with_the_same_leaves(executable, arguments, named):
    negated, (u, number) = executable(*arguments, **named)
    np.testing.assert_array_equal(negated, -X)
    np.testing.assert_array_equal(u, U)
    assert number == 3 and number.dtype == np.int32


def test_a_single_result_is_an_array_and_a_token_is_none():
    assert isinstance(one("f32[4]")(X), np.ndarray)
    text = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  a = token[] after-all()
  ROOT t = (f32[4], token[], ()) tuple(x, a, n)
}""".replace("  ROOT", "  n = () tuple()\n  ROOT")
    result, token, nothing = testbed.compile(text)(X)
    assert token is None and nothing == ()
    np.testing.assert_array_equal(result, X)


def test_results_speak_dlpack():
    np.testing.assert_array_equal(np.from_dlpack(one("f32[4]")(X)), X)


# -- what it says of itself -------------------------------------------------------------------------------------------
def test_signature_repr_and_docstring(executable):
    assert str(inspect.signature(executable)) == (
        "(x: 'f32[4]', pair: '(f32[2], s32[])') -> '(f32[4], (f32[2], s32[]))'"
    )
    assert repr(executable).endswith("m(x: f32[4], pair: (f32[2], s32[])) -> (f32[4], (f32[2], s32[]))>")
    text = inspect.getdoc(executable)
    assert "pair[0]: f32[2], numpy float32 of 2" in text and "pair[1]: s32[], numpy int32, a scalar" in text
    assert type(executable).__doc__ and "pair[0]" not in type(executable).__doc__
    assert list(inspect.signature(type(executable)).parameters)


def test_names_come_from_the_metadata_that_jax_writes_or_are_made():
    text = """HloModule m
ENTRY e {
  p.1 = f32[] parameter(0), metadata={op_name="params[\\'w\\']"}
  class = f32[] parameter(1)
  Arg_2.3 = f32[] parameter(2)
  Arg_3 = f32[] parameter(3), metadata={op_name="jit(f)/mul"}
  ROOT t = (f32[], f32[], f32[], f32[]) tuple(p.1, class, Arg_2.3, Arg_3)
}"""
    made = testbed.compile(text)
    assert list(inspect.signature(made).parameters) == ["params", "arg1", "Arg_2", "Arg_3"]
    with pytest.raises(testbed.InputError, match=r"argument params\['w'\]: expected f32\[\], given f64\[2\]"):
        made(np.zeros(2), 1.0, 1.0, 1.0)


# -- wrong arguments --------------------------------------------------------------------------------------------------
WRONG = {
    "too few": ((X,), {}, r"takes 2 arguments \(x: f32\[4\], pair: .*given 1 argument .call it as executable"),
    "too many": ((X, (U, 3), 4, 5), {}, "given 4 arguments"),
    "unknown name": ((X,), {"par": (U, 3)}, "no argument 'par' is left"),
    "missing name": ((), {"x": X}, "'pair' is missing"),
    "twice": ((X, (U, 3)), {"x": X}, "no argument 'x' is left"),
    "leaves": ((X, U), {}, r"argument pair: expected 2 arrays \(f32\[2\], s32\[\]\), given 1"),
    "shape": ((X[:3], (U, 3)), {}, r"argument x: expected f32\[4\], given f32\[3\] .give an array of shape \[4\]"),
    "reshape": ((X[:, None], (U, 3)), {}, r"given f32\[4,1\] .convert it with .reshape\(\[4\]\)"),
    "dtype": ((X.astype(np.float64), (U, 3)), {}, r"given f64\[4\] .convert it with .astype\('float32'\)"),
    "both": ((X.reshape(2, 2) > 0, (U, 3)), {}, r"given pred\[2,2\] .*astype\('float32'\).reshape\(\[4\]\)"),
    "strings": ((np.array(["a"] * 4), (U, 3)), {}, "argument x: expected f32.4., given <U1"),
    "number": ((2.0, (U, 3)), {}, "argument x: expected f32.4., given the float 2.0 .give an array of shape"),
    "fraction": ((X, (U, 2.5)), {}, r"argument pair\[1\]: expected s32\[\], given the float 2.5"),
    "range": ((X, (U, 2**31)), {}, r"argument pair\[1\]: 2147483648 is outside s32 .-2147483648 to 2147483647"),
    "object": ((X, (U, "3")), {}, r"argument pair\[1\]: expected s32\[\], given str"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named_with_what_is_expected_and_given(executable, name):
    arguments, named, message = WRONG[name]
    with pytest.raises(testbed.InputError, match=message):
        executable(*arguments, **named)


@pytest.mark.parametrize(
    "dtype, good, bad",
    [
        ("f32", [True, 1, 1.5], [1j]),
        ("bf16", [True, 1, 1.5], [1j]),
        ("c64", [True, 1, 1.5, 1j], []),
        ("pred", [True, False], [1, 0.5]),
        ("u8", [True, 0, 255], [-1, 256, 1.0]),
        ("s64", [-(2**63), 2**63 - 1], [2**63]),
        ("s4", [-8, 7], [8]),
    ],
)
def test_python_numbers(dtype, good, bad):
    made = one(f"{dtype}[]")
    for number in good:
        assert made(number) == number
    for number in bad:
        with pytest.raises(testbed.InputError, match="argument x: "):
            made(number)


PARAMS = {"w": np.float32(2), "b": np.ones(3, np.float32)}


# -- JAX's trees ------------------------------------------------------------------------------------------------------
@pytest.mark.xla
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs ./testbed setup --xla")
class TestJaxTrees:
    @pytest.fixture
    def step(self):
        import jax

        def step(params, batch, *rest, scale):
            return Pair(params["w"] * batch * scale, {"b": params["b"], "n": None}), rest

        return testbed.compile(jax.jit(step).lower(PARAMS, X, 1, scale=np.float32(3)))

    def test_the_result_is_the_tree_that_jax_would_return(self, step):
        (pair, rest) = step(PARAMS, X, 7, scale=3)
        assert type(pair) is Pair and set(pair.second) == {"b", "n"} and pair.second["n"] is None
        np.testing.assert_array_equal(pair.first, 6 * X)
        assert type(rest) is tuple and rest[0] == 7

    def test_the_signature_shows_the_trees(self, step):
        assert step.calling.text() == (
            "jit_step(params: {'b': f32[3], 'w': f32[]}, batch: f32[4], rest: s32[], *, scale: f32[]) -> "
            "(Pair(first=f32[4], second={'b': f32[3], 'n': None}), (s32[],))"
        )

    def test_arrays_of_jax_are_taken(self, step):
        import jax.numpy as jnp

        pair, _ = step({k: jnp.asarray(v) for k, v in PARAMS.items()}, jnp.asarray(X), jnp.int32(1), scale=3.0)
        np.testing.assert_array_equal(pair.first, 6 * X)

    def test_keys_and_types_without_dlpack_are_taken(self):
        import jax
        import jax.numpy as jnp

        draw = jax.jit(lambda key: jax.random.bits(key, (3,)))
        key = jax.random.key(7)
        np.testing.assert_array_equal(testbed.compile(draw.lower(key))(key), draw(key))
        for dtype in (jnp.int4, jnp.bfloat16, jnp.float8_e4m3fn):
            x = jnp.arange(3).astype(dtype)
            np.testing.assert_array_equal(testbed.compile(jax.jit(jnp.copy).lower(x))(x), x)

    def test_a_deleted_array_is_refused(self, step):
        import jax.numpy as jnp

        gone = jnp.asarray(X)
        gone.delete()
        with pytest.raises(testbed.InputError, match=r"argument batch: .*ArrayImpl"):
            step(PARAMS, gone, 1, scale=1.0)

    @pytest.mark.parametrize(
        "arguments, named, message",
        [
            (({"w": 1.0}, X, 1), {"scale": 1.0}, r"argument params: expected the tree {'b': \*, 'w': \*}, given"),
            (
                ({"w": (1.0,), "b": U}, X, 1),
                {"scale": 1.0},
                r"argument params\['w'\]: expected an array, given the tree",
            ),
            ((PARAMS, X), {"scale": 1.0}, "given 2 positional"),
            ((PARAMS, X, 1), {}, "scale is missing"),
            ((PARAMS, None, 1), {"scale": 1.0}, "argument batch: expected an array, given None"),
            ((PARAMS, X[:2], 1), {"scale": 1.0}, r"argument batch: expected f32\[4\], given f32\[2\]"),
            ((PARAMS, X, 1.5), {"scale": 1.0}, r"argument rest\[0\]: expected s32\[\], given the float 1.5"),
        ],
    )
    def test_a_wrong_tree_is_refused_by_its_path(self, step, arguments, named, message):
        with pytest.raises(testbed.InputError, match=message):
            step(*arguments, **named)


# -- DLPack -----------------------------------------------------------------------------------------------------------
class Tensor:
    """An array of another library: only DLPack gives its memory."""

    def __init__(self, array, device=(1, 0), error=None):
        self.array, self.device, self.error = array, device, error

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__()


class Raw(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = [
        *(("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)),
        *(("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
        *(("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)),
        *(("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)),
    ]


EXPORTED = []
"""Every tensor that gave a capsule: a capsule calls the tensor's destructor, so the tensor has to outlive it."""


class RawTensor(Tensor):
    """A tensor whose type numpy's own DLPack does not know; `freed` counts capsules that were dropped."""

    def __init__(self, array, code, bits, lanes=1, with_strides=True):
        super().__init__(array)
        self.form, self.freed = (code, bits, lanes, with_strides), []

    def __dlpack__(self, **_):
        EXPORTED.append(self)
        code, bits, lanes, with_strides = self.form
        array = self.array
        self.dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.steps = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        steps = ctypes.addressof(self.steps) if with_strides else None
        start = array.__array_interface__["data"][0]
        self.raw = Raw(start, 1, 0, array.ndim, code, bits, lanes, ctypes.addressof(self.dims), steps, 0, None, None)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.destructor = kind(lambda _: self.freed.append(True))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, kind]
        return new(ctypes.addressof(self.raw), b"dltensor", self.destructor)


def test_a_dense_array_of_another_library_is_not_copied():
    view = from_dlpack(Tensor(X), "x")
    assert np.shares_memory(view, X) and view.dtype == X.dtype
    np.testing.assert_array_equal(one("f32[4]")(Tensor(X)), X)
    np.testing.assert_array_equal(one("f32[2]")(Tensor(X[::2])), X[::2])


@pytest.mark.parametrize("with_strides", [True, False])
def test_types_that_numpy_cannot_name_are_viewed_in_place(with_strides):
    array = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    tensor = RawTensor(array, 4, 16, with_strides=with_strides)
    view = from_dlpack(tensor, "x")
    assert np.shares_memory(view, array) and view.dtype == ml_dtypes.bfloat16 and not view.flags.writeable
    np.testing.assert_array_equal(view.astype(np.float32), array.astype(np.float32))
    assert not tensor.freed
    del view
    assert tensor.freed
    np.testing.assert_array_equal(one("bf16[2,3]")(tensor).astype(np.float32), array.astype(np.float32))


def test_strides_of_any_order_and_sign_and_empty_arrays():
    array = np.arange(24).astype(ml_dtypes.bfloat16).reshape(4, 6)
    for part in (array.T, array[::-1, ::2], array[1:, ::-3].T, array[:0], array[2:3, 4]):
        view = from_dlpack(RawTensor(part, 4, 16), "x")
        gc.collect()  # the tensor is garbage; its memory is the view's
        np.testing.assert_array_equal(view.astype(np.float32), part.astype(np.float32))
    scalar = from_dlpack(RawTensor(array[1:2, 1].reshape(()), 4, 16), "x")
    assert scalar.shape == () and float(scalar) == 7


def test_the_codes_are_those_of_the_types_widths():
    for (_, bits), dtype in CODES.items():
        assert bits == 8 * dtype.bytes and FROM_NUMPY[dtype.numpy] is dtype
    assert {d for d in DType if d.is_array and d.bits >= 8} - set(CODES.values()) == set()


@pytest.mark.parametrize(
    "tensor, message",
    [
        (Tensor(X, (2, 1)), "argument x: the array is on cuda:1 .copy it to the CPU first"),
        (Tensor(X, (77, 0)), "device type 77:0"),
        (Tensor(X, error=BufferError("Can't export a tensor that requires gradient")), "gives no DLPack: Can't export"),
        (RawTensor(np.zeros(4, np.uint16), 99, 16), "type code 99 of 16 bits and 1 lanes is unknown"),
        (RawTensor(np.zeros(4, np.float32), 2, 32, lanes=4), "4 lanes is unknown"),
    ],
)
def test_what_cannot_be_read_is_refused(tensor, message):
    with pytest.raises(testbed.InputError, match=message):
        one("f32[4]")(tensor)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_torch_tensors_are_not_copied():
    import torch

    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    view = from_dlpack(tensor, "x")
    assert view.__array_interface__["data"][0] == tensor.data_ptr()
    np.testing.assert_array_equal(one("bf16[2,3]")(tensor).astype(np.float32), tensor.float().numpy())


# -- threads ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
def test_threads_may_call_one_executable_at_the_same_time(emitters):
    """More threads than idle arenas; kernels release the interpreter's lock, so runs overlap."""
    text = """HloModule m
add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[64,128] parameter(0)
  t = f32[64,128] tanh(x)
  z = f32[] constant(0)
  r = f32[64] reduce(t, z), dimensions={1}, to_apply=add
  b = f32[64,128] broadcast(r), dimensions={0}
  s = f32[64,128] sort(x), dimensions={1}, to_apply={ p = f32[] parameter(0)\n q = f32[] parameter(1)
    ROOT c = pred[] compare(p, q), direction=LT }
  ROOT y = f32[64,128] subtract(s, b)
}"""
    made = testbed.compile(text, emitters)
    arrays = [np.random.default_rng(n).standard_normal((64, 128), dtype=np.float32) for n in range(12)]
    alone = [made(x) for x in arrays]
    with ThreadPoolExecutor(12) as pool:
        for _ in range(5):
            for result, want in zip(pool.map(made, arrays), alone, strict=True):
                np.testing.assert_array_equal(result, want)
