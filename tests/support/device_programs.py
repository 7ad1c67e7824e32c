"""Programs for tests of devices, and the platforms that they run on.

PROGRAM has a loop, a constant, and a call of a library; SOFTMAX is one kernel of groups.
"""

from __future__ import annotations

import functools
from functools import partial

import numpy as np
import pytest

from ...backends.accelerator.build import build_device_code
from ...backends.base import CompileOptions
from ...backends.cuda.dialect import CUDA
from ...backends.device import KernelSpec
from ...backends.registry import platform, status
from ...formats.text.parser import parse_module
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from .host_items import host_items
from .recorded import Recorded

PROGRAM = """HloModule mixed
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
less { i = (s32[], f32[64,33]) parameter(0)
  n = s32[] get-tuple-element(i), index=0
  most = s32[] constant(100)
  ROOT l = pred[] compare(n, most), direction=LT }
body { i = (s32[], f32[64,33]) parameter(0)
  n = s32[] get-tuple-element(i), index=0
  x = f32[64,33] get-tuple-element(i), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[64,33] sine(x)
  ROOT t = (s32[], f32[64,33]) tuple(m, y) }
ENTRY e {
  p = f32[64,33] parameter(0)
  q = f32[4,16] parameter(1)
  start = s32[] constant(0)
  first = (s32[], f32[64,33]) tuple(start, p)
  loop = (s32[], f32[64,33]) while(first), condition=less, body=body
  x = f32[64,33] get-tuple-element(loop), index=1
  zero = f32[] constant(0)
  sum = f32[64] reduce(x, zero), dimensions={1}, to_apply=add
  table = f32[3] constant({1, 2, 4})
  f = c64[4,9] fft(q), fft_type=RFFT, fft_length={16}
  ROOT t = (f32[64], c64[4,9], f32[3]) tuple(sum, f, table)
}
"""

SOFTMAX = """HloModule softmax
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[64,33] parameter(0)
  x = f32[64,33] exponential(p)
  zero = f32[] constant(0)
  sum = f32[64] reduce(x, zero), dimensions={1}, to_apply=add
  spread = f32[64,33] broadcast(sum), dimensions={0}
  ROOT y = f32[64,33] divide(x, spread)
}
"""


def inputs():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(64, 33)).astype(np.float32), rng.normal(size=(4, 16)).astype(np.float32)]


NEGATED = """{declarations}
define {kernel}void @negated(ptr addrspace(1) %x, ptr addrspace(1) %y) {{
{item}  br label %next
next:
  %n = phi i64 [ %item, %0 ], [ %m, %next ]
  %a = getelementptr float, ptr addrspace(1) %x, i64 %n
  %v = load float, ptr addrspace(1) %a, align 4
  %w = fneg float %v
  %b = getelementptr float, ptr addrspace(1) %y, i64 %n
  store float %w, ptr addrspace(1) %b, align 4
  %m = add i64 %n, 1
  %more = icmp ult i64 %m, 8
  br i1 %more, label %next, label %end
end:
  ret void
}}
"""


@functools.cache
def negated(name: str) -> KernelSpec:
    """Code of a platform that writes the negatives of 8 numbers."""
    target = platform(name).executor(0).code_target
    text = NEGATED.format(declarations=target.declarations, kernel=target.kernel, item=target.item)
    return KernelSpec("negated", build_device_code(text, target, None), 2)


def targets():
    """The recording driver, and each platform that has a device."""
    yield pytest.param(lambda: Recorded(CUDA, host_items()), id="recorded")
    for name in PLATFORMS:
        yield pytest.param(partial(platform, name), id=name, marks=without(name))


PLATFORMS = ("opencl", "cuda", "rocm")


def without(name: str) -> pytest.MarkDecorator:
    """The mark that skips a test where a platform has no device."""
    why = status(name).why
    return pytest.mark.skipif(why is not None, reason=f"platform {name}: {why}")


def compiled(made, text, stack="legacy", cache=None):
    module = parse_module(text)
    verify(module)
    compiler, options = made.compiler(), CompileOptions(cache=cache)
    return compiler.compile(compiler.run_hlo_passes(module, options), emit_for(Flags.parse(stack)), options)
