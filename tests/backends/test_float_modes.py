"""Results have the same bits whatever mode of floats the caller's thread is in, and the caller keeps its mode."""

import ctypes
import platform

import numpy as np
import pytest

from ...backends.base import CompileOptions, HostProgramKind
from ...codegen.options import EmitOptions
from ...codegen.threads import on_threads
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module

WORDS = {"x86_64": (7, 0x6000, 0x8040), "aarch64": (0, 0xC00000, 1 << 24)}
"""Machine → (word of fenv_t, bits that round towards zero, bits that flush subnormals)."""
COUNT = 1 << 20
MODULE = parse_module(f"""HloModule m
ENTRY e {{
  x = f32[{COUNT}] parameter(0)
  y = f32[{COUNT}] parameter(1)
  ROOT r = f32[{COUNT}] multiply(x, y)
}}
""")

pytestmark = pytest.mark.skipif(platform.machine() not in WORDS, reason="the form of its fenv_t is not known")


class Environment:
    """The mode of floats of this thread, changed in a block."""

    def __init__(self, *bits: int):
        self._bits = sum(bits)

    def __enter__(self):
        self._libm = ctypes.CDLL("libm.so.6")
        self._before = self._read()
        inside = (ctypes.c_uint32 * 16)(*self._before)
        inside[WORDS[platform.machine()][0]] |= self._bits
        self._libm.fesetenv(inside)
        return self

    def _read(self):
        environment = (ctypes.c_uint32 * 16)()
        self._libm.fegetenv(environment)
        return environment

    def __exit__(self, *_):
        assert self._read()[WORDS[platform.machine()][0]] & self._bits == self._bits, "the caller's mode is lost"
        self._libm.fesetenv(self._before)


_, ROUNDING, FLUSHING = WORDS.get(platform.machine(), (0, 0, 0))
MODES = {"rounding": (ROUNDING,), "flushing": (FLUSHING,), "both": (ROUNDING, FLUSHING)}


@pytest.fixture(scope="module")
def inputs():
    draw = np.random.default_rng(0)
    x, y = (draw.standard_normal(COUNT).astype(np.float32) for _ in range(2))
    x[::7] *= np.float32(2.0**-120)
    y[::7] *= np.float32(2.0**-10)  # products that are subnormal
    return [x, y]


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("kind", [HostProgramKind.INTERPRETED, HostProgramKind.COMPILED])
@pytest.mark.parametrize("strict", [False, True])
def test_kernels_do_not_see_the_callers_mode(stack, kind, strict, inputs):
    options = CompileOptions(EmitOptions.host(strict=strict), host_program=kind)
    executable = compile_module(MODULE, Flags.parse(stack), options)
    usual = np.asarray(executable.execute(inputs)[0])
    for threads in (1, 2):
        for bits in MODES.values():
            with on_threads(threads), Environment(*bits):
                inside = executable.execute(inputs)[0]
            assert inside.tobytes() == usual.tobytes()


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_the_oracle_does_not_see_it_either(mode, flush, inputs):
    usual = evaluate(MODULE, inputs, flush_subnormals=flush)[0]
    with Environment(*MODES[mode]):
        inside = evaluate(MODULE, inputs, flush_subnormals=flush)[0]
    assert inside.tobytes() == usual.tobytes()
