"""Buffers of elements narrower than a byte: handlers see them packed, as in XLA; programs have one a byte."""

import ctypes

import numpy as np
import pytest

import testbed
from testbed import ffi

from ...evaluator.evaluator import evaluate
from ...ffi import abi, registry
from ...ffi.packing import pack, unpack
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ..support.raw_handlers import answers, handler

TYPES = (DType.S4, DType.U4, DType.S2, DType.U2, DType.F4E2M1FN)
TARGET = "packing.test"
ATTRIBUTES = f'custom_call_target="{TARGET}", api_version=API_VERSION_TYPED_FFI'
STACKS = ("evaluator", "legacy", "mlir")


@pytest.fixture(autouse=True)
def forget():
    yield
    registry.unregister(TARGET)


def run(stack, text, *inputs):
    if stack == "evaluator":
        return evaluate(parse_module(text), list(inputs))[0]
    return testbed.compile(text, stack)(*inputs)


def elements(dtype, *dims):
    """Bits of all kinds, as numpy has the type."""
    numbers = np.arange(np.prod(dims, dtype=int)) * 7 + 3
    return (numbers.astype(np.uint8) & np.uint8((1 << dtype.bits) - 1)).view(dtype.numpy).reshape(dims)


def bits(array, dtype):
    return (np.array(array, order="C").view(np.uint8) & ((1 << dtype.bits) - 1)).tolist()


def raw_copy(size):
    """A handler that copies the bytes of its operand, and notes them."""
    seen = []

    def use(frame):
        if not answers(frame, (0, 3)):
            call = abi.CallFrame.from_address(frame)
            x, y = (abi.Buffer.from_address(part.args[0]) for part in (call.args, call.rets))
            seen.append(ctypes.string_at(x.data, size))
            ctypes.memmove(y.data, x.data, size)

    registry.register(TARGET, handler(use))
    return seen


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("count", [1, 2, 7, 8])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_handler_sees_the_first_element_in_the_lowest_bits(dtype, count, stack):
    x, size = elements(dtype, count), -(-count * dtype.bits // 8)
    seen = raw_copy(size)
    name = f"{dtype.value}[{count}]{{0}}"
    text = f"HloModule m\nENTRY e {{\n  x = {name} parameter(0)\n  ROOT y = {name} custom-call(x), {ATTRIBUTES}\n}}\n"
    assert bits(run(stack, text, x), dtype) == bits(x, dtype)
    number = sum(b << (n * dtype.bits) for n, b in enumerate(bits(x, dtype)))
    assert seen[-1] == number.to_bytes(size, "little")
    assert bits(unpack(pack(x, dtype), count, dtype), dtype) == bits(x, dtype)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("more", ["", ", output_to_operand_aliasing={{}: (0, {})}"])
def test_layouts_and_memory_that_is_shared(stack, more):
    raw_copy(8)
    text = f"""HloModule m
ENTRY e {{
  x = s4[3,5]{{0,1}} parameter(0)
  n = s4[3,5]{{0,1}} negate(x)
  y = s4[3,5]{{1,0}} custom-call(n), operand_layout_constraints={{s4[3,5]{{1,0}}}}, {ATTRIBUTES}{more}
  ROOT z = s4[3,5]{{1,0}} negate(y)
}}"""
    x = elements(DType.S4, 3, 5)
    assert bits(run(stack, text, x), DType.S4) == bits(x, DType.S4)


TWO = f"""HloModule m
ENTRY e {{
  x = s4[5]{{0}} parameter(0)
  k = f32[] parameter(1)
  c = (u2[3]{{0}}, f32[]) custom-call(x, k), {ATTRIBUTES}
  a = u2[3]{{0}} get-tuple-element(c), index=0
  ROOT b = u8[3]{{0}} convert(a)
}}"""


@pytest.mark.parametrize("stack", STACKS)
def test_a_handler_in_python_has_arrays_of_elements(stack):
    def use(x, k, y, z):
        assert x.tolist() == [1, -1, 0, 7, -8] and not x.flags.writeable
        y[...] = [3, 0, 2]
        z[...] = k

    binding = ffi.bind().arg(ffi.Buffer[ffi.S4]).arg(ffi.Buffer[ffi.F32])
    ffi.register(TARGET, binding.ret(ffi.Buffer[ffi.U2]).ret(ffi.Buffer[ffi.F32]).to(use))
    x = np.array([1, -1, 0, 7, -8]).astype(DType.S4.numpy)
    for _ in range(3):
        assert run(stack, TWO, x, np.float32(1)).tolist() == [3, 0, 2]


def test_remaining_results_are_packed():
    def use(args, rets):
        rets.get(ffi.AnyBuffer, 0)[...] = 1

    ffi.register(TARGET, ffi.bind().remaining_args().remaining_rets().to(use))
    assert run("mlir", TWO, np.zeros(5, DType.S4.numpy), np.float32(1)).tolist() == [1, 1, 1]


def test_a_future_cannot_write_packed_results():
    ffi.register(TARGET, ffi.bind().remaining_args().remaining_rets().to(lambda a, r: ffi.Future(ffi.Promise())))
    with pytest.raises(testbed.TestbedError, match="a handler that finishes later cannot write"):
        run("mlir", TWO, np.zeros(5, DType.S4.numpy), np.float32(1))


@pytest.mark.xla
def test_jax_has_the_same_form():
    jax = pytest.importorskip("jax")
    double = ffi.bind().arg(ffi.Buffer[ffi.S4]).ret(ffi.Buffer[ffi.S4])
    ffi.register_with_jax(TARGET, double.to(lambda x, y: np.copyto(y, x[::-1])))
    x = elements(DType.S4, 7)
    shape = jax.ShapeDtypeStruct((7,), x.dtype)
    assert bits(np.asarray(jax.ffi.ffi_call(TARGET, shape)(x)), DType.S4) == bits(x[::-1], DType.S4)
