"""Handlers that take and return tokens, which are parameters and results of the program."""

import numpy as np
import pytest

import testbed
from testbed import ffi

from ...backends.base import CompileOptions
from ...evaluator.evaluator import evaluate
from ...ffi import registry
from ...formats.text.parser import parse_module

F32 = ffi.BufferR1[ffi.F32]
CALL = 'custom_call_target="tokens.twice", api_version=API_VERSION_TYPED_FFI, custom_call_has_side_effect=true'
TEXT = f"""HloModule m
ENTRY e {{
  t = token[] parameter(0)
  x = f32[4]{{0}} parameter(1)
  c = (token[], f32[4]{{0}}) custom-call(t, x), {CALL}
  k = token[] get-tuple-element(c), index=0
  y = f32[4]{{0}} get-tuple-element(c), index=1
  ROOT d = (token[], f32[4]{{0}}) custom-call(k, y), {CALL}
}}"""


@ffi.handler
def twice(t: ffi.Token, x: F32, u: ffi.Result[ffi.Token], y: ffi.Result[F32]):
    y[...] = 2 * x


@pytest.fixture(autouse=True)
def handler():
    ffi.register("tokens.twice", twice)
    yield
    registry.unregister("tokens.twice")


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("host", ["compiled", "interpreted"])
def test_ordered_calls(stack, host):
    x = np.arange(4, dtype=np.float32)
    assert evaluate(parse_module(TEXT), [x])[0].tolist() == [0, 4, 8, 12]
    executable = testbed.compile(TEXT, stack, CompileOptions(host_program=host))
    for _ in range(3):
        token, y = executable(x)
        assert token is None and y.tolist() == [0, 4, 8, 12]
