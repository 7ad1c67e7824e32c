"""Handlers in Python called by programs of this project: both stacks and the evaluator, loops, threads, errors."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import testbed
from testbed import ffi

from ...ffi import registry
from ..support.ffi_runtime import Frame, Runtime

F32 = ffi.Buffer[ffi.F32]


@ffi.handler
def axpy(a: F32, b: F32, y: ffi.Result[F32], z: ffi.Result[ffi.BufferR0[ffi.S32]], k: ffi.Attr[ffi.float32]):
    y[...] = a * np.float32(k) + b
    z[...] = a.size


class Total:
    def __init__(self):
        self.lock, self.calls = threading.Lock(), 0


@ffi.handler(stage="instantiate")
def begin() -> Total:
    return Total()


@ffi.handler
def add_up(x: F32, y: ffi.Result[F32], total: ffi.State[Total], scratch: ffi.ScratchAllocator):
    with total.lock:
        total.calls += 1
    block = scratch.array(x.shape, np.float32)
    block[...] = x + 1
    y[...] = block * 2


@ffi.handler
def refuses(x: F32, y: ffi.Result[F32]):
    if x[0] > 0:
        raise ValueError("above zero")
    y[...] = x


TARGETS = {"binding_axpy": axpy, "binding_refuses": refuses, "binding_total": {"instantiate": begin, "execute": add_up}}


@pytest.fixture(scope="module", autouse=True)
def registered():
    for name, handlers in TARGETS.items():
        ffi.register(name, handlers)
    yield
    for name in TARGETS:
        registry.unregister(name)


TUPLE = """HloModule m
ENTRY e {
  a = f32[2,3]{1,0} parameter(0)
  b = f32[2,3]{1,0} parameter(1)
  c = (f32[2,3]{1,0}, s32[]) custom-call(a, b), custom_call_target="binding_axpy",
    api_version=API_VERSION_TYPED_FFI, backend_config={k = -1.5 : f32}
  y = f32[2,3]{1,0} get-tuple-element(c), index=0
  z = s32[] get-tuple-element(c), index=1
  f = f32[] convert(z)
  g = f32[2,3]{1,0} broadcast(f), dimensions={}
  ROOT r = f32[2,3]{1,0} multiply(y, g)
}
"""

LOOP = """HloModule m
body {
  s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[4]{0} custom-call(x), custom_call_target="TARGET", api_version=API_VERSION_TYPED_FFI
  half = f32[] constant(0.25)
  h = f32[4]{0} broadcast(half), dimensions={}
  w = f32[4]{0} multiply(y, h)
  ROOT t = (s32[], f32[4]{0}) tuple(n, w)
}
condition {
  s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(20)
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[4]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4]{0}) tuple(zero, x)
  w = (s32[], f32[4]{0}) while(s), condition=condition, body=body
  ROOT y = f32[4]{0} get-tuple-element(w), index=1
}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_results_of_both_stacks_are_the_evaluators(stack):
    rng = np.random.default_rng(3)
    program, loop = testbed.compile(TUPLE, stack), testbed.compile(LOOP.replace("TARGET", "binding_total"), stack)
    for _ in range(4):
        a, b = rng.standard_normal((2, 2, 3), np.float32)
        (want,) = testbed.evaluate(TUPLE, [a, b])
        np.testing.assert_array_equal(want, (a * np.float32(-1.5) + b) * 6)
        np.testing.assert_array_equal(program(a, b), want)
        x = rng.standard_normal(4, np.float32)
        want = x.copy()
        for _ in range(20):
            want = (want + 1) * 2 * np.float32(0.25)
        np.testing.assert_array_equal(loop(x), want)


def test_an_error_names_the_call_and_the_program_goes_on():
    program = testbed.compile(LOOP.replace("TARGET", "binding_refuses"), "mlir")
    for _ in range(3):
        np.testing.assert_array_equal(
            program(-np.ones(4, np.float32)), -(np.float32(0.25) ** 20) * np.ones(4, np.float32)
        )
        with pytest.raises(
            testbed.TestbedError, match=r"y: custom-call\(binding_refuses\).*INTERNAL: ValueError: above"
        ):
            program(np.ones(4, np.float32))


def test_threads_with_states_and_scratch_memory_do_not_grow():
    totals = [o for o in gc.get_objects() if isinstance(o, Total)]
    programs, wrong = [testbed.compile(LOOP.replace("TARGET", "binding_total"), "legacy")], []

    def work(n):
        x = np.full(4, n, np.float32)
        want = programs[0](x)
        for _ in range(50):
            if (programs[0](x) != want).any():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    made = [o for o in gc.get_objects() if isinstance(o, Total) and o not in totals]
    assert sum(total.calls for total in made) == 8 * 51 * 20
    programs.clear()
    del made
    gc.collect()
    Frame(Runtime(), [], [], {}, stage=3).call(refuses.ffi_address)  # states that other threads gave up go now
    assert not [o for o in gc.get_objects() if isinstance(o, Total) and o not in totals]


def test_mutated_frames_end_in_errors_only():
    """`python -m testbed.tests.generators.mutated_frames` is the deep run, of 100,000."""
    command = [sys.executable, "-m", "testbed.tests.generators.mutated_frames", "--count", "3000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stdout[-2000:] + done.stderr[-2000:]
    good, errors, total = map(int, done.stdout.split())
    assert good + errors == total == 3000 and min(good, errors) > 500
